"""Members join and leave a streams group; wrong heartbeats are refused.

Kafka: GroupMetadataManager.getOrCreateStreamsGroup, throwIfStreamsGroupIsFull, streamsGroupLeave,
throwIfRequestContainsInvalidTasks, GroupCoordinatorService's throwIfStreamsGroupHeartbeatRequestIsInvalid and
...IsUsingUnsupportedFeatures.
"""

from __future__ import annotations

from typing import Any

from groupstorm.assignors.streams.groups import TaskIds
from groupstorm.coordinator.changes import write_records
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused, refuse_blank
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import group_of_kind, leave, on_member_timer, refuse_if_full
from groupstorm.coordinator.records import AppendCause, GroupTombstone
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.targets import delay_is_over
from groupstorm.coordinator.streams.topology import ConfiguredTopology
from groupstorm.coordinator.timers import STREAMS_DELAY, Timer


def group_of(shard: Shard, name: str, missing: str = "Streams group") -> StreamsGroup:
    """The group; `Refused` (GROUP_ID_NOT_FOUND) if there is none, or one of another kind."""
    return group_of_kind(shard.groups.get(name), name, StreamsGroup, missing)


def group_to_join(shard: Shard, name: str, records: list[Any]) -> StreamsGroup:
    """The group; if there is none, or an empty classic one, a new one that its records bring into being."""
    group = shard.groups.get(name)
    if group is not None and group.kind is GroupType.CLASSIC and group.state.value == "Empty":
        records.append(GroupTombstone(name))
    elif group is not None:
        return group_of(shard, name)
    return StreamsGroup.new(name, shard.config.compatibility)


def check_room(shard: Shard, group: StreamsGroup, request: StreamsGroupHeartbeat) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    Kafka 4.3.1 refuses its own members, too.
    """
    is_own = request.member_id in group.members or request.group_instance_id in group.static_members
    refuse_if_full(group, shard.config.streams.max_size, is_own and shard.config.compatibility.is_4_4)


def leave_group(shard: Shard, request: StreamsGroupHeartbeat, reply: PendingReply) -> Write | None:
    """The member leaves, and may wish that the whole application does."""
    group = group_of(shard, request.group, "Group")
    if request.shutdown and group.shutdown_member is None:
        group.shutdown_member = request.member_id  # before the member is looked up, as in Kafka
    response = StreamsGroupHeartbeatResponse(NO_ERROR, request.member_id, request.member_epoch)
    return leave(shard, group, request, reply, response)


def on_streams_timer(shard: Shard, group: StreamsGroup, timer: Timer) -> Write | None:
    """A member's time is over, or the group's initial delay."""
    if timer.key[0] is not STREAMS_DELAY:
        return on_member_timer(shard, group, timer)
    records = delay_is_over(shard, group)
    return write_records(shard, group.name, records, AppendCause.TARGETS_COMPUTED) if records else None


def invalid(message: str) -> Refused:
    """The refusal of a request that is wrong."""
    return Refused(Error.INVALID_REQUEST, message)


def check_heartbeat(compatibility: Compatibility, request: StreamsGroupHeartbeat) -> None:
    """Refuse a heartbeat whose fields are wrong, whatever the group."""
    topology = request.topology
    if not compatibility.is_4_4:
        _check_4_3(request)
    if topology is not None and any(one.source_regexes for one in topology.subtopologies):
        raise invalid("Regular expressions for source topics are not supported yet.")
    refuse_blank(request.member_id, "MemberId")
    refuse_blank(request.group, "GroupId")
    refuse_blank(request.group_instance_id, "InstanceId")
    refuse_blank(request.rack, "RackId")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == LEAVE_STATIC_EPOCH and request.group_instance_id is None:
        raise invalid("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        raise invalid(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    if len({tasks is None for tasks in (request.active, request.standby, request.warmup)}) > 1:
        raise invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and topology is not None:
        raise invalid("Topology can only be provided when (re-)joining.")


def _check_4_3(request: StreamsGroupHeartbeat) -> None:
    """Kafka 4.3.1 has no static members, task offsets and warm-up tasks in streams groups."""
    for value, message in (
        (request.group_instance_id, "Static membership is not yet supported."),
        (request.task_offsets, "TaskOffsets are not supported yet."),
        (request.task_end_offsets, "TaskEndOffsets are not supported yet."),
        (request.warmup or None, "WarmupTasks are not supported yet."),
    ):
        if value is not None:
            raise invalid(message)


def _check_join(request: StreamsGroupHeartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        raise invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active),
        ("StandbyTasks", request.standby),
        ("WarmupTasks", request.warmup),
    ):
        if tasks is None or tasks:
            raise invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise invalid("Topology must be non-null when (re-)joining.")
    for topic in (topic for one in request.topology.subtopologies for topic in one.changelogs):
        if topic.partitions:
            raise Refused(
                Error.STREAMS_INVALID_TOPOLOGY,
                f"Changelog topic {topic.name} must have an undefined partition count, "
                f"but it is set to {topic.partitions}.",
            )


def check_tasks(configured: ConfiguredTopology, tasks: TaskIds) -> None:
    """Refuse tasks that the topology does not have."""
    for name, numbers in tasks:
        subtopology = (configured.subtopologies or {}).get(name)
        if subtopology is None:
            raise invalid(f"Subtopology {name} does not exist in the topology.")
        for number in numbers:
            if not 0 <= number < subtopology.tasks:
                raise invalid(
                    f"Task {number} for subtopology {name} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.tasks}"
                )
