"""Values that change over time: the owner of each partition, the phase of each member."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

    def value(self, name: str, default: int) -> int:
        """The present value."""
        number = self.numbers.get(name)
        return default if number is None or not self._values[number] else self._values[number][-1]

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
