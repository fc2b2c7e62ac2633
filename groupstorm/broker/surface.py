"""The surface of a broker without sockets: its coordinator, clients, outputs, events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from groupstorm.broker.authorization import ANONYMOUS
from groupstorm.broker.changes import Change
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.messages import Request
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.topics import Topic
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns


class Coordinator(Protocol):
    """The part of `groupstorm.coordinator.GroupCoordinator` that the broker calls."""

    def handle(
        self, request: Request, now_ms: int, token: Any, may_match: Callable[[str], bool] | None, /
    ) -> Effects: ...

    def update_topics(
        self, changed: Mapping[str, Topic], removed: Sequence[str], now_ms: int, /
    ) -> Effects: ...

    def set_group_options(self, group: str, options: Mapping[str, int | str], /) -> None: ...

    def take_long_work(self) -> list[Turns[Effects]]: ...

    def end_transaction(self, producer_id: int, is_commit: bool, now_ms: int, /) -> Effects: ...

    def move(self, groups: Iterable[str], now_ms: int, /) -> Effects: ...

    def unload(self, now_ms: int, /) -> Effects: ...

    def expire_session(self, group: str, member_id: str, now_ms: int, /) -> Effects: ...

    def snapshot(self) -> list[Record]: ...

    @property
    def groups(self) -> Sequence[str]: ...

    def next_deadline(self) -> int | None: ...

    def fire(self, now_ms: int, /) -> Effects: ...


class Peer(NamedTuple):
    """The client of a connection. ``host``: its address as Java prints it; ``reached_at``: the broker's
    address as the client sees it; ``node``: the id of that broker, None: the first; ``principal``: who it has
    proved to be."""

    host: str
    reached_at: Endpoint
    node: int | None = None
    principal: str = ANONYMOUS


class ConnectionOutput(NamedTuple):
    """The end of a connection's request: send ``payload`` if there is one, then serve the next request or
    close the connection."""

    connection: int
    payload: bytes | None
    close: str | None = None
    """Why the connection is closed; None: it stays open."""
    mute_ms: int = 0
    """The time for which no further request of the connection is served (KIP-219)."""


class BrokerEffects(NamedTuple):
    """The effects of one call of the broker. A journal must hold ``changes`` before a client gets its
    output."""

    outputs: list[ConnectionOutput]
    events: list[Event]
    changes: Sequence[Change] = ()
