"""When the requests of one series leave and arrive, beat after beat, by arithmetic alone.

The k-th request (k >= 1) is sent at start + k * interval + the lateness of k timers. Its latency depends on
the time of sending alone, so it is the same whether the request is sent or only computed. Requests of one
series arrive in their order: a scenario's latencies stay below the interval.

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
from groupstorm.storms.world.clock import Kind, order_of
from groupstorm.storms.world.connection import VirtualConnection

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

    def __init__(self, timer: DrawnSums, place: int) -> None:
        self._timer = timer
        self._place = place
        #: The application's share of time at work, in SHARES, and the longest that it delays one heartbeat.
        self.work = (0, 0)
        #: Delays by work from a heartbeat on, and the sum of the delays by work before.
        self._work: DrawnSums | None = None
        self._work_from_k = self._work_before_us = 0
        self.mean_us: int = timer.mean

    def total_us(self, k: int) -> int:
        """By how much the timer has been late in all when it fires for the k-th time."""
        total_us = self._timer.total(self._place, k) + self._work_before_us
        if self._work is None or k <= self._work_from_k:
            return total_us
        delayed = self._work.total(self._place, k - self._work_from_k) * self.work[1]
        return total_us + (delayed >> _WORK_BITS)

    def works(self, after_k: int, share: int, most_us: int) -> None:
        """The application works ``share`` of SHARES of its time: that delays heartbeats behind the first
        ``after_k``, of which the last one has not left yet."""
        self._work_before_us = self.total_us(after_k) - self._timer.total(self._place, after_k)
        self._work_from_k, self._work = after_k, _work_sums(share) if share else None
        self.work = (share, most_us)
        self.mean_us = self._timer.mean + most_us * share // (2 * SHARES)


class ProcessTimer:
    """The heartbeat timer of one process."""

    def __init__(self, sums: DrawnSums | None, seed: int, name: str, incarnation: int) -> None:
        self._sums = sums
        self.most_us: int = 0 if sums is None else sums.most
        self._places = Stream(seed, "heartbeats", name, incarnation)

    def series(self, first_us: int) -> Lateness | None:
        """For the series whose first heartbeat is due at this time; None: heartbeats keep their interval."""
        if self._sums is None:
            return None
        return Lateness(self._sums, self._places.at(first_us) >> DRAW_BITS - LENGTH_BITS)


class RequestSchedule:
    """The times of one series, in microseconds.

    ``kind`` is that of the arrivals, and ``leaves`` that of the leavings. ``lateness``: of the timer behind
    the requests; None if it is always on time.
    """

    __slots__ = ("_connection", "_k", "_k_us", "interval_us", "lateness", "leaves_order", "order", "start_us")

    def __init__(
        self,
        kind: Kind,
        start_us: int,
        interval_us: int,
        connection: VirtualConnection,
        lateness: Lateness | None = None,
        leaves: Kind = Kind.PERIODIC_REQUEST_LEAVES,
    ) -> None:
        #: The order of leaving, and that of arriving, among all that happens at one instant.
        self.leaves_order = order_of(leaves, connection.index)
        self.order = order_of(kind, connection.index)
        self.start_us = start_us
        self.interval_us = interval_us
        self.lateness = lateness
        self._connection = connection
        #: What `sent_us` was asked last, which mostly is asked again, and its answer.
        self._k, self._k_us = 0, start_us

    def sent_us(self, k: int) -> int:
        """When the k-th request leaves, of those that have not left or are computed."""
        if k != self._k:
            self._k, self._k_us = k, self.start_us + k * self.interval_us
            if self.lateness is not None:
                self._k_us += self.lateness.total_us(k)
        return self._k_us

    def arrival_us(self, sent_us: int) -> int:
        """When the request arrives that leaves at ``sent_us``."""
        return sent_us + self._connection.periodic_latency_us(sent_us)

    def last_sent(self, time_us: int, sent: int) -> int:
        """The last request that leaves by ``time_us``; the first ``sent`` have left."""
        lateness = self.lateness
        mean_us = self.interval_us if lateness is None else self.interval_us + lateness.mean_us
        k = max(sent, (time_us - self.start_us) // mean_us)
        while k > sent and self.sent_us(k) > time_us:
            k -= 1
        while self.sent_us(k + 1) <= time_us:
            k += 1
        return k
