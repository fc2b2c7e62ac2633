"""DescribeGroups: a read, which sees the committed group.

Version notes
* 6: a group that does not exist is GROUP_ID_NOT_FOUND; before, it was only Dead (KIP-1043).

Kafka: GroupMetadataManager.describeGroups.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import DEAD, STABLE
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    DescribedMember,
    DescribeGroup,
    DescribeGroupResponse,
)
from groupstorm.coordinator.shard import Shard

_NOT_FOUND_SINCE = 6


def handle_describe(shard: Shard, request: DescribeGroup, reply: PendingReply) -> None:
    group = shard.committed_group(request.group)
    if isinstance(group, ClassicGroup):
        shard.answer(reply, _describe(group))
    elif request.version >= _NOT_FOUND_SINCE:
        reason = "not found" if group is None else "is not a classic group"
        message = f"Group {request.group} {reason}."
        response = DescribeGroupResponse(
            Error.GROUP_ID_NOT_FOUND, request.group, DEAD, "", "", error_message=message
        )
        shard.answer(reply, response)
    else:
        shard.answer(reply, DescribeGroupResponse(Error.NONE, request.group, DEAD, "", ""))


def _describe(group: ClassicGroup) -> DescribeGroupResponse:
    """The description has protocol and metadata only if the group is stable: in a round they mean nothing."""
    stable = group.state is STABLE
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
