"""Drives a broker without sockets; the test advances the clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.changes import Change
from groupstorm.broker.config import NEWEST
from groupstorm.broker.journal import decode, encode
from groupstorm.broker.requests import Peer
from groupstorm.protocol.endpoints import Endpoint
from tests.broker import wire

PEER = Peer("/127.0.0.1", Endpoint("127.0.0.1", 9092))


class Driver:
    """`ask` returns the response; `send` returns a connection, whose response may come later, into
    `answers`."""

    def __init__(
        self,
        options: dict[str, str] | None = None,
        topics: dict[str, int] | None = None,
        brokers: int = 1,
        release: str = NEWEST,
    ) -> None:
        #: The time of the batches that `wire.batch` makes.
        self.now_ms = 1_700_000_000_000
        self._options, self._brokers = options or {}, brokers
        self.broker = make_broker(self._options, topics or {}, brokers, release, now_ms=self.now_ms)
        #: Which of the brokers is asked; None: the first.
        self.node: int | None = None
        self.answers: dict[int, Any] = {}
        self.closed: dict[int, str] = {}
        #: How long quotas mute connections.
        self.muted_ms: dict[int, int] = {}
        self.events: list[Any] = []
        #: Since the broker began, from the shortest journal of its state then.
        self.changes: list[Change] = [*self.broker.snapshot()]
        self._connections = itertools.count(1)
        self._asked: dict[int, tuple[int, int]] = {}

    def restart(
        self,
        journal: Iterable[Change] | None = None,
        options: dict[str, str] | None = None,
        brokers: int | None = None,
    ) -> None:
        """Go on with a new broker, from a journal as bytes; by default the shortest one of the present state,
        with the same options and as many brokers."""
        changes, _ = decode(encode(self.broker.snapshot() if journal is None else journal))
        own = self._options if options is None else options
        count = self._brokers if brokers is None else brokers
        self.broker = make_broker(own, {}, count, journal=changes, now_ms=self.now_ms)
        self.changes = [*self.broker.snapshot()]

    def ask(self, api_key: int, version: int, **values: Any) -> Any:
        connection = self.send(api_key, version, **values)
        assert connection not in self.closed, self.closed
        if connection not in self.answers:
            self.advance(0)  # a long request takes many turns
        return self.answers[connection]

    def send(self, api_key: int, version: int, **values: Any) -> int:
        connection = next(self._connections)
        self._asked[connection] = (api_key, version)
        frame = wire.request(api_key, version, connection, **values)
        self.collect(self.broker.receive(connection, PEER._replace(node=self.node), frame, self.now_ms))
        return connection

    def advance(self, duration_ms: int) -> None:
        """Let time pass, timer by timer."""
        until_ms = self.now_ms + duration_ms
        while (deadline_ms := self.broker.next_deadline()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.collect(self.broker.fire(self.now_ms))
        self.now_ms = until_ms

    def collect(self, effects: Any) -> None:
        self.events.extend(effects.events)
        self.changes.extend(effects.changes)
        for connection, payload, close, mute_ms in effects.outputs:
            assert connection not in self.answers, "answered twice"
            assert connection not in self.closed, "answered after it was closed"
            if payload is not None:
                correlation_id, message = wire.parse_response(*self._asked[connection], payload[4:])
                assert correlation_id == connection
                self.answers[connection] = message
            if close is not None:
                self.closed[connection] = close
            if mute_ms:
                self.muted_ms[connection] = mute_ms


#: Restarts from all changes, or from the shortest journal.
RESTARTS: dict[str, Callable[[Driver], None]] = {
    "all changes": lambda driver: driver.restart(driver.changes),
    "snapshot": Driver.restart,
}
