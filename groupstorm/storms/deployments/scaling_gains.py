"""The gains of scaling up: the records that a group processed after it, against the rate before it."""

from __future__ import annotations

from typing import NamedTuple

#: How long after the last process of a scale-up was ordered its gain is counted.
PAYBACK_US = 120_000_000


class Gain(NamedTuple):
    """From ``before`` to ``after`` processes: ``records`` more than at the old rate in ``within_us``."""

    before: int
    after: int
    records: int
    within_us: int


class ScalingGains:
    """Follows the records that the group has committed. Scale-ups in close succession count as one.

    The old rate is that between the last two readings before the scale-up.
    """

    def __init__(self) -> None:
        #: The last two readings: time, records committed in all.
        self._readings: list[tuple[int, int]] = []
        #: Processes before and after, since when, records then, records a second before.
        self._open: tuple[int, int, int, int, int] | None = None
        self._until_us = 0

    def read(self, now_us: int, committed: int) -> Gain | None:
        """A reading of the committed records; the gain of the last scale-up if its time is over."""
        self._readings = [*self._readings[-1:], (now_us, committed)]
        return self._close() if self._open is not None and now_us >= self._until_us else None

    def scaled(self, before: int, after: int) -> Gain | None:
        """The number of processes changes right after a reading; the gain that this ends, if any."""
        if after < before:
            return self._close()
        now_us, committed = self._readings[-1]
        if self._open is None:
            then_us, then = self._readings[0]
            rate = (committed - then) * 1_000_000 // (now_us - then_us) if now_us > then_us else 0
            self._open = (before, after, now_us, committed, rate)
        else:
            self._open = (self._open[0], after, *self._open[2:])
        self._until_us = now_us + PAYBACK_US
        return None

    def _close(self) -> Gain | None:
        if self._open is None:
            return None
        before, after, since_us, then, rate = self._open
        now_us, committed = self._readings[-1]
        self._open = None
        expected = rate * (now_us - since_us) // 1_000_000
        return Gain(before, after, committed - then - expected, now_us - since_us)
