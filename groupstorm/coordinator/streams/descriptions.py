"""StreamsGroupDescribe: members with their epochs, tasks and targets, and the topology.

Version notes
* 1: the description of the topology, if the broker has a plugin that keeps it; the assignor (Kafka 4.4.0).

Kafka: GroupMetadataManager.streamsGroupDescribe, StreamsGroup.asDescribedGroup,
StreamsGroupTopologyDescriptionManager.attachTopologyDescriptions.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import (
    DescribedStreamsMember,
    DescribedSubtopology,
    DescribedTopic,
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
    DescriptionStatus,
    TaskIds,
)
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.configuration import InternalTopic
from groupstorm.coordinator.streams.description_plugin import Outcome
from groupstorm.coordinator.streams.group import StreamsGroup, TaskOffsets
from groupstorm.coordinator.streams.member import StreamsMember, Tasks, listed
from groupstorm.coordinator.streams.topology import TopicInfo
from groupstorm.coordinator.streams_config import STICKY


def handle_describe_streams_group(shard: Shard, request: DescribeStreamsGroup, reply: PendingReply) -> None:
    if not request.group:
        shard.answer(reply, DescribeStreamsGroupResponse(Error.INVALID_GROUP_ID, request.group))
        return
    group = shard.committed_group(request.group)
    if not isinstance(group, StreamsGroup):
        reason = "not found" if group is None else "is not a streams group"
        message = f"Group {request.group} {reason}."
        response = DescribeStreamsGroupResponse(
            Error.GROUP_ID_NOT_FOUND, request.group, error_message=message
        )
        shard.answer(reply, response)
        return
    described = _describe(group)
    if request.with_description:
        attached = _with_description(shard, group, described)
        if attached is None:
            return
        described = attached
    shard.answer(reply, described)


def _describe(group: StreamsGroup) -> DescribeStreamsGroupResponse:
    topology = None if group.topology is None else (group.topology.epoch, _subtopologies(group))
    return DescribeStreamsGroupResponse(
        NO_ERROR,
        group.name,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        topology,
        tuple([_member(group, member) for member in group.members.values()]),
        STICKY,
    )


def _subtopologies(group: StreamsGroup) -> tuple[DescribedSubtopology, ...]:
    """The subtopologies with the numbers of partitions that are decided, else as they were sent."""
    configured = group.read_configured
    if configured is not None and configured.problem is None:
        return tuple(
            DescribedSubtopology(
                name, one.sources, one.sinks, _decided(one.repartition), _decided(one.changelogs)
            )
            for name, one in (configured.subtopologies or {}).items()
        )
    sent = () if group.topology is None else group.topology.subtopologies
    return tuple(
        DescribedSubtopology(
            one.id,
            tuple(sorted(one.sources)),
            tuple(sorted(one.sinks)),
            _sent(one.repartition),
            _sent(one.changelogs),
        )
        for one in sorted(sent, key=lambda one: one.id)
    )


def _decided(topics: Mapping[str, InternalTopic]) -> tuple[DescribedTopic, ...]:
    return tuple(DescribedTopic(name, *topics[name]) for name in sorted(topics))


def _sent(topics: tuple[TopicInfo, ...]) -> tuple[DescribedTopic, ...]:
    return tuple(DescribedTopic(*topic) for topic in sorted(topics, key=lambda topic: topic.name))


def _member(group: StreamsGroup, member: StreamsMember) -> DescribedStreamsMember:
    offsets = group.task_offsets.get(member.member_id, TaskOffsets())
    return DescribedStreamsMember(
        member.member_id,
        member.epoch,
        member.instance,
        member.rack,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process,
        member.endpoint,
        member.tags,
        _kinds(member.assigned.without_epochs()),
        _kinds(group.target(member.member_id)),
        _offsets(offsets.offsets),
        _offsets(offsets.end_offsets),
    )


def _kinds(tasks: Tasks) -> tuple[TaskIds, TaskIds, TaskIds]:
    return listed(tasks.active), listed(tasks.standby), listed(tasks.warmup)


def _offsets(offsets: Mapping[Task, int]) -> tuple[tuple[str, int, int], ...]:
    return tuple((*task, offsets[task]) for task in sorted(offsets))


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
    return described._replace(
        description_status=DescriptionStatus.AVAILABLE, description=answer.description
    )
