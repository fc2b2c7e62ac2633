"""Checks of heartbeats to streams groups: fields that are wrong by themselves, tasks that do not exist.

Kafka: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid and ...IsUsingUnsupportedFeatures,
GroupMetadataManager.throwIfRequestContainsInvalidTasks.
"""

from __future__ import annotations

from groupstorm.assignors.streams.groups import TaskIds
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error, Refused, refuse_blank
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat
from groupstorm.coordinator.streams.topology import ConfiguredTopology


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
