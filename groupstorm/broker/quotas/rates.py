"""The rate of bytes that somebody has had lately, and the time for which that is too many.

Source: org.apache.kafka.common.metrics.stats.Rate and SampledStat, QuotaUtils.throttleTime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Windows(NamedTuple):
    """``quota.window.num`` windows of ``quota.window.size.seconds``."""

    number: int = 11
    size_ms: int = 1000


@dataclass(slots=True)
class _Sample:
    begins_ms: int
    last_ms: int
    value: float = 0.0


class Rate:
    """The rate over the last windows, the present one included."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        sample = self._sample(now_ms)
        if now_ms - sample.begins_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _sample(self, now_ms: int) -> _Sample:
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        return self._samples[self._current]

    def _advance(self, now_ms: int) -> _Sample:
        """The next sample, or the oldest one anew. There is one more than there are windows: the present
        window overlaps the oldest."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        fresh = _Sample(now_ms, now_ms)
        if self._current >= len(self._samples):
            self._samples.append(fresh)
        else:
            self._samples[self._current] = fresh
        return fresh

    def per_second(self, now_ms: int) -> float:
        total = sum(sample.value for sample in self._live(now_ms))
        return total / (self.window_ms(now_ms) / 1000)

    def window_ms(self, now_ms: int) -> int:
        """The time that the rate is about: never less than all windows but the present one."""
        oldest_ms = min((sample.begins_ms for sample in self._live(now_ms)), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._windows.number - 1 - elapsed_ms // self._windows.size_ms
        return max(1, elapsed_ms + max(0, missing) * self._windows.size_ms)

    def _live(self, now_ms: int) -> list[_Sample]:
        """The samples that have not run out; the others begin anew now."""
        lasts_ms = self._windows.number * self._windows.size_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= lasts_ms:
                sample.begins_ms, sample.last_ms, sample.value = now_ms, now_ms, 0.0
        self._sample(now_ms)
        return self._samples

    def throttle_ms(self, most_per_second: float, now_ms: int) -> int:
        """The time for which nothing may be added until the rate is allowed again; 0: it is allowed."""
        rate = self.per_second(now_ms)
        if not rate > most_per_second:
            return 0
        return _rounded((rate - most_per_second) / most_per_second * self.window_ms(now_ms))


def _rounded(value: float) -> int:
    """Java's Math.round, within the milliseconds that a response can name."""
    return min(int(value + 0.5), 2**31 - 1)
