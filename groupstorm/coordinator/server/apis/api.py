"""What a handler of one API is given and what it answers with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from groupstorm.coordinator import messages
from groupstorm.coordinator.server.codec import ResponseTypes
from groupstorm.coordinator.server.codec.shape import MILLISECOND
from groupstorm.coordinator.server.config import BrokerConfig, Endpoint
from groupstorm.coordinator.server.log.partition import PartitionLog
from groupstorm.coordinator.server.log.topics import Topics

#: One of kio's responses; which class depends on API and version.
KioMessage: TypeAlias = Any

NO_AUTHORIZED_OPERATIONS = -(2**31)
"""What the client did not ask for (MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED)."""


class Call(NamedTuple):
    """One request: ``message`` is kio's dataclass of that version, ``types`` makes the response."""

    version: int
    message: KioMessage
    types: ResponseTypes
    client_id: str
    client_host: str
    """As Java prints an address: /127.0.0.1"""
    reached_at: Endpoint
    """What the client should be told to connect to."""
    now_ms: int


@dataclass(slots=True)
class BrokerState:
    """What the handlers share, apart from the groups."""

    config: BrokerConfig
    cluster_id: str
    topics: Topics
    next_producer_id: int = 0
    metadata_cache: dict[tuple[object, ...], list[bytes]] = field(default_factory=dict)
    appended: list[PartitionLog] = field(default_factory=list)
    """Logs that this request wrote to: fetches may be waiting for them."""


class Done(NamedTuple):
    """Answered at once."""

    response: KioMessage


class Encoded(NamedTuple):
    """Answered at once, with the body's bytes."""

    body: list[bytes]


class NoAnswer(NamedTuple):
    """Nothing is sent (acks=0). ``close``: why the connection is closed instead, or None."""

    close: str | None = None


class AskCoordinator(NamedTuple):
    """The group coordinator is asked, and ``finish`` makes the response of its answers when all are there."""

    requests: Sequence[messages.Request]
    finish: Callable[[Sequence[Any]], KioMessage]


class Wait(NamedTuple):
    """Answered with ``finish()`` as soon as ``is_ready()`` after one of ``logs`` grew, or at the deadline."""

    deadline_ms: int
    logs: Sequence[PartitionLog]
    is_ready: Callable[[], bool]
    finish: Callable[[], KioMessage]


Outcome: TypeAlias = Done | Encoded | NoAnswer | AskCoordinator | Wait
Handler: TypeAlias = Callable[[BrokerState, Call], Outcome]


@dataclass(frozen=True, slots=True)
class Api:
    """One API that this broker offers, in the versions that it really does."""

    key: int
    name: str
    min_version: int
    max_version: int
    handle: Handler
    advertised_min_version: int | None = None
    """What ApiVersions says where that differs."""


def authorized_operations(asked: bool, operations: Sequence[int]) -> int:
    """The bit field of AclOperation codes: without an authorizer everything is allowed."""
    return sum(1 << code for code in operations) if asked else NO_AUTHORIZED_OPERATIONS


def milliseconds(duration: Any) -> int:
    """A timedelta of kio's as an integer."""
    return int(duration // MILLISECOND)
