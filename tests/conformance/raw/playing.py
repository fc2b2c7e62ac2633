"""Plays one case on one broker: connections, what clients remember, what was answered and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.consumer_protocol import Subscription, encode_subscription
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.wire.connection import Api, Connection, RequestTypes
from groupstorm.coordinator.server.codec import CodecError
from groupstorm.problems import InputError
from tests.conformance.raw.normal import build, missing, plain
from tests.conformance.raw.requests import APIS, Subscribed, describe, heartbeat
from tests.conformance.raw.steps import (
    PATIENCE_MS,
    Beat,
    Case,
    GenerationOf,
    Hear,
    Parked,
    Request,
    Send,
    Step,
    Timed,
    Until,
)

#: How often a condition is looked at, and how often members that keep their sessions say so.
POLL_S = 0.005
BEAT_S = 0.05
#: Connections to a member's own heartbeats and to look at the group: a parked request mutes its connection.
_HEARTBEATS, _LOOKING = "heartbeats", "looking"


class Measured(NamedTuple):
    """One time of one broker."""

    what: str
    expected_ms: int
    ms: float


class StepFailed(AssertionError):
    """A broker did not answer as the case says; the message has the answers so far."""


@dataclass
class Played:
    """What came of a case: the answers as plain values, one per answer heard, and the times."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    times: list[Measured] = field(default_factory=list)
    failure: str = ""


@dataclass
class _Client:
    member_ids: list[str] = field(default_factory=list)
    generation: int = -1
    waiting: dict[str, asyncio.Task[tuple[Any, float]]] = field(default_factory=dict)


class _Ids(NamedTuple):
    """What the group and topic of a case are called in a run."""

    group: str
    topic: str
    topic_id: str


class Player:
    """One case in progress."""

    def __init__(self, broker: RunningBroker, case: Case, group: str, topic: str, topic_id: str) -> None:
        self._endpoint = broker.bootstrap[0]
        self._case = case
        self._ids = _Ids(group, topic, topic_id)
        self._clients: dict[str, _Client] = {}
        self._connections: dict[tuple[str, str], Connection] = {}
        self._marks: dict[str, float] = {}
        self._heard: list[tuple[str, Any]] = []
        self._played = Played()

    async def play(self) -> Played:
        """All steps; a failure is part of the result, so that cases can be played side by side."""
        try:
            for number, step in enumerate(self._case.flat, start=1):
                try:
                    async with asyncio.timeout(PATIENCE_MS / 1000):
                        await self._take(step)
                except (StepFailed, TimeoutError, OSError, InputError, CodecError) as problem:
                    why = str(problem) or f"nothing within {PATIENCE_MS} ms"
                    self._played.failure = f"step {number}, {step}: {why}"
                    break
        finally:
            waiting = [task for client in self._clients.values() for task in client.waiting.values()]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for connection in self._connections.values():
                connection.abort()
        self._played.answers = [self._shown(who, answer) for who, answer in self._heard]
        return self._played

    async def _take(self, step: Step) -> None:
        match step:
            case Send():
                await self._send(step)
            case Hear():
                await self._while_beating(step.beating, self._hear(step))
            case Parked():
                await self._check_parked(step)
            case Until():
                await self._while_beating(step.beating, self._until(step))
            case Beat():
                await self._while_beating(step.who, asyncio.sleep(step.for_ms / 1000))
                self._mark(step.mark, time.monotonic())

    async def _send(self, step: Send) -> None:
        client = self._client(step.who)
        if step.over in client.waiting:
            raise StepFailed("its last request is not answered yet")
        connection = await self._connection(step.who, step.over)
        self._mark(step.mark, time.monotonic())
        client.waiting[step.over] = asyncio.ensure_future(self._asked(connection, step.who, step.request))
        await asyncio.sleep(0)  # it is written when the next step begins

    async def _asked(self, connection: Connection, who: str, request: Request) -> tuple[Any, float]:
        answer = await self._exchange(connection, who, request)
        return answer, time.monotonic()

    async def _exchange(self, connection: Connection, who: str, request: Request) -> Any:
        api = APIS[request.api]
        exact = Api(api, request.api, request.version, request.version)

        def make(types: RequestTypes) -> Any:
            return build(types.root, self._filled(who, request.fields))

        return await connection.ask(exact, request.version, make, PATIENCE_MS)

    async def _hear(self, step: Hear) -> None:
        client = self._client(step.who)
        task = client.waiting[step.over]
        answer, heard_s = await asyncio.shield(task)
        del client.waiting[step.over]
        self._remember(client, answer)
        self._heard.append((step.who, answer))
        shown = self._shown(step.who, answer)
        if problem := missing(step.expect, shown):
            raise StepFailed(f"{problem}, in {shown}")
        self._mark(step.mark, heard_s)
        self._measure(step.timed, heard_s)

    def _shown(self, who: str, answer: Any) -> dict[str, Any]:
        """As plain values. At the end of a case every member id has its client, before it may not yet."""
        shown = {"who": who, "answer": type(answer).__name__, **plain(answer, self._names())}
        if shown["answer"] == "ListGroupsResponse":  # with those of other cases
            shown["groups"] = [group for group in shown["groups"] if group["group_id"] == "<group>"]
        return shown

    async def _check_parked(self, step: Parked) -> None:
        task = self._client(step.who).waiting[step.over]
        if task.done():
            answer, _ = task.result()
            raise StepFailed(f"it was answered: {plain(answer, self._names())}")

    async def _until(self, step: Until) -> None:
        connection = await self._connection("", _LOOKING)
        seen: dict[str, Any] = {}
        while (seen.get("group_state"), len(seen.get("members", ()))) != (step.state, step.members):
            if seen:
                await asyncio.sleep(POLL_S)
            answer = await self._exchange(connection, "", describe(version=5))
            seen = plain(answer, self._names())["groups"][0]
        now_s = time.monotonic()
        self._mark(step.mark, now_s)
        self._measure(step.timed, now_s)

    async def _while_beating(self, members: Sequence[str], waited_for: Any) -> None:
        beats = [asyncio.ensure_future(self._beat(who)) for who in members]
        try:
            await waited_for
        finally:
            for beat in beats:
                beat.cancel()

    async def _beat(self, who: str) -> None:
        connection = await self._connection(who, _HEARTBEATS)
        while True:
            await self._exchange(connection, who, heartbeat())
            await asyncio.sleep(BEAT_S)

    # -- what clients know ---------------------------------------------------------------------

    def _client(self, who: str) -> _Client:
        return self._clients.setdefault(who, _Client())

    async def _connection(self, who: str, over: str) -> Connection:
        key = who, over
        if key not in self._connections:
            self._connections[key] = await Connection.open(self._endpoint, f"client-{who}", PATIENCE_MS)
        return self._connections[key]

    def _remember(self, client: _Client, answer: Any) -> None:
        if type(answer).__name__ != "JoinGroupResponse":
            return
        known = {one for other in self._clients.values() for one in other.member_ids}
        if answer.member_id and answer.member_id not in known:
            client.member_ids.append(answer.member_id)
        if answer.generation_id >= 0:
            client.generation = answer.generation_id

    def _names(self) -> dict[str, str]:
        names = {self._ids.group: "<group>", self._ids.topic: "<topic>", self._ids.topic_id: "<topic id>"}
        for who, client in self._clients.items():
            for count, member_id in enumerate(client.member_ids):
                names[member_id] = "{" + who + "'" * count + "}"
        return names

    def _filled(self, who: str, value: Any) -> Any:
        """Placeholders in a request's fields, replaced by what this run has."""
        if isinstance(value, GenerationOf):
            return self._client(who if value.who == "me" else value.who).generation + value.plus
        if isinstance(value, Subscribed):
            owned = [TopicPartition(self._ids.topic, partition) for partition in value.owned]
            return encode_subscription(Subscription((self._ids.topic,), None, tuple(owned)))
        if isinstance(value, str):
            return self._text(who, value)
        if isinstance(value, Mapping):
            return {name: self._filled(who, one) for name, one in value.items()}
        if isinstance(value, tuple | list):
            return [self._filled(who, one) for one in value]
        return value

    def _text(self, who: str, text: str) -> str:
        if "{" not in text:
            return text
        ids = self._client(who).member_ids
        text = text.replace("{me}", ids[-1] if ids else "")
        for real, shown in self._names().items():
            if shown.startswith("{"):
                text = text.replace(shown, real)
        for name, value in self._ids._asdict().items():
            text = text.replace("{" + name + "}", value)
        return text

    def _mark(self, name: str, at_s: float) -> None:
        if name:
            self._marks[name] = at_s

    def _measure(self, timed: Timed | None, at_s: float) -> None:
        if timed is not None:
            ms = (at_s - self._marks[timed.mark]) * 1000
            self._played.times.append(Measured(timed.what, timed.expected_ms, ms))
