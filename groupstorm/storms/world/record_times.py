"""The times that an application works on records: `process_ms`, `concurrency`, factors, slow records.

Many records of one batch are not drawn one by one: their sum is drawn from a normal distribution with the
mean and the variance of `process_ms`. Integers only, so that a seed gives the same times on any machine.
"""

from __future__ import annotations

from math import isqrt
from typing import Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.scenario.randomness import Distribution, Stream

#: Factors are in thousandths: this one leaves times as they are.
UNCHANGED: Final = 1_000

#: Up to so many records of a partition are drawn one by one.
_FEW: Final = 8

# Where the draws of the n-th batch lie: slots for its partitions, and in each the records' own.
_BATCH_BITS: Final = 24
_SLOT_BITS: Final = 4
_INTERVAL: Final = (1 << _BATCH_BITS) - 1


class SlowRecords(Protocol):
    """Single records that take longer than others."""

    def extra_us(self, partition: TopicPartition, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """The slow records from offset ``first`` to before ``last``, and how much longer each takes."""
        ...

    def next_offset(self, partition: TopicPartition, first: int) -> int | None:
        """The first slow record at ``first`` or later; None: there is none."""
        ...


class PartitionFactors(Protocol):
    """Partitions whose records take longer than others."""

    def factor(self, partition: TopicPartition) -> int:
        """In thousandths."""
        ...


class RecordTimes:
    """The times of one process. ``factor`` is that of its machine, in thousandths.

    The application works on ``concurrency`` records at a time: a batch takes the sum of its records' times
    divided by that. ``commit_ns``: what commits by hand add to each record, whoever works on it.
    """

    __slots__ = (
        "_commit_ns",
        "_factor",
        "_mean_ns",
        "_ordinary",
        "_process",
        "_share",
        "_stream",
        "_variance",
        "are_even",
        "factors",
        "slow",
    )

    def __init__(
        self,
        process: Distribution,
        concurrency: int,
        stream: Stream,
        factor: int = UNCHANGED,
        factors: PartitionFactors | None = None,
        slow: SlowRecords | None = None,
        commit_ns: int = 0,
    ) -> None:
        self._process = process
        self._factor = factor
        self._share = UNCHANGED * UNCHANGED * concurrency
        #: The time that the slowest record of an ordinary partition takes, times `_share`.
        self._ordinary = process.largest_us * factor * UNCHANGED
        self._stream = stream
        self._mean_ns, self._variance = process.mean_and_variance()
        self._commit_ns = commit_ns
        self.factors = factors
        self.slow = slow
        #: Whether each record of each partition takes the same time.
        self.are_even = process.is_constant and factors is None and slow is None

    @property
    def are_constant(self) -> bool:
        """Whether all records of a partition take the same time."""
        return self._process.is_constant and self.slow is None

    def _scaled(self, partition: TopicPartition, us: int) -> int:
        factor = UNCHANGED if self.factors is None else self.factors.factor(partition)
        return us * self._factor * factor // self._share

    def records_us(self, partition: TopicPartition, count: int, batch: int, slot: int) -> int:
        """The time of ``count`` records of one partition, without what makes single records slow."""
        return self._work_us(partition, count, batch, slot) + self._committing_us(count)

    def _work_us(self, partition: TopicPartition, count: int, batch: int, slot: int) -> int:
        process = self._process
        if process.is_constant:
            return self._scaled(partition, count * process.largest_us)
        index = (batch << _BATCH_BITS) + (slot << _SLOT_BITS)
        if count <= _FEW:
            drawn = 0
            for record in range(count):
                drawn += process.at(self._stream.at(index + record))
            return self._scaled(partition, drawn)
        spread = isqrt(count * self._variance) * self._normal(index) // 65_536
        drawn = max(count * self._mean_ns // 1000 + spread, count * process.least_us)
        drawn = min(drawn, count * process.largest_us)
        return self._scaled(partition, drawn)

    def _normal(self, index: int) -> int:
        """A draw from the standard normal distribution, times 65,536: the sum of twelve even draws."""
        total = -6 * 65_536
        for part in range(3):
            one, other = self._stream.pair(index + part)
            total += (one >> 16) + (one & 0xFFFF) + (other >> 16) + (other & 0xFFFF)
        return total

    def interval_us(self, interval: Distribution, batch: int) -> int:
        """The time between two polls that the n-th batch has to keep."""
        if interval.is_constant:
            return interval.largest_us
        return interval.at(self._stream.at((batch << _BATCH_BITS) + _INTERVAL))

    def most_us(self, partition: TopicPartition, count: int) -> int:
        """The longest time that ``count`` records can take, without what makes single records slow."""
        return self._scaled(partition, count * self._process.largest_us) + self._committing_us(count)

    def largest_us(self, count: int) -> int:
        """The longest time that ``count`` records of an ordinary partition can take."""
        return count * self._ordinary // self._share + self._committing_us(count)

    def mean_us(self, count: int) -> int:
        """The time that ``count`` records of an ordinary partition take in the mean."""
        return count * self._mean_ns * self._factor // self._share + self._committing_us(count)

    def _committing_us(self, count: int) -> int:
        return count * self._commit_ns // 1000
