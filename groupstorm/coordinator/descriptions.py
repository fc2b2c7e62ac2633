"""ListGroups, and the descriptions of groups: reads, which see the committed groups.

Version notes
* DescribeGroups 6: a group that does not exist is GROUP_ID_NOT_FOUND; before, it was only Dead (KIP-1043).

Kafka: GroupMetadataManager.listGroups, describeGroups, consumerGroupDescribe, shareGroupDescribe,
streamsGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import DEAD, STABLE
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused
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
)
from groupstorm.coordinator.modern.config import STICKY
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.modern.membership import G, group_of_kind
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

T = TypeVar("T")


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


def _group(shard: Shard, name: str, kind: type[G]) -> G:
    """The group as reads see it; `Refused` if it is not of this ``kind``."""
    if not name:
        raise Refused(Error.INVALID_GROUP_ID, "")
    return group_of_kind(shard.committed_group(name), name, kind)


def _head(group: ModernGroup[Any, Any]) -> tuple[Error, str, str, int, int]:
    """The fields with which the descriptions of all groups of the newer protocols begin."""
    return NO_ERROR, group.name, group.state.value, group.epoch, group.assignment_epoch


def handle_describe_consumer_group(shard: Shard, request: DescribeConsumerGroup, reply: PendingReply) -> None:
    """ConsumerGroupDescribe: members with their epochs, partitions and targets."""
    group = _group(shard, request.group, ConsumerGroup)
    assignor = group.preferred_assignor() or shard.config.consumer.assignors[0]
    members = [_consumer_member(shard, group, member) for member in group.members.values()]
    shard.answer(reply, DescribeConsumerGroupResponse(*_head(group), assignor, tuple(members)))


def _described(kind: type[T], member: object, **own: object) -> T:
    """A member as its group's description has it. ``own``: the fields that need more than the member."""
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # a named tuple's
    return kind(**{name: own[name] if name in own else getattr(member, name) for name in fields})


def _consumer_member(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerMember:
    """A partition that the member has to give up still counts as its own."""
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic, numbers in partitions.items():
            held.setdefault(topic, []).extend(numbers)
    return _described(
        DescribedConsumerMember,
        member,
        topics=tuple(sorted(member.topics)),
        assignment=_by_name(shard, held),
        target=_by_name(shard, group.target(member.member_id)),
        is_classic=member.speaks_classic,
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
    group = _group(shard, request.group, ShareGroup)
    members = [
        _described(
            DescribedShareMember,
            member,
            topics=tuple(sorted(member.topics)),
            assignment=_by_name(shard, member.assigned),
        )
        for member in group.members.values()
    ]
    shard.answer(reply, DescribeShareGroupResponse(*_head(group), _SIMPLE, tuple(members)))


def handle_describe_streams_group(shard: Shard, request: DescribeStreamsGroup, reply: PendingReply) -> None:
    """StreamsGroupDescribe: members with their epochs, tasks and targets, and the topology.

    Since version 1 an answer has the description of the topology, if the broker has a plugin that keeps it,
    and the assignor (Kafka 4.4.0).

    Kafka: StreamsGroup.asDescribedGroup, StreamsGroupTopologyDescriptionManager.attachTopologyDescriptions.
    """
    group = _group(shard, request.group, StreamsGroup)
    members = tuple([_streams_member(group, member) for member in group.members.values()])
    described = DescribeStreamsGroupResponse(*_head(group), _topology(group), members, STICKY)
    answered = _with_description(shard, group, described) if request.with_description else described
    if answered is not None:
        shard.answer(reply, answered)


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


def _with_description(
    shard: Shard, group: StreamsGroup, described: DescribeStreamsGroupResponse
) -> DescribeStreamsGroupResponse | None:
    """The group with the description of its topology; None if the plugin never answers."""
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
        return
    error, sentence = Error.NONE, None
    if request.version >= _NOT_FOUND_SINCE:
        error = Error.GROUP_ID_NOT_FOUND
        sentence = f"Group {request.group} {'not found' if group is None else 'is not a classic group'}."
    shard.answer(reply, DescribeGroupResponse(error, request.group, DEAD, error_message=sentence))


def _describe(group: ClassicGroup) -> DescribeGroupResponse:
    """The description has protocol and metadata only if the group is stable: in a round they mean nothing."""
    stable = group.state is STABLE
    members = [
        _described(DescribedMember, member, metadata=member.metadata(group.protocol) if stable else b"")
        for member in group.members.values()
    ]
    protocol = (group.protocol or "") if stable else ""
    return DescribeGroupResponse(
        Error.NONE, group.name, group.state, group.protocol_type or "", protocol, tuple(members)
    )
