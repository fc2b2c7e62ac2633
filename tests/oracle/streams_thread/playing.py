"""Plays one situation with our member of a streams group: after each step what it did, and what it is then.

The thread has the sub-topologies 0, which reads t, and 1, which reads u and v (ScriptedThread.java).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from groupstorm.assignors.streams.groups import Task as GroupTask
from groupstorm.assignors.streams.groups import TaskIds
from groupstorm.assignors.streams.model import Task, TaskPartition
from groupstorm.assignors.userdata.streams import TaskId
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import (
    CallbackKind,
    GroupOperation,
    HeartbeatRequest,
    RunCallback,
    StopProcessing,
)
from groupstorm.clients.streams.group_member import StreamsGroupMember, ThreadFacts
from groupstorm.clients.streams.topology import Topology
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.streams.member import flat
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from tests.oracle.group_member.playing import Json, Player
from tests.oracle.group_member.situation import Situation

_SOURCES = {0: "t", 1: "uv"}
#: Tasks of each sub-topology.
TASKS = 3
_TOPOLOGY = Topology(
    tuple(
        Task(TaskId("", number, partition), False, tuple(TaskPartition(topic, partition) for topic in topics))
        for number, topics in _SOURCES.items()
        for partition in range(TASKS)
    )
)
_METHODS = {
    CallbackKind.ASSIGNED: "onTasksAssigned",
    CallbackKind.REVOKED: "onTasksRevoked",
    CallbackKind.LOST: "onAllTasksLost",
}


def play(situation: Situation) -> list[Json]:
    """As ScriptedThread answers."""
    return _ThreadPlayer(situation).answers()


class _ThreadPlayer(Player):
    def __init__(self, situation: Situation) -> None:
        self._offsets: dict[GroupTask, int] = {}
        self._end_offsets: dict[GroupTask, int] = {}
        super().__init__(situation)

    def _new_member(self, config: ConsumerConfig) -> StreamsGroupMember:
        facts = ThreadFacts(
            str(UUID(int=7)),
            _TOPOLOGY,
            lambda: dict(self._offsets),
            lambda: dict(self._end_offsets),
            ("h", 1),
            (("zone", "z"),),
        )
        return StreamsGroupMember(config, "m", facts, 0)

    def _do(self, name: str, value: Any) -> None:
        match name:
            case "offsets":
                self._offsets = _offsets(value)
            case "end_offsets":
                self._end_offsets = _offsets(value)
            case _:
                super()._do(name, value)

    def _told(self, operation: GroupOperation) -> Sequence[Json]:
        """Partitions are stopped without a word: Kafka's manager tells nobody."""
        return () if isinstance(operation, StopProcessing) else super()._told(operation)

    def _response(self, value: dict[str, Any]) -> StreamsGroupHeartbeatResponse:
        active, standby, warmup = (
            tuple((name, tuple(numbers)) for name, numbers in value[kind].items()) if kind in value else None
            for kind in ("active", "standby", "warmup")
        )
        return StreamsGroupHeartbeatResponse(
            Error[value.get("error", "NONE")],
            "m",
            value.get("epoch", 0),
            value.get("interval", 0),
            tuple((code, "") for code in value.get("status", ())),
            active,
            standby,
            warmup,
            endpoint_epoch=value.get("endpoint_epoch", 0),
            acceptable_recovery_lag=value.get("recovery_lag", 0),
            task_offset_interval_ms=value.get("offset_interval", 0),
        )

    def _callback_fields(self, call: RunCallback) -> Json:
        fields: dict[str, Json] = {"method": _METHODS[call.kind]}
        if call.kind is CallbackKind.REVOKED:
            numbers = _TOPOLOGY.reading(call.partitions)
            fields["active"] = [_TOPOLOGY.names[number] for number in numbers]
        elif call.kind is CallbackKind.ASSIGNED:
            assert isinstance(self._member, StreamsGroupMember)
            tasks, ready = self._member.assignment
            fields |= {kind: _names(getattr(tasks, kind)) for kind in ("active", "standby", "warmup")}
            fields |= {"ready": ready, "added": [str(one) for one in call.partitions]}
        return fields

    def _fields(self, request: HeartbeatRequest) -> Json:
        assert isinstance(request, StreamsGroupHeartbeat)
        topology = request.topology
        return {
            "group": request.group,
            "epoch": request.member_epoch,
            "instance": request.group_instance_id,
            "rack": request.rack,
            "rebalance_timeout": request.rebalance_timeout_ms,
            "process": request.process,
            "endpoint_epoch": request.endpoint_epoch,
            "endpoint": None if request.endpoint is None else "{}:{}".format(*request.endpoint),
            "tags": len(request.tags or ()),
            "topology": None
            if topology is None
            else [f"{one.id}:{','.join(one.sources)}" for one in topology.subtopologies],
            "active": _listed(request.active),
            "standby": _listed(request.standby),
            "warmup": _listed(request.warmup),
            "offsets": _told_offsets(request.task_offsets),
            "end_offsets": _told_offsets(request.task_end_offsets),
            "shutdown": request.shutdown,
        }


def _offsets(value: dict[str, int]) -> dict[GroupTask, int]:
    return {(name.split("_")[0], int(name.split("_")[1])): offset for name, offset in value.items()}


def _names(tasks: Iterable[GroupTask]) -> list[str]:
    return [f"{subtopology}_{number}" for subtopology, number in sorted(tasks)]


def _listed(tasks: TaskIds | None) -> list[str] | None:
    return None if tasks is None else _names(flat(tasks))


def _told_offsets(offsets: tuple[tuple[str, int, int], ...] | None) -> dict[str, int] | None:
    if offsets is None:
        return None
    return {f"{subtopology}_{number}": offset for subtopology, number, offset in sorted(offsets)}
