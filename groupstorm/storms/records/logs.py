"""Arriving records: the ends of the partitions' logs as functions of time.

A log is empty when its partition is created. Rates are piecewise constant, in records per 1,000 seconds.
Integers only; times in microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from groupstorm.assignors.userdata import TopicPartition

#: From which microsecond on how many records arrive in 1,000 seconds; the times rise from 0.
Rates = tuple[tuple[int, int], ...]

#: Rates are whole numbers per so many seconds: a record in a quarter of an hour is a rate, too.
RATE_SECONDS: Final = 1_000

#: The microseconds in which one record arrives at a rate of one record per 1,000 seconds.
RECORD: Final = 1_000_000_000


class LogCurve:
    """The end of one log, or of several with the same rates."""

    __slots__ = ("_before", "_before_last", "_from_us", "_rates", "last_rate", "last_us")

    def __init__(self, rates: Rates) -> None:
        self._from_us = [from_us for from_us, _ in rates]
        self._rates = [rate for _, rate in rates]
        #: Records before each piece, times RECORD.
        self._before = [0]
        for at in range(1, len(rates)):
            grown = self._rates[at - 1] * (self._from_us[at] - self._from_us[at - 1])
            self._before.append(self._before[-1] + grown)
        #: The last piece, which has no end: the records before it (times RECORD), from when, and its rate.
        self._before_last = self._before[-1]
        self.last_us = self._from_us[-1]
        self.last_rate = self._rates[-1]

    def _piece(self, now_us: int) -> int:
        return max(bisect_right(self._from_us, now_us) - 1, 0)

    def end(self, now_us: int) -> int:
        if now_us >= self.last_us:
            return (self._before_last + self.last_rate * (now_us - self.last_us)) // RECORD
        piece = self._piece(now_us)
        return (self._before[piece] + self._rates[piece] * (now_us - self._from_us[piece])) // RECORD

    def grown(self, now_us: int) -> int:
        """The records by then, times RECORD, which `end` rounds: only behind the last change of the rate."""
        return self._before_last + self.last_rate * (now_us - self.last_us)

    def rate(self, now_us: int) -> int:
        return self.last_rate if now_us >= self.last_us else self._rates[self._piece(now_us)]

    def arrived_us(self, offset: int) -> int | None:
        """The first microsecond at which the record of this offset is in the log; None: it never arrives."""
        needed = (offset + 1) * RECORD
        for piece, from_us in enumerate(self._from_us):
            rate, missing = self._rates[piece], needed - self._before[piece]
            last = piece + 1 == len(self._rates)
            if rate and (last or needed <= self._before[piece + 1]):
                return from_us - (-missing // rate)
        return None

    def next_change_us(self, now_us: int) -> int | None:
        if now_us >= self.last_us:
            return None
        return self._from_us[bisect_right(self._from_us, now_us)]


def ends_at(curves: Sequence[LogCurve], now_us: int) -> list[int]:
    """The ends of several logs. Most logs grow alike, and then their curve is asked once."""
    if curves and curves.count(curves[0]) == len(curves):
        return [curves[0].end(now_us)] * len(curves)
    return [curve.end(now_us) for curve in curves]


def rates_at(curves: Sequence[LogCurve], now_us: int) -> list[int]:
    """The records per 1,000 seconds that arrive in several logs."""
    if curves and curves.count(curves[0]) == len(curves):
        return [curves[0].rate(now_us)] * len(curves)
    return [curve.rate(now_us) for curve in curves]


class RecordLogs:
    """The logs of all partitions. ``rates_of`` says how a partition's rate changes over time."""

    def __init__(self, rates_of: Callable[[TopicPartition], Rates]) -> None:
        self._rates_of = rates_of
        self._curves: dict[TopicPartition, LogCurve] = {}
        self._same: dict[Rates, LogCurve] = {}

    def curve(self, partition: TopicPartition) -> LogCurve:
        """The end of this partition's log as a function of time."""
        curve = self._curves.get(partition)
        if curve is None:
            curve = self._curves[partition] = self._curve(self._rates_of(partition))
        return curve

    def _curve(self, rates: Rates) -> LogCurve:
        curve = self._same.get(rates)
        if curve is None:
            curve = self._same[rates] = LogCurve(rates)
        return curve

    def create(self, partition: TopicPartition, now_us: int) -> None:
        """The partition is created now, perhaps under the name of a deleted one: its log is empty."""
        self._curves[partition] = self._curve(_rates_from(self._rates_of(partition), now_us))

    def curves(self, partitions: Iterable[TopicPartition]) -> list[LogCurve]:
        """Return the curves of several partitions."""
        known = self._curves
        return [known[one] if one in known else self.curve(one) for one in partitions]

    def end(self, partition: TopicPartition, now_us: int) -> int:
        """The offset of the next record to arrive."""
        return self.curve(partition).end(now_us)

    def rate(self, partition: TopicPartition, now_us: int) -> int:
        """Records per 1,000 seconds from now on."""
        return self.curve(partition).rate(now_us)

    def next_change_us(self, now_us: int) -> int | None:
        """The next time after ``now_us`` at which the rate of a partition changes that was asked for."""
        changes = [curve.next_change_us(now_us) for curve in self._same.values()]
        return min((change_us for change_us in changes if change_us is not None), default=None)


def _rates_from(rates: Rates, from_us: int) -> Rates:
    """Return these rates from ``from_us`` on, with rate 0 before."""
    if from_us <= 0:
        return rates
    present = [rate for at_us, rate in rates if at_us <= from_us][-1]
    return ((0, 0), (from_us, present), *[piece for piece in rates if piece[0] > from_us])
