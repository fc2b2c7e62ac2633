"""Plays one case on one broker: connections, the clients' memory, answers and their times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupstorm.broker.apis import APIS
from groupstorm.clients.wire.connection import BrokerConnection, ClientApi, RequestTypes
from groupstorm.problems import InputError
from groupstorm.protocol.codec import CodecError
from groupstorm.protocol.endpoints import Endpoint
from tests.conformance.raw.memory import Ids, Memory
from tests.conformance.raw.normal import build, missing
from tests.conformance.raw.requests import describe, heartbeat
from tests.conformance.raw.steps import (
    TIMEOUT_MS,
    Again,
    Case,
    Parked,
    Receive,
    Request,
    Send,
    SendHeartbeats,
    Step,
    Timed,
    Until,
)

_KEYS = {api.name: key for key, api in APIS.items()}
#: How often a condition is looked at, and how often members that keep their sessions say so.
POLL_S = 0.005
BEAT_S = 0.05
#: Connections to a member's own heartbeats and to look at the group: a parked request mutes its connection.
_HEARTBEATS, _LOOKING = "heartbeats", "looking"
#: And the one to the coordinator of transactions, which may be another broker than the group's.
_TRANSACTIONS = "transactions"
_OF_TRANSACTIONS = ("InitProducerId", "AddOffsetsToTxn", "EndTxn")


class Measured(NamedTuple):
    """One time of one broker."""

    what: str
    expected_ms: int
    ms: float


class StepFailed(AssertionError):
    """A broker did not answer as the case says; the message has the answers so far."""


@dataclass
class Played:
    """The result of a case: the received answers as plain values, and the times.

    ``unavailable``: why the case was not played.
    """

    answers: list[dict[str, Any]] = field(default_factory=list)
    times: list[Measured] = field(default_factory=list)
    failure: str = ""
    unavailable: str = ""


class Player:
    """One case in progress."""

    def __init__(self, coordinator: Endpoint, case: Case, ids: Ids) -> None:
        self._coordinator = coordinator
        self._case = case
        self._memory = Memory(ids, coordinator)
        #: (who, over which connection) -> the answer that no step has received yet, and when it came
        self._waiting: dict[tuple[str, str], asyncio.Task[tuple[Any, float]]] = {}
        self._connections: dict[tuple[str, str], BrokerConnection] = {}
        self._marks: dict[str, float] = {}
        self._received: list[tuple[str, Any]] = []
        self._played = Played()

    async def play(self) -> Played:
        """All steps; a failure is part of the result, so that cases can be played side by side."""
        try:
            for number, step in enumerate(self._case.flat, start=1):
                try:
                    async with asyncio.timeout(TIMEOUT_MS / 1000):
                        await self._take(step)
                except (StepFailed, TimeoutError, OSError, InputError, CodecError) as problem:
                    why = str(problem) or f"nothing within {TIMEOUT_MS} ms"
                    self._played.failure = f"step {number}, {step}: {why}"
                    break
        finally:
            for task in self._waiting.values():
                task.cancel()
            await asyncio.gather(*self._waiting.values(), return_exceptions=True)
            for connection in self._connections.values():
                connection.abort()
        self._played.answers = [self._memory.shown(who, answer) for who, answer in self._received]
        return self._played

    async def _take(self, step: Step) -> None:
        match step:
            case Send():
                await self._send(step)
            case Receive():
                await self._while_sending_heartbeats(step.heartbeats_of, self._receive(step))
            case Again():
                await self._again(step)
            case Parked():
                await self._check_parked(step)
            case Until():
                await self._while_sending_heartbeats(step.heartbeats_of, self._until(step))
            case SendHeartbeats():
                await self._while_sending_heartbeats(step.who, asyncio.sleep(step.for_ms / 1000))
                self._mark(step.mark, time.monotonic())

    async def _send(self, step: Send) -> None:
        if (step.who, step.over) in self._waiting:
            raise StepFailed("its last request is not answered yet")
        over = _TRANSACTIONS if step.request.api in _OF_TRANSACTIONS else step.over
        connection = await self._connection(step.who, over)
        self._mark(step.mark, time.monotonic())
        asked = self._asked(connection, step.who, step.request)
        self._waiting[step.who, step.over] = asyncio.ensure_future(asked)
        await asyncio.sleep(0)  # it is written when the next step begins

    async def _asked(self, connection: BrokerConnection, who: str, request: Request) -> tuple[Any, float]:
        answer = await self._exchange(connection, who, request)
        return answer, time.monotonic()

    async def _exchange(self, connection: BrokerConnection, who: str, request: Request) -> Any:
        api = _KEYS[request.api]
        exact = ClientApi(api, request.api, request.version, request.version)

        def make(types: RequestTypes) -> Any:
            return build(types.root, self._memory.filled(who, request.fields))

        return await connection.ask(exact, request.version, make, TIMEOUT_MS)

    async def _receive(self, step: Receive) -> None:
        answer, received_s = await asyncio.shield(self._waiting[step.who, step.over])
        del self._waiting[step.who, step.over]
        self._memory.remember(step.who, answer)
        self._received.append((step.who, answer))
        shown = self._memory.shown(step.who, answer)
        if problem := missing(step.expect, shown):
            raise StepFailed(f"{problem}, in {shown}")
        self._mark(step.mark, received_s)
        self._measure(step.timed, received_s)

    async def _again(self, step: Again) -> None:
        over = _TRANSACTIONS if step.request.api in _OF_TRANSACTIONS else ""
        connection = await self._connection(step.who, over)
        while True:
            answer = await self._exchange(connection, step.who, step.request)
            self._memory.remember(step.who, answer)
            if not missing(step.expect, self._memory.shown(step.who, answer)):
                break
            await asyncio.sleep(POLL_S)
        self._received.append((step.who, answer))

    async def _check_parked(self, step: Parked) -> None:
        task = self._waiting[step.who, step.over]
        if task.done():
            answer, _ = task.result()
            raise StepFailed(f"it was answered: {self._memory.shown(step.who, answer)}")

    async def _until(self, step: Until) -> None:
        connection = await self._connection("", _LOOKING)
        seen: dict[str, Any] = {}
        while (seen.get("group_state"), len(seen.get("members", ()))) != (step.state, step.members):
            if seen:
                await asyncio.sleep(POLL_S)
            answer = await self._exchange(connection, "", describe(version=5))
            seen = self._memory.shown("", answer)["groups"][0]
        now_s = time.monotonic()
        self._mark(step.mark, now_s)
        self._measure(step.timed, now_s)

    async def _while_sending_heartbeats(self, members: Sequence[str], waited_for: Any) -> None:
        tasks = [asyncio.ensure_future(self._send_heartbeats(who)) for who in members]
        try:
            await waited_for
        finally:
            for task in tasks:
                task.cancel()

    async def _send_heartbeats(self, who: str) -> None:
        connection = await self._connection(who, _HEARTBEATS)
        while True:
            await self._exchange(connection, who, heartbeat())
            await asyncio.sleep(BEAT_S)

    async def _connection(self, who: str, over: str) -> BrokerConnection:
        key = who, over
        if key not in self._connections:
            endpoint = self._memory.transaction_coordinator if over == _TRANSACTIONS else self._coordinator
            self._connections[key] = await BrokerConnection.open(endpoint, f"client-{who}", TIMEOUT_MS)
        return self._connections[key]

    def _mark(self, name: str, at_s: float) -> None:
        if name:
            self._marks[name] = at_s

    def _measure(self, timed: Timed | None, at_s: float) -> None:
        if timed is not None:
            ms = (at_s - self._marks[timed.mark]) * 1000
            self._played.times.append(Measured(timed.what, timed.expected_ms, ms))
