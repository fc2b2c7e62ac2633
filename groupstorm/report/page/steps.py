"""Values that change over time: the owner of each partition, the phase of each member; and curves over the
time of a trace whose end is not known yet: their buckets grow as the trace does. `packed` writes them in few
characters."""

from __future__ import annotations

import sys
import zlib
from array import array
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

#: A cell of `Cells` holds its value times this, plus a share of `SHARES - 1`.
SHARES: Final = 16


class Step(NamedTuple):
    """The value ``value`` from ``from_us`` to ``to_us``."""

    from_us: int
    to_us: int
    value: int


class Steps:
    """Takes changes in the order of time; 12 bytes for each. Names are numbered as they appear."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._times: list[array[int]] = []
        self._values: list[array[int]] = []

    @property
    def changes(self) -> int:
        return sum(map(len, self._times))

    def set(self, name: str, time_us: int, value: int) -> None:
        """From ``time_us`` on the name has the value. Of several at one instant the last one counts."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.numbers)
            self._times.append(array("q"))
            self._values.append(array("i"))
        times, values = self._times[number], self._values[number]
        if times and times[-1] == time_us:
            times.pop()
            values.pop()
        if values and values[-1] == value:
            return
        times.append(time_us)
        values.append(value)

    def of(self, name: str, from_us: int, to_us: int, before: int) -> Iterator[Step]:
        """The steps of a name that lie in the time, one after the other; ``before``: until its first one."""
        number = self.numbers[name]
        begun_us, value = from_us, before
        for time_us, changed in zip(self._times[number], self._values[number], strict=True):
            if time_us > begun_us:
                if time_us >= to_us:
                    break
                yield Step(begun_us, time_us, value)
                begun_us = time_us
            value = changed
        if to_us > begun_us:
            yield Step(begun_us, to_us, value)

    def lasted_us(self, name: str, value: int, span_us: tuple[int, int], before: int) -> int:
        """The part of the span in which the name had the value."""
        found = self.of(name, *span_us, before)
        return sum(step.to_us - step.from_us for step in found if step.value == value)


@dataclass(frozen=True, slots=True)
class Cells:
    """Steps of several names, summed up in buckets of one length.

    For the n-th name ``counts[n]`` cells follow each other in ``buckets`` (the number of the bucket from
    which the cell goes on) and ``values``: the value that took most of the time, times `SHARES`, plus the
    share of the time that had the special value, in `SHARES - 1` parts.
    """

    bucket_us: int
    counts: Sequence[int]
    buckets: Sequence[int]
    values: Sequence[int]


def cells(
    steps: Steps, names: Sequence[str], span_us: tuple[int, int], count: int, special: int, before: int
) -> Cells:
    """Sum up the steps of ``names`` in ``count`` buckets of the span.

    A time with the ``special`` value is never lost: a bucket that has any of it has a share of at least one
    part. The value of a bucket is the special one only if nothing else is in it.
    """
    from_us, to_us = span_us
    bucket_us = max(1, -(-(to_us - from_us) // count))
    counts, buckets, values = [], array("i"), array("i")
    for name in names:
        begun = len(buckets)
        for bucket, lasted in _by_bucket(steps.of(name, from_us, to_us, before), from_us, bucket_us):
            value = _cell(lasted, special)
            if len(buckets) == begun or values[-1] != value:
                buckets.append(bucket)
                values.append(value)
        counts.append(len(buckets) - begun)
    return Cells(bucket_us, counts, buckets, values)


def _by_bucket(found: Iterator[Step], from_us: int, bucket_us: int) -> Iterator[tuple[int, dict[int, int]]]:
    """Bucket by bucket: how long each value lasted in it."""
    bucket, lasted = 0, dict[int, int]()
    for step in found:
        begun_us = step.from_us
        while begun_us < step.to_us:
            here = (begun_us - from_us) // bucket_us
            if here != bucket:
                yield bucket, lasted
                bucket, lasted = here, {}
            until_us = min(step.to_us, from_us + (here + 1) * bucket_us)
            lasted[step.value] = lasted.get(step.value, 0) + until_us - begun_us
            begun_us = until_us
    if lasted:
        yield bucket, lasted


def _cell(lasted: dict[int, int], special: int) -> int:
    total, of_special = sum(lasted.values()), lasted.get(special, 0)
    share = -(-of_special * (SHARES - 1) // total) if of_special else 0
    others = {value: time_us for value, time_us in lasted.items() if value != special}
    value = max(others, key=lambda one: (others[one], -one)) if others else special
    return value * SHARES + share


#: A curve has this many buckets at most, and half as many at least (of a long trace).
BUCKETS_MAX: Final = 1_200
_FIRST_BUCKET_US: Final = 100_000

#: The most records that waited since the last call, and the age of the oldest record that waits now in
#: microseconds, of these partitions or (None) of all; None if the trace does not know.
Probe = Callable[[int, Sequence[str] | None], tuple[float, int] | None]


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
                probed = None if probe is None else probe(until_us, None)
                here.see(probed)
                self.buckets.append(Bucket())
                if probe is not None and probed is not None:
                    lag, _ = probe(until_us, ()) or probed
                    self.buckets[-1].see((lag, probed[1]))  # no record ages within an instant

    def see(self, probed: tuple[float, int] | None) -> None:
        """Values at the present instant."""
        self.buckets[-1].see(probed)

    def _halve(self) -> None:
        for number in range(0, len(self.buckets) - 1, 2):
            self.buckets[number].merge(self.buckets[number + 1])
        self.buckets = self.buckets[::2]
        self.bucket_us *= 2


def packed(numbers: Iterable[int]) -> str:
    """Whole numbers from -2**31 on and below 2**31, little-endian. Raises OverflowError for others."""
    found = array("i", numbers)
    if sys.byteorder == "big":
        found.byteswap()
    return b64encode(zlib.compress(found.tobytes(), 9)).decode("ascii")


def packed_times(counts: Iterable[int], times: Iterable[int]) -> str:
    """Times of several lists, one after the other: each as its distance from the one before it."""
    found, rest = [], iter(times)
    for count in counts:
        before = 0
        for _ in range(count):
            now = next(rest)
            found.append(now - before)
            before = now
    return packed(found)
