"""StreamsGroupDescribe: members with their epochs, tasks and targets, and the topology.

Version notes
* 1: the description of the topology, if the broker has a plugin that keeps it; the assignor (Kafka 4.4.0).

Kafka: GroupMetadataManager.streamsGroupDescribe, StreamsGroup.asDescribedGroup,
StreamsGroupTopologyDescriptionManager.attachTopologyDescriptions.
"""

from __future__ import annotations

from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.shard import Shard
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
    return DescribeStreamsGroupResponse(
        NO_ERROR,
        group.name,
        group.state.value,
        group.epoch,
        group.assignment_epoch,
        _topology(group),
        tuple([_member(group, member) for member in group.members.values()]),
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


def _member(group: StreamsGroup, member: StreamsMember) -> DescribedStreamsMember:
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
