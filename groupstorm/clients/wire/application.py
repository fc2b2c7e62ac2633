"""How the application around a consumer behaves: by default nothing that it does takes time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.wire.log_requests import OffsetReset
from groupstorm.clients.wire.positions import Positions


def _no_time(_kind: CallbackKind, _partitions: tuple[TopicPartition, ...]) -> int:
    return 0


async def _at_once() -> None:
    """The `at_poll` of an application that is always inside poll()."""


def _unchanged(_partition: TopicPartition, offset: int) -> int:
    return offset


@dataclass(frozen=True, slots=True)
class ApplicationBehaviour:
    """How the application uses its consumer.

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

    callback_us: Callable[[CallbackKind, tuple[TopicPartition, ...]], int] = _no_time
    on_callback: Callable[[CallbackKind, tuple[TopicPartition, ...]], None] = lambda *_: None
    auto_offset_reset: OffsetReset | None = OffsetReset.LATEST
    close_timeout_ms: int = 30_000
    poll_wait_us: Callable[[], int] = lambda: 0
    assign_us: Callable[[int, int], int] = lambda _members, _partitions: 0
    log_end: Callable[[TopicPartition, int], int] = _unchanged
    catch_up: Callable[[Positions], None] = lambda _: None
    listen: Callable[[RunCallback], Awaitable[bool]] | None = None
    at_poll: Callable[[], Awaitable[None]] = _at_once
    on_change: Callable[[], None] = lambda: None
    read_committed: bool = False
