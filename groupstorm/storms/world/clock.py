"""Virtual time: integer microseconds; calls in the order of their times, at one instant in that of `Kind`.

With constant latencies many things happen in the same microsecond. Their order is a number, part of every
scheduled call. It follows from the kind of the call and never from when the call was scheduled: heartbeats
that are computed are never scheduled at all, and ``--exact``, which sends each of them, gives the same trace.
What has no latency follows at once, before the rest of the instant.

A session that ends at the instant at which a heartbeat arrives goes on, because the heartbeat comes first;
so does a round that times out as its last member joins. `groupstorm serve` keeps to this too
(`broker/shell.py`). Sessions that end in one millisecond end in the order in which the last requests of
their members arrived.

``Clock.passed_us`` says until when things of a kind have happened: what is computed asks it in place of
"now".

Scheduled calls lie in buckets of about a millisecond, of which only the first is kept in order. In a storm
ten thousand calls are due within seconds: one big heap would cost several times as much.
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final

_MEMBER_BITS: Final = 20
ORDER_BITS: Final = _MEMBER_BITS + 4


class Kind(IntEnum):
    """The kinds of calls, in their order at one instant."""

    #: Steps of the scenario, timers of clients and applications, ends of pauses: they apply to all
    #: else at the instant.
    DUE = 0
    #: A heartbeat or a background commit.
    PERIODIC_REQUEST_LEAVES = 1
    #: A commit comes before a heartbeat: a client that has both to send begins with it (RequestManagers).
    COMMIT_ARRIVES = 2
    HEARTBEAT_ARRIVES = 3
    REQUEST_ARRIVES = 4
    RESPONSE_ARRIVES = 5
    #: The network thread of a client of group.protocol=consumer sees the responses that have come.
    NETWORK_THREAD = 6
    #: An application's poll() takes everything that has happened by then.
    POLL = 7
    #: The coordinator's timers tick in milliseconds (SystemTimer), behind the requests of the same instant
    #: (CoordinatorRuntime).
    COORDINATOR_TIMER = 8


def order_of(kind: Kind, member: int = 0) -> int:
    """The place of a member's calls among those of one instant."""
    return int(kind) << _MEMBER_BITS | member


#: Behind all members' calls.
COORDINATOR_TIMERS: Final = order_of(Kind.COORDINATOR_TIMER)


def moment_of(time_us: int, order: int) -> int:
    """The place of a call in the whole run: times in microseconds and orders at one of them as one number."""
    return time_us << ORDER_BITS | order


#: The moment (`moment_of`); the call and its arguments.
Due = tuple[int, Callable[..., None], tuple[Any, ...]]

_BUCKET_BITS = 10  # a bucket's width: 1,024 us
_MOMENT = itemgetter(0)


class _Buckets(dict[int, list[Due]]):
    """Buckets by number, made when they are first asked for. ``numbers`` is a heap of their numbers."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __missing__(self, number: int) -> list[Due]:
        bucket = self[number] = []
        heappush(self.numbers, number)
        return bucket


class Clock:
    """`now_us` stands still during a call and jumps to the time of the next. ``moment`` is the latest place
    in the run that was reached.

    `run` makes only the calls that are due before ``limit_us``.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.moment = 0
        self.limit_us = 0
        self._buckets = _Buckets()
        #: The number of the bucket that is in order (-1: none), and how much of it is done.
        self._ordered = -1
        self._done = 0

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` at ``time_us``, before what arrives then. Raises ValueError for a time
        that has passed."""
        self.in_order(time_us, 0, action, arguments)

    def in_order(
        self, time_us: int, order: int, action: Callable[..., None], arguments: tuple[Any, ...] = ()
    ) -> None:
        """Call ``action(*arguments)`` at ``time_us`` in its order at that instant, or next if only that order
        has passed."""
        if time_us < self.now_us:
            raise ValueError(f"{time_us} us lies before now ({self.now_us} us)")
        number = time_us >> _BUCKET_BITS
        bucket, moment = self._buckets[number], time_us << ORDER_BITS | order
        if number != self._ordered:
            bucket.append((moment, action, arguments))
        else:
            insort_right(bucket, (moment, action, arguments), self._done, key=_MOMENT)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` in ``delay_us`` (not negative), before what arrives then."""
        self.in_order(self.now_us + delay_us, 0, action, arguments)

    def passed_us(self, order: int) -> int:
        """The last instant at which everything of this order has happened: now, or a microsecond before."""
        return self.moment - order >> ORDER_BITS

    def run(self) -> None:
        """Make the calls that are due before `limit_us`; a call may move that limit."""
        buckets = self._buckets
        while buckets.numbers:
            self._ordered = number = buckets.numbers[0]
            bucket = buckets[number]
            bucket.sort(key=_MOMENT)  # equals stay as they came
            self._done = 0
            # what a call adds to this bucket comes behind the calls that are done: the loop gets to it, too
            for moment, action, arguments in bucket:
                time_us = moment >> ORDER_BITS
                if time_us >= self.limit_us:
                    del bucket[: self._done]
                    self._ordered = -1
                    return
                self._done += 1
                self.now_us = time_us
                if moment > self.moment:  # noqa: PLR1730  # a call of max() takes longer
                    self.moment = moment
                if arguments:
                    action(*arguments)
                else:
                    action()  # most calls: Python has a shorter way for them
            heappop(buckets.numbers)
            del buckets[number]
        self._ordered = -1

    def advance_to(self, time_us: int) -> None:
        """Move the clock without a call, behind everything else of that instant: for the coordinator's
        timers."""
        self.now_us = time_us
        self.moment = time_us << ORDER_BITS | COORDINATOR_TIMERS


_MILLION: Final = 1_000_000


class ClientClock:
    """``drift_ppm``: by how many parts per million the machine's clock is fast, or slow if it is negative."""

    def __init__(self, drift_ppm: int) -> None:
        self.drifts = drift_ppm != 0
        self._speed = _MILLION + drift_ppm

    def ms(self, time_us: int) -> int:
        """Return the milliseconds that the machine's clock shows at ``time_us``."""
        return time_us * self._speed // (1000 * _MILLION)

    def us(self, shown_ms: int) -> int:
        """Return the time at which the clock begins to show ``shown_ms``."""
        return -(-shown_ms * 1000 * _MILLION // self._speed)

    def timer_us(self, ms: int) -> int:
        """Return the true time that a timer of so many milliseconds takes, in microseconds."""
        return ms * 1000 if self._speed == _MILLION else ms * 1000 * _MILLION // self._speed
