"""Virtual time: integer microseconds; calls in the order of their times, at one instant in that of `Kind`.

Scheduled calls lie in buckets of about a millisecond, of which only the first is kept in order. In a storm
ten thousand calls are due within seconds: one big heap would cost several times as much.
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

from groupstorm.storms.world.instants import COORDINATOR_TIMERS, ORDER_BITS

#: The moment (`instants.moment_of`); the call and its arguments.
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

    __slots__ = ("_buckets", "_done", "_ordered", "limit_us", "moment", "now_us")

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
