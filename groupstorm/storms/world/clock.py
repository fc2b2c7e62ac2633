"""Virtual time: integer microseconds, calls in the order of their times, first-in-first-out among equals.

Scheduled calls lie in buckets of about a millisecond, of which only the first is kept in order. In a storm
ten thousand calls are due within seconds: one big heap would cost several times as much.
"""

from __future__ import annotations

from bisect import insort_left, insort_right
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

#: Time; the call and its arguments.
Due = tuple[int, Callable[..., None], tuple[Any, ...]]

_BUCKET_BITS = 10  # a bucket's width: 1,024 us
_TIME = itemgetter(0)


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
    """`now_us` stands still during a call and jumps to the time of the next.

    `run` makes only the calls that are due before ``limit_us``.
    """

    __slots__ = ("_buckets", "_done", "_ordered", "limit_us", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.limit_us = 0
        self._buckets = _Buckets()
        #: The number of the bucket that is in order (-1: none), and how much of it is done.
        self._ordered = -1
        self._done = 0

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` at ``time_us``. Raises ValueError for a time that has passed."""
        if time_us < self.now_us:
            raise ValueError(f"{time_us} us lies before now ({self.now_us} us)")
        number = time_us >> _BUCKET_BITS
        bucket = self._buckets[number]
        if number != self._ordered:
            bucket.append((time_us, action, arguments))
        else:
            insort_right(bucket, (time_us, action, arguments), self._done, key=_TIME)

    def first_at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """The same, but before all other calls of ``time_us`` that are scheduled by now. `at` is the busiest
        method of a storm: a shared helper would cost it a call."""
        if time_us < self.now_us:
            raise ValueError(f"{time_us} us lies before now ({self.now_us} us)")
        number = time_us >> _BUCKET_BITS
        bucket = self._buckets[number]
        if number != self._ordered:
            bucket.insert(0, (time_us, action, arguments))
        else:
            insort_left(bucket, (time_us, action, arguments), self._done, key=_TIME)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` in ``delay_us`` (not negative)."""
        self.at(self.now_us + delay_us, action, *arguments)

    def run(self) -> None:
        """Make the calls that are due before `limit_us`; a call may move that limit."""
        buckets = self._buckets
        while buckets.numbers:
            self._ordered = number = buckets.numbers[0]
            bucket = buckets[number]
            bucket.sort(key=_TIME)  # equals stay as they came
            self._done = 0
            while self._done < len(bucket):
                time_us, action, arguments = bucket[self._done]
                if time_us >= self.limit_us:
                    del bucket[: self._done]
                    self._ordered = -1
                    return
                self._done += 1
                self.now_us = time_us
                if arguments:
                    action(*arguments)
                else:
                    action()  # most calls: Python has a shorter way for them
            heappop(buckets.numbers)
            del buckets[number]
        self._ordered = -1

    def advance_to(self, time_us: int) -> None:
        """Move the clock without a call, for the coordinator's timers."""
        self.now_us = time_us
