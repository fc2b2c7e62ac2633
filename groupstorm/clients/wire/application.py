"""What the application around a consumer does: nothing that takes time, unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.wire.offsets import OffsetReset
from groupstorm.clients.wire.positions import Positions


def _no_time(_kind: CallbackKind, _partitions: tuple[TopicPartition, ...]) -> int:
    return 0


async def _at_once() -> None:
    """For an application that is always inside poll()."""


def _as_told(_partition: TopicPartition, offset: int) -> int:
    return offset


@dataclass(frozen=True, slots=True)
class Application:
    """How a consumer is used.

    ``callback_us``: how long the rebalance listener works on one call, in microseconds.
    ``on_callback`` is told of each call when it begins. ``auto_offset_reset``: where to begin on a
    partition without committed offset. ``close_timeout_ms``: how long close() may take, Kafka's default.
    ``poll_wait_us``: how long after a rebalance is wanted the application polls next. ``assign_us``: what
    the assignor takes longer for so many members and partitions. ``log_end``: the offset to begin at where
    ListOffsets has told one, for an application whose records are imagined, and ``catch_up`` says before
    positions are asked for how far it has come.

    The rest is for an application that is real. ``listen``: its rebalance listener, awaited in place of
    ``callback_us``; what partitions that go had, stays known until it has returned. ``at_poll`` returns
    when the application is inside poll(), or will not come any more: only then partitions are taken from
    it. ``on_change`` is called when the membership may have changed. ``read_committed``:
    isolation.level. ``auto_offset_reset`` None is Kafka's ``none``: `OffsetLookup` tells what is missing.
    """

    callback_us: Callable[[CallbackKind, tuple[TopicPartition, ...]], int] = _no_time
    on_callback: Callable[[CallbackKind, tuple[TopicPartition, ...]], None] = lambda *_: None
    auto_offset_reset: OffsetReset | None = OffsetReset.LATEST
    close_timeout_ms: int = 30_000
    poll_wait_us: Callable[[], int] = lambda: 0
    assign_us: Callable[[int, int], int] = lambda _members, _partitions: 0
    log_end: Callable[[TopicPartition, int], int] = _as_told
    catch_up: Callable[[Positions], None] = lambda _: None
    listen: Callable[[RunCallback], Awaitable[None]] | None = None
    at_poll: Callable[[], Awaitable[None]] = _at_once
    on_change: Callable[[], None] = lambda: None
    read_committed: bool = False
