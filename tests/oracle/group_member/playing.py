"""Plays one situation with our member: after each step what it did, and what it is then."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.operations import (
    CallbackKind,
    CommitWithEpoch,
    Disconnected,
    FindCoordinator,
    GroupOperation,
    HeartbeatRequest,
    HeartbeatResponse,
    Left,
    RefreshTopics,
    ReportError,
    RunCallback,
    SendHeartbeat,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse
from tests.oracle.group_member.situation import Situation, Step

Json = Any

_CLOSES: dict[str, bool | None] = {"DEFAULT": None, "LEAVE_GROUP": True, "REMAIN_IN_GROUP": False}


def topic_id(name: str) -> UUID:
    """A topic's id is made of its name's letter, as in ScriptedMember."""
    return UUID(int=0xFEED << 64 | ord(name))


def play(situation: Situation) -> list[Json]:
    """As ScriptedMember answers."""
    return Player(situation).answers()


def config_of(situation: Situation) -> ConsumerConfig:
    options = {name.replace(".", "_"): value for name, value in situation.options.items()}
    # how an application closes is an argument in Kafka, and an option here
    closes = [step[1] for step in situation.steps if step[0] == "close"]
    leaves = _CLOSES[closes[0]] if closes else None
    return ConsumerConfig("g", "c", (), leave_group_on_close=leaves, **options)  # type: ignore[arg-type]


class Player:
    """Our member in one situation."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._now_ms = 0
        self._names: dict[UUID, str] = {}
        #: What the last step of the network thread returned.
        self._next_ms = 0
        #: Commits that have no answer.
        self._committing = 0
        self._seen: list[Json] = []
        self._positions: set[TopicPartition] = set()
        self._callbacks: deque[RunCallback] = deque()
        self._in_flight: deque[SendHeartbeat] = deque()
        self._member = self._new_member(config_of(situation))
        self._member.coordinator_found()

    def answers(self) -> list[Json]:
        """After each step what the member did, and what it is then."""
        return [self._take(step) for step in self._situation.steps]

    def _new_member(self, config: ConsumerConfig) -> HeartbeatingMember[Any]:
        return ConsumerGroupMember(config, "m", lambda: self._names, self._has_positions, 0)

    def _has_positions(self) -> bool:
        return bool(self._positions & set(self._member.owned))

    def _take(self, step: Step) -> Json:
        self._do(step[0], step[1] if len(step) > 1 else None)
        member, now_ms = self._member, self._now_ms
        self._positions &= set(member.owned)
        self._take_operations()
        seen, self._seen = self._seen, []
        return {
            "state": member.state.value,
            "epoch": member.epoch,
            "owned": [str(partition) for partition in member.owned],
            "next": self._next_ms,
            "wait": member.poll_wait_ms(now_ms),
            "coordinator": member.coordinator_known,
            "seen": seen,
        }

    def _take_operations(self) -> None:
        self._seen += [told for one in self._member.operations() for told in self._told(one)]

    def _do(self, name: str, value: Any) -> None:  # noqa: C901, PLR0912  # a table, one row a step
        member, now_ms = self._member, self._now_ms
        match name:
            case "subscribe":
                member.subscribe(frozenset(value))
            case "subscribe_regex":
                member.subscribe(regex=value)
            case "unsubscribe":
                member.unsubscribe()
            case "close":
                member.close()
            case "end":
                member.end()
            case "poll":
                member.poll(now_ms)
            case "step":
                self._next_ms = member.step(now_ms)
            case "advance":
                self._now_ms += value
            case "answer":
                self._answer(self._response(value))
            case "disconnect":
                self._answer(Disconnected())
            case "unsupported":
                self._answer(self._response({"error": "UNSUPPORTED_VERSION"}))
            case "commit_ends":
                self._next_ms = member.step(now_ms)
                self._committed(Error.NONE)
            case "commit_answer":
                self._committed(Disconnected() if value == "DISCONNECT" else Error[value])
            case "callback_begins" | "callback_ends" | "callback_fails":
                self._callback(name)
            case "topic":
                self._names[topic_id(value)] = value
            case "no_topic":
                self._names.pop(topic_id(value), None)
            case "coordinator":
                member.coordinator_known = value
            case _:
                raise ValueError(name)

    def _callback(self, name: str) -> None:
        if not self._callbacks:
            return
        if name != "callback_begins":
            self._member.callback_ended(failed=name == "callback_fails")
        elif self._member.callback_begins():
            if self._callbacks[0].kind is CallbackKind.ASSIGNED:
                self._positions.update(self._callbacks[0].partitions)
            return
        self._callbacks.popleft()

    def _committed(self, result: Error | Disconnected) -> None:
        self._take_operations()
        if self._committing:
            self._committing -= 1
            self._member.committed(result, self._now_ms)

    def _answer(self, response: HeartbeatResponse | Disconnected) -> None:
        if self._in_flight:
            self._member.answered(self._in_flight.popleft(), response, self._now_ms)

    def _response(self, value: dict[str, Any]) -> HeartbeatResponse:
        assignment = value.get("assignment")
        return ConsumerGroupHeartbeatResponse(
            Error[value.get("error", "NONE")],
            "m",
            value.get("epoch", 0),
            value.get("interval", 0),
            None
            if assignment is None
            else {topic_id(name): tuple(numbers) for name, numbers in assignment.items()},
        )

    def _told(self, operation: GroupOperation) -> Sequence[Json]:  # noqa: PLR0911  # a table
        match operation:
            case SendHeartbeat(request):
                self._in_flight.append(operation)
                return ({"sent": self._fields(request)},)
            case RunCallback():
                self._callbacks.append(operation)
                return ({"callback": self._callback_fields(operation)},)
            case StopProcessing(partitions):
                return ({"stop": [str(one) for one in partitions]},)
            case CommitWithEpoch(epoch):
                self._committing += 1
                return ({"commit": epoch},)
            case RefreshTopics():
                return ({"metadata": True},)
            case ReportError(error):
                return ({"failed": error},)
            case Left():
                return ({"left": True},)
            case FindCoordinator():
                return ()  # whether the coordinator is known is compared after each step

    def _callback_fields(self, call: RunCallback) -> Json:
        return {"method": call.kind.value, "partitions": [str(one) for one in call.partitions]}

    def _fields(self, request: HeartbeatRequest) -> Json:
        assert isinstance(request, ConsumerGroupHeartbeat)
        return {
            "group": request.group,
            "epoch": request.member_epoch,
            "instance": request.group_instance_id,
            "rack": request.rack,
            "rebalance_timeout": request.rebalance_timeout_ms,
            "topics": None if request.topics is None else list(request.topics),
            "regex": request.regex,
            "assignor": request.assignor,
            "owned": None
            if request.owned is None
            else {chr(topic.int & 0xFFFF): list(numbers) for topic, numbers in request.owned},
        }
