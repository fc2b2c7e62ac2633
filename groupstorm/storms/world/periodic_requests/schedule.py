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
from groupstorm.storms.world.clock import Kind, moment_of, order_of
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


class RequestSchedule:
    """The times of one series, in microseconds.

    ``kind`` is that of the arrivals. ``lateness``: of the timer behind the requests; None if it is always on
    time. ``latency_most_us``: a latency is drawn only if that does not decide.
    """

    __slots__ = (
        "_drawn",
        "_drawn_us",
        "_sent",
        "_sent_before",
        "_sent_before_us",
        "_sent_us",
        "connection",
        "interval_us",
        "latency_most_us",
        "lateness",
        "leaves_order",
        "order",
        "start_us",
    )

    def __init__(
        self,
        kind: Kind,
        start_us: int,
        interval_us: int,
        connection: VirtualConnection,
        latency_most_us: int,
        lateness: Lateness | None = None,
    ) -> None:
        #: The order of leaving, and that of arriving, among all that happens at one instant.
        self.leaves_order = order_of(Kind.PERIODIC_REQUEST_LEAVES, connection.index)
        self.order = order_of(kind, connection.index)
        self.start_us = start_us
        self.interval_us = interval_us
        self.connection = connection
        self.latency_most_us = latency_most_us
        self.lateness = lateness
        #: The request whose arrival was asked for last, and those whose leaving was; 0: none.
        self._drawn = self._drawn_us = self._sent = self._sent_us = 0
        self._sent_before = self._sent_before_us = 0

    def sent_us(self, k: int) -> int:
        if k == self._sent and k:
            return self._sent_us
        if k == self._sent_before and k:
            return self._sent_before_us
        sent_us, lateness = self.start_us + k * self.interval_us, self.lateness
        if lateness is not None:
            sent_us += lateness.total_us(k)
        self._sent_before, self._sent_before_us = self._sent, self._sent_us
        self._sent, self._sent_us = k, sent_us
        return sent_us

    def leaves(self, k: int) -> int:
        """The moment at which the k-th request leaves."""
        return moment_of(self.sent_us(k), self.leaves_order)

    def arrival_us(self, k: int) -> int:
        if k != self._drawn:
            sent_us = self.sent_us(k)
            self._drawn, self._drawn_us = k, sent_us + self.connection.periodic_latency_us(sent_us)
        return self._drawn_us

    def arrives(self, k: int) -> int:
        """The moment at which the k-th request arrives."""
        return moment_of(self.arrival_us(k), self.order)

    def arrives_by_us(self, k: int) -> int:
        """When the k-th request has arrived in any case."""
        return self.sent_us(k) + self.latency_most_us

    @property
    def most_apart_us(self) -> int:
        """The longest time between the arrivals of two requests."""
        lateness = self.lateness
        apart_us = self.interval_us + self.latency_most_us
        return apart_us if lateness is None else apart_us + lateness.most_us

    def last_sent(self, time_us: int) -> int:
        """The last request that leaves by ``time_us`` (0: none)."""
        elapsed_us = time_us - self.start_us
        if elapsed_us <= 0:
            return 0
        lateness = self.lateness
        interval_us = self.interval_us
        if lateness is None:
            return elapsed_us // interval_us
        k = elapsed_us // (interval_us + lateness.mean_us)
        sent_us = self.sent_us(k)
        while sent_us > time_us:
            k -= 1
            sent_us = self.sent_us(k)
        while time_us - sent_us >= interval_us:
            sent_us = self.sent_us(k + 1)
            if sent_us > time_us:
                break
            k += 1
        return k

    def last_arrived(self, time_us: int, sent: int) -> int:
        """The last request that arrives by ``time_us``; ``sent`` is the last one that leaves by then."""
        if not sent or self.arrives_by_us(sent) <= time_us:
            return sent
        return sent if self.arrival_us(sent) <= time_us else sent - 1

    def next_sent_us(self, now_us: int) -> int:
        """When the first request leaves that is not sent before ``now_us``."""
        return self.sent_us(self.last_sent(now_us - 1) + 1)

    def works(self, now_us: int, share: int, most_us: int) -> None:
        """The application works from now on, which delays the requests behind the next one (`Lateness`)."""
        if self.lateness is not None:
            self.lateness.works(self.last_sent(now_us) + 1, share, most_us)
            self._drawn = self._sent = self._sent_before = 0
