"""Curves over the time of a trace whose end is not known yet: each bucket grows as the trace does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

#: A curve has this many buckets at most, and half as many at least (of a long trace).
BUCKETS_MAX: Final = 1_200
_FIRST_BUCKET_US: Final = 100_000

#: The most records that waited since the last call, and the age of the oldest record that waits now in
#: microseconds; None if the trace does not know.
Probe = Callable[[int], tuple[float, int] | None]


@dataclass(slots=True)
class Bucket:
    """``unowned_us``: time without an owner, summed over partitions. The others are the largest values."""

    unowned_us: int = 0
    unowned: int = 0
    lag: float | None = None
    age_us: int | None = None

    def see(self, probed: tuple[float, int] | None) -> None:
        if probed is not None:
            lag, age_us = probed
            self.lag = lag if self.lag is None else max(self.lag, lag)
            self.age_us = age_us if self.age_us is None else max(self.age_us, age_us)

    def merge(self, other: Bucket) -> None:
        """Take in the bucket that follows."""
        self.unowned_us += other.unowned_us
        self.unowned = max(self.unowned, other.unowned)
        if other.lag is not None and other.age_us is not None:
            self.see((other.lag, other.age_us))


@dataclass(slots=True)
class Samples:
    """Buckets of ``bucket_us`` from ``from_us`` on. Two become one whenever there would be too many."""

    from_us: int
    bucket_us: int = _FIRST_BUCKET_US
    buckets: list[Bucket] = field(default_factory=lambda: [Bucket()])
    now_us: int = 0

    def __post_init__(self) -> None:
        self.now_us = self.from_us

    def advance(self, to_us: int, unowned: int, probe: Probe | None) -> None:
        """Time goes on to ``to_us`` with that many partitions un-owned.

        ``probe`` is called at the end of each bucket, and at the beginning of the next. None: nothing is
        known.
        """
        while (to_us - self.from_us) // self.bucket_us >= BUCKETS_MAX:
            self._halve()
        while self.now_us < to_us:
            until_us = min(to_us, self.from_us + len(self.buckets) * self.bucket_us)
            here = self.buckets[-1]
            here.unowned_us += unowned * (until_us - self.now_us)
            here.unowned = max(here.unowned, unowned)
            self.now_us = until_us
            if until_us == self.from_us + len(self.buckets) * self.bucket_us:
                here.see(None if probe is None else probe(until_us))
                self.buckets.append(Bucket())
                self.buckets[-1].see(None if probe is None else probe(until_us))

    def see(self, probed: tuple[float, int] | None) -> None:
        """Values at the present instant."""
        self.buckets[-1].see(probed)

    def _halve(self) -> None:
        for number in range(0, len(self.buckets) - 1, 2):
            self.buckets[number].merge(self.buckets[number + 1])
        self.buckets = self.buckets[::2]
        self.bucket_us *= 2
