"""The lateness of a client's heartbeat timer, beat after beat, by arithmetic alone.

A timer is late by a little, and is set anew when it has fired: lateness adds up, and the heartbeats of two
members drift apart. The sum of the first k latenesses must be known without adding them up. So each
distribution has one long sequence of draws with its running sums, and every series begins at a place of its
own in it: a sum is the difference of two running sums.

Java's heartbeat thread waits in steps of retry.backoff.ms, and a poll() wakes it when a heartbeat is due. So
it is on time while the application is in poll(), and late while the application works: until the next poll()
or the end of its step (AbstractCoordinator.HeartbeatThread, pollHeartbeat).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from hashlib import shake_128
from itertools import accumulate
from typing import Final

from groupstorm.clients.profiles import ClientProfile
from groupstorm.storms.scenario.randomness import DRAW_BITS, DRAW_SPAN, Distribution, Stream

#: The draws of a sequence: 54 hours of heartbeats at the default interval. Then it begins again.
LENGTH_BITS: Final = 16
LENGTH: Final = 1 << LENGTH_BITS
#: A draw of a timer picks one of so many quantiles.
_QUANTILE_BITS: Final = 10
_HALF: Final = 1 << DRAW_BITS - _QUANTILE_BITS - 1
#: The share of its time that an application works, in so many parts.
SHARES: Final = 16
#: Latenesses while the application works are drawn in parts of the longest one.
_WORK_BITS: Final = 12


class DrawnSums:
    """The running sums of one endless sequence of draws."""

    __slots__ = ("_whole", "mean", "most", "sums")

    def __init__(self, values: list[int]) -> None:
        """``values``: the LENGTH draws that repeat."""
        #: The sum of the first n draws, for n from 0 to LENGTH.
        self.sums = list(accumulate(values, initial=0))
        self._whole: int = self.sums[LENGTH]
        self.mean: int = self._whole >> LENGTH_BITS
        self.most: int = max(values)

    def total(self, place: int, count: int) -> int:
        """The sum of ``count`` draws from ``place`` on, which lies in [0, LENGTH)."""
        sums = self.sums
        end = place + count
        if end < LENGTH:
            return sums[end] - sums[place]
        return (end >> LENGTH_BITS) * self._whole + sums[end & LENGTH - 1] - sums[place]


def timer_sums(profile: ClientProfile, lateness: Distribution, latency: Distribution) -> DrawnSums | None:
    """Microseconds between the interval's end and the next heartbeat; None: heartbeats keep their interval.

    ``latency``: one way between client and coordinator.
    """
    if not lateness.largest_us:
        return None
    parts = [lateness]
    if profile.heartbeat_timer_waits_for_response:
        parts += [latency, latency]
    return _timer_sums(tuple([_quantiles(part) for part in parts]))


@lru_cache(maxsize=16)
def _timer_sums(parts: tuple[tuple[int, ...], ...]) -> DrawnSums:
    """A sequence whose draws are sums of draws, one from each part's quantiles."""
    values = [0] * LENGTH
    shift = 16 - _QUANTILE_BITS
    for number, quantiles in enumerate(parts):
        draws = _draws(f"timer {number}")
        values = [value + quantiles[draw >> shift] for value, draw in zip(values, draws, strict=True)]
    return DrawnSums(values)


@lru_cache(maxsize=SHARES + 1)
def _work_sums(share: int) -> DrawnSums:
    """In ``share`` of SHARES draws a uniform part of 1 << _WORK_BITS, in all others 0."""
    works, parts = _draws("whether it works"), _draws("how long still")
    bound, shift = (share << 16) // SHARES, 16 - _WORK_BITS
    return DrawnSums([part >> shift if work < bound else 0 for work, part in zip(works, parts, strict=True)])


def _draws(purpose: str) -> tuple[int, ...]:
    """LENGTH even draws in [0, 2^16)."""
    return struct.unpack(f"<{LENGTH}H", shake_128(purpose.encode()).digest(2 * LENGTH))


def _quantiles(distribution: Distribution) -> tuple[int, ...]:
    return tuple([distribution.at(draw) for draw in range(_HALF, DRAW_SPAN, 2 * _HALF)])


class Lateness:
    """The lateness of the timer of one series.

    ``timer``: the lateness of every firing. ``place``: where the series begins in all sequences.
    """

    __slots__ = (
        "_earlier",
        "_place",
        "_sum_at_place",
        "_timer",
        "_work",
        "_work_before_us",
        "_work_from_k",
        "_work_most_us",
        "_work_share",
        "mean_us",
        "most_us",
    )

    def __init__(self, timer: DrawnSums, place: int) -> None:
        self._timer = timer
        self._place = place
        self._sum_at_place: int = timer.sums[place]
        #: The application's work from a heartbeat on: its share of the time, the most by which it can delay
        #: one heartbeat, and the sum of the delays by work before.
        self._work: DrawnSums | None = None
        self._work_from_k = self._work_share = self._work_most_us = self._work_before_us = 0
        #: The work before that; the latest last, the first from heartbeat 0 on.
        self._earlier: list[tuple[int, DrawnSums | None, int, int]] = []
        self.mean_us: int = timer.mean
        self.most_us: int = timer.most

    def total_us(self, k: int) -> int:
        """By how much the timer has been late in all when it fires for the k-th time."""
        end = self._place + k
        if end < LENGTH:  # as `total` does it, without the call: this is asked for at each look at a series
            total_us = self._timer.sums[end] - self._sum_at_place
        else:
            total_us = self._timer.total(self._place, k)
        from_k = self._work_from_k
        if k < from_k:
            return total_us + self._earlier_us(k)
        work = self._work
        if work is None:
            return total_us + self._work_before_us
        delayed = work.total(self._place, k - from_k) * self._work_most_us
        return total_us + self._work_before_us + (delayed >> _WORK_BITS)

    def _earlier_us(self, k: int) -> int:
        """By how much work delayed a heartbeat from before the latest change of work."""
        from_k, work, most_us, before_us = next(one for one in reversed(self._earlier) if one[0] <= k)
        if work is None:
            return before_us
        return before_us + (work.total(self._place, k - from_k) * most_us >> _WORK_BITS)

    def works(self, after_k: int, share: int, most_us: int) -> None:
        """The application works ``share`` of SHARES of its time.

        The first ``after_k`` heartbeats stay as they are.
        """
        if share == self._work_share and (not share or most_us == self._work_most_us):
            return
        timer = self._timer
        before_us = self.total_us(after_k) - timer.total(self._place, after_k)
        earlier = self._earlier
        if after_k <= self._work_from_k:
            while earlier and earlier[-1][0] >= after_k:
                earlier.pop()  # no heartbeat came of it
        else:
            earlier.append((self._work_from_k, self._work, self._work_most_us, self._work_before_us))
        self._work = _work_sums(share) if share else None
        self._work_from_k, self._work_before_us = after_k, before_us
        self._work_share, self._work_most_us = share, most_us
        self.mean_us = timer.mean + most_us * share // (2 * SHARES)
        longest_us = most_us
        for _, _, earlier_us, _ in earlier:
            longest_us = max(longest_us, earlier_us)
        self.most_us = timer.most + longest_us


class ProcessTimer:
    """The heartbeat timer of one process."""

    __slots__ = ("_places", "_sums")

    def __init__(self, sums: DrawnSums | None, seed: int, name: str, incarnation: int) -> None:
        self._sums = sums
        self._places = Stream(seed, "heartbeats", name, incarnation)

    def series(self, first_us: int) -> Lateness | None:
        """For the series whose first heartbeat is due at this time; None: heartbeats keep their interval."""
        if self._sums is None:
            return None
        return Lateness(self._sums, self._places.at(first_us) >> DRAW_BITS - LENGTH_BITS)
