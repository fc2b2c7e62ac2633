"""ListGroups, and the descriptions of groups: reads, which see the committed groups.

Version notes
* DescribeGroups 6: a group that does not exist is GROUP_ID_NOT_FOUND; before, it was only Dead (KIP-1043).

Kafka: GroupMetadataManager.listGroups, describeGroups, consumerGroupDescribe, shareGroupDescribe,
streamsGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from uuid import UUID

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import DEAD, STABLE
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import (
    DescribeConsumerGroup,
    DescribeConsumerGroupResponse,
    DescribedConsumerMember,
    DescribedMember,
    DescribeGroup,
    DescribeGroupResponse,
    ListedGroup,
    ListGroups,
    ListGroupsResponse,
    Response,
)
from groupstorm.coordinator.modern.config import STICKY
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.messages import (
    DescribedShareMember,
    DescribeShareGroup,
    DescribeShareGroupResponse,
)
from groupstorm.coordinator.streams.description_plugin import Outcome
from groupstorm.coordinator.streams.group import StreamsGroup, TaskOffsets
from groupstorm.coordinator.streams.member import StreamsMember
from groupstorm.coordinator.streams.messages import (
    DescribedStreamsMember,
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
    DescriptionStatus,
)
from groupstorm.coordinator.streams.topology import Subtopology, Topology


def handle_list(shard: Shard, request: ListGroups, reply: PendingReply) -> None:
    states = {state.lower().strip() for state in request.states}
    types = {kind.lower().strip() for kind in request.types}
    listed = [
        ListedGroup(group.name, _protocol_type(group), group.state, group.kind)
        for _, group in shard.groups.items()
        if group.committed and (not states or _state(group) in states) and (not types or group.kind in types)
    ]
    shard.answer(reply, ListGroupsResponse(Error.NONE, tuple(listed)))


def _state(group: Group) -> str:
    """The state as filters name it."""
    return "not_ready" if group.state.value == "NotReady" else group.state.lower()


def _protocol_type(group: Group) -> str:
    return group.protocol_type or "" if isinstance(group, ClassicGroup) else group.kind


_Kind = TypeVar("_Kind", ConsumerGroup, ShareGroup, StreamsGroup)


def _answer(
    shard: Shard,
    request: DescribeConsumerGroup | DescribeShareGroup | DescribeStreamsGroup,
    reply: PendingReply,
    response: Callable[..., Response],
    kind: type[_Kind],
    describe: Callable[[Shard, _Kind], Response | None],
) -> None:
    """Describe the group if it is of this ``kind``, else answer that it is not; None from ``describe``: no
    answer follows."""
    if not request.group:
        shard.answer(reply, response(Error.INVALID_GROUP_ID, request.group))
        return
    group = shard.committed_group(request.group)
    if not isinstance(group, kind):
        reason = "not found" if group is None else f"is not a {kind.kind} group"
        message = f"Group {request.group} {reason}."
        shard.answer(reply, response(Error.GROUP_ID_NOT_FOUND, request.group, error_message=message))
        return
    described = describe(shard, group)
    if described is not None:
        shard.answer(reply, described)


def handle_describe_consumer_group(shard: Shard, request: DescribeConsumerGroup, reply: PendingReply) -> None:
    """ConsumerGroupDescribe: members with their epochs, partitions and targets."""
    _answer(shard, request, reply, DescribeConsumerGroupResponse, ConsumerGroup, _consumer_describe)


def _consumer_describe(shard: Shard, group: ConsumerGroup) -> DescribeConsumerGroupResponse:
    return DescribeConsumerGroupResponse(
        NO_ERROR,
        group.name,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        group.preferred_assignor() or shard.config.consumer.assignors[0],
        tuple([_consumer_member(shard, group, member) for member in group.members.values()]),
    )


def _consumer_member(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerMember:
    """A partition that the member has to give up still counts as its own."""
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic, numbers in partitions.items():
            held.setdefault(topic, []).extend(numbers)
    return DescribedConsumerMember(
        member.member_id,
        member.instance,
        member.rack,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.regex,
        _by_name(shard, held),
        _by_name(shard, group.target(member.member_id)),
        member.classic is not None,
    )


def _by_name(shard: Shard, partitions: Mapping[UUID, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    """By topic name; topics that no longer exist are left out."""
    return {
        name: tuple(sorted(numbers))
        for topic, numbers in partitions.items()
        if (name := shard.topics.name(topic)) is not None
    }


#: The only assignor of share groups (`group.share.assignors`).
_SIMPLE = "simple"


def handle_describe_share_group(shard: Shard, request: DescribeShareGroup, reply: PendingReply) -> None:
    """ShareGroupDescribe: members with their epochs, topics and partitions."""
    _answer(shard, request, reply, DescribeShareGroupResponse, ShareGroup, _share_describe)


def _share_describe(shard: Shard, group: ShareGroup) -> DescribeShareGroupResponse:
    members = [
        DescribedShareMember(
            member.member_id,
            member.rack,
            member.epoch,
            member.client_id,
            member.client_host,
            tuple(sorted(member.topics)),
            _by_name(shard, member.assigned),
        )
        for member in group.members.values()
    ]
    return DescribeShareGroupResponse(
        NO_ERROR, group.name, group.state.value, group.epoch, group.assignment_epoch, _SIMPLE, tuple(members)
    )


def handle_describe_streams_group(shard: Shard, request: DescribeStreamsGroup, reply: PendingReply) -> None:
    """StreamsGroupDescribe: members with their epochs, tasks and targets, and the topology.

    Since version 1 an answer has the description of the topology, if the broker has a plugin that keeps it,
    and the assignor (Kafka 4.4.0).

    Kafka: StreamsGroup.asDescribedGroup, StreamsGroupTopologyDescriptionManager.attachTopologyDescriptions.
    """
    describe = _with_description if request.with_description else _streams_describe
    _answer(shard, request, reply, DescribeStreamsGroupResponse, StreamsGroup, describe)


def _streams_describe(_shard: Shard, group: StreamsGroup) -> DescribeStreamsGroupResponse:
    return DescribeStreamsGroupResponse(
        NO_ERROR,
        group.name,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        _topology(group),
        tuple([_streams_member(group, member) for member in group.members.values()]),
        STICKY,
    )


def _topology(group: StreamsGroup) -> Topology | None:
    """The topology with the numbers of partitions that are decided, else as it was sent; sorted."""
    configured = group.read_configured
    if group.topology is None:
        return None
    subtopologies = group.topology.subtopologies
    if configured is not None and configured.problem is None:
        subtopologies = tuple(one.topics for one in (configured.subtopologies or {}).values())
    in_order = sorted(subtopologies, key=lambda one: one.id)
    return group.topology._replace(subtopologies=tuple(map(_sorted, in_order)))


def _sorted(one: Subtopology) -> Subtopology:
    return one._replace(
        sources=tuple(sorted(one.sources)),
        sinks=tuple(sorted(one.sinks)),
        repartition=tuple(sorted(one.repartition)),
        changelogs=tuple(sorted(one.changelogs)),
    )


def _streams_member(group: StreamsGroup, member: StreamsMember) -> DescribedStreamsMember:
    reported = group.task_offsets.get(member.member_id, TaskOffsets())
    return DescribedStreamsMember(member, group.target(member.member_id), *reported)


def _with_description(shard: Shard, group: StreamsGroup) -> DescribeStreamsGroupResponse | None:
    """The group with the description of its topology; None if the plugin never answers."""
    described = _streams_describe(shard, group)
    plugin = shard.description_plugin
    if plugin is None or group.topology is None or group.facts.stored_epoch != group.topology.epoch:
        return described._replace(description_status=DescriptionStatus.NOT_STORED)
    answer = plugin.get_topology(group.name, group.topology.epoch)
    if answer.outcome is Outcome.LOST:
        return None
    if answer.outcome is not Outcome.DONE:
        return described._replace(description_status=DescriptionStatus.ERROR)
    if answer.description is None:
        return described._replace(description_status=DescriptionStatus.NOT_STORED)
    return described._replace(description_status=DescriptionStatus.AVAILABLE, description=answer.description)


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
