"""DescribeGroups and ListGroups: reads, which see what is committed.

Version notes
* DescribeGroups 6: a group that is not there is GROUP_ID_NOT_FOUND, before it was only Dead (KIP-1043).

Kafka: GroupMetadataManager.describeGroups, listGroups.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.messages import (
    DescribedMember,
    DescribeGroup,
    DescribeGroupResponse,
    ListedGroup,
    ListGroups,
    ListGroupsResponse,
)
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import DEAD, GroupState

#: The type under which classic groups are listed (KIP-848).
CLASSIC_TYPE = "classic"
_NOT_FOUND_SINCE = 6


def handle_describe(shard: Shard, request: DescribeGroup, answer: Answer) -> None:
    group = shard.committed_group(request.group)
    if group is not None:
        shard.answer(answer, _describe(group))
    elif request.version >= _NOT_FOUND_SINCE:
        message = f"Group {request.group} not found."
        response = DescribeGroupResponse(
            Error.GROUP_ID_NOT_FOUND, request.group, DEAD, "", "", error_message=message
        )
        shard.answer(answer, response)
    else:
        shard.answer(answer, DescribeGroupResponse(Error.NONE, request.group, DEAD, "", ""))


def _describe(group: ClassicGroup) -> DescribeGroupResponse:
    """Protocol and metadata are told of a stable group only: between rounds they mean nothing."""
    stable = group.state is GroupState.STABLE
    members = [
        DescribedMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.metadata(group.protocol) if stable else b"",
            member.assignment,
        )
        for member in group.members.values()
    ]
    protocol = (group.protocol or "") if stable else ""
    return DescribeGroupResponse(
        Error.NONE, group.name, group.state, group.protocol_type or "", protocol, tuple(members)
    )


def handle_list(shard: Shard, request: ListGroups, answer: Answer) -> None:
    states = {state.lower().strip() for state in request.states}
    types = {kind.lower().strip() for kind in request.types}
    listed = [
        ListedGroup(group.name, group.protocol_type or "", group.state, CLASSIC_TYPE)
        for _, group in shard.groups.items()
        if group.committed
        and (not states or group.state.lower() in states)
        and (not types or CLASSIC_TYPE in types)
    ]
    shard.answer(answer, ListGroupsResponse(Error.NONE, tuple(listed)))
