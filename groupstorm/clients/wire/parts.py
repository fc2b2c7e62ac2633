"""The parts of a consumer over TCP: its application and that one's polls, its events, its membership."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.wire.cluster import ClusterClient, TopicReader
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.logs import OffsetReset
from groupstorm.clients.wire.positions import Positions
from groupstorm.clients.wire.waiting import WakeEvent
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import member as events

#: Starts a task that ends with the consumer.
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
#: Takes an event with its time in microseconds.
OnEvent = Callable[[int, events.Event], None]


async def _at_once() -> None:
    """The `at_poll` of an application that is always inside poll()."""


@dataclass(frozen=True, slots=True)
class ApplicationBehaviour:
    """The application around a consumer: by default nothing that it does takes time.

    For every application:

    * ``auto_offset_reset``: where to begin on a partition without committed offset. None is Kafka's ``none``:
      `OffsetLookup` lists the partitions without an offset.
    * ``read_committed``: isolation.level. ``close_timeout_ms``: how long close() may take.

    For an application whose records and times are imagined:

    * ``callback_us``: how long the rebalance listener works on one call, in microseconds. ``on_callback`` is
      called when each call begins.
    * ``poll_wait_us``: the time from the wish to rebalance to the next poll(). ``assign_us``: the additional
      time of the assignor for a number of members and partitions.
    * ``log_end``: the offset to begin at, computed from the offset in the ListOffsets response.
    * ``catch_up`` sets the positions to the present before they are read.

    For a real application:

    * ``listen``: its rebalance listener, awaited in place of ``callback_us``; it returns whether the listener
      has raised. The positions of revoked partitions stay known until it has returned.
    * ``at_poll`` returns when the application is inside poll() or has ended: only then the consumer takes
      partitions from it. ``on_change`` is called when the membership may have changed.
    """

    callback_us: Callable[[CallbackKind, tuple[TopicPartition, ...]], int] = lambda *_: 0
    on_callback: Callable[[CallbackKind, tuple[TopicPartition, ...]], None] = lambda *_: None
    auto_offset_reset: OffsetReset | None = OffsetReset.LATEST
    close_timeout_ms: int = 30_000
    poll_wait_us: Callable[[], int] = lambda: 0
    assign_us: Callable[[int, int], int] = lambda _members, _partitions: 0
    log_end: Callable[[TopicPartition, int], int] = lambda _partition, offset: offset
    catch_up: Callable[[Positions], None] = lambda _: None
    listen: Callable[[RunCallback], Awaitable[bool]] | None = None
    at_poll: Callable[[], Awaitable[None]] = _at_once
    on_change: Callable[[], None] = lambda: None
    read_committed: bool = False


class EventEmitter:
    """Stamps events and passes them on.

    The event of a listener's call has the time at which the call began, and the call's duration, which is
    known only at its end. Events during the call are held back and follow it.
    """

    def __init__(self, clock: Callable[[], int], on_event: OnEvent) -> None:
        #: The time in microseconds.
        self.now_us = clock
        self._on_event = on_event
        self._held: list[tuple[int, events.Event]] | None = None
        self._ended = False

    def emit(self, event: events.Event) -> None:
        if self._ended:
            return
        now_us = self.now_us()
        if self._held is None:
            self._on_event(now_us, event)
        else:
            self._held.append((now_us, event))

    def end(self) -> None:
        """The process is gone: later events are dropped."""
        self._ended = True
        self._held = None

    def hold(self) -> int:
        """Hold back events until `release`. Returns the time."""
        self._held = []
        return self.now_us()

    def release(self, began_us: int, event: events.Event) -> None:
        """Emit ``event`` with the time ``began_us``, then the events that were held back."""
        if self._ended:
            return
        held, self._held = self._held or [], None
        self._on_event(began_us, event)
        for time_us, later in held:
            self._on_event(time_us, later)


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """The parts that a consumer has with either group protocol.

    ``clock`` returns microseconds. ``running``: not set while the process is paused. ``closing``: close() has
    been called.
    """

    config: ConsumerConfig
    application: ApplicationBehaviour
    clock: Callable[[], int]
    emitter: EventEmitter
    cluster: ClusterClient
    link: CoordinatorLink
    positions: Positions
    running: asyncio.Event
    closing: asyncio.Event
    spawn: Spawn

    def who(self, generation: Generation) -> tuple[str, str, str, int]:
        """The beginning of an event: group, client id, member id, generation."""
        return self.config.group_id, self.config.client_id, generation.member_id, generation.id


class MemberStatus(TopicReader, Protocol):
    """A member of a group, whichever group protocol it speaks."""

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the application may read, in order."""

    @property
    def generation(self) -> Generation:
        """The generation, or the member epoch, for requests and events; -1: not in the group."""

    @property
    def failure(self) -> str | None:
        """The fatal error by Kafka's name, or the exception that poll() throws; None while it runs."""

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator takes commits of this member now."""

    @property
    def is_joining(self) -> bool:
        """Whether a commit has to wait for the generation that the member is joining."""

    @property
    def is_settled(self) -> bool:
        """Whether the member has what its group assigns to it, and nothing is under way."""

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """``error``: the first one of the response. ``sent``: the generation in the request."""


class PollThrew(Exception):
    """poll() has thrown an error, by Kafka's name: the application closes its consumer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class ApplicationPolling(ABC):
    """The application polls all the time, except between `leave` and `enter`."""

    def __init__(self, parts: ConsumerParts) -> None:
        #: The topics of the last subscribe().
        self.subscription = parts.config.topics
        self._parts = parts
        self._wake_event = WakeEvent(parts.clock)
        self._polls = True
        #: Whether a task waits until poll() has something to do.
        self._waits = False

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether the next poll() does more than return records."""

    @abstractmethod
    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """subscribe() with other topics."""

    def leave(self) -> None:
        """The application works on a batch and does not poll; what is under way ends first."""
        self._polls = False

    def enter(self) -> None:
        """The application polls again."""
        self._polls = True
        self._wake_event.wake()

    @abstractmethod
    def polled(self) -> None:
        """poll() was called, had nothing to do, and has returned the next batch."""

    def wake(self) -> None:
        """poll() may have something to do."""
        self._wake_event.wake()
