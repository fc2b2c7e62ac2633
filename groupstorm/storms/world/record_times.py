"""The times that an application takes: for records (`process_ms`, `concurrency`, factors, slow records), and
with an assignor or a callback (`ApplicationDraws`).

Many records of one batch are not drawn one by one: their sum is drawn from a normal distribution with the
mean and the variance of `process_ms`. Integers only, so that a seed gives the same times on any machine.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b
from math import isqrt
from typing import Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.scenario.member_rules import SlowRecord, SlowRecordList
from groupstorm.storms.scenario.randomness import Distribution, Stream
from groupstorm.storms.world.clock import Clock

#: Factors are in thousandths: this one leaves times as they are.
UNCHANGED: Final = 1_000

#: Up to so many records of a partition are drawn one by one.
_FEW: Final = 8

# Where the draws of the n-th batch lie: slots for its partitions, and in each the records' own.
_BATCH_BITS: Final = 24
_SLOT_BITS: Final = 4
_INTERVAL: Final = (1 << _BATCH_BITS) - 1


NEVER_DONE_US: Final = 100 * 24 * 3_600_000_000
"""The work on a record that kills the process: the process dies before."""


class SlowRecordTimes:
    """Records on which an application works for long: the same for every owner of their partition.

    Of several entries for one record the first one counts.

    ``fatal``: the records that kill a process, and after how long.
    """

    def __init__(self, entries: SlowRecordList, logs: RecordLogs) -> None:
        self._entries: dict[TopicPartition, list[SlowRecord]] = {}
        self._logs = logs
        self._of_partition: dict[TopicPartition, tuple[list[int], dict[int, int]]] = {}
        self.fatal: dict[TopicPartition, tuple[int, int]] = {}
        #: (number, extra time): each so-manieth record of every partition.
        self._every: list[tuple[int, int]] = []
        #: The entry of each record that one names, and the entries of so-manieth records.
        self._named: dict[tuple[TopicPartition, int], SlowRecord] = {}
        self._of_number = {one.every: one for one in reversed(entries.records) if one.every is not None}
        for entry in entries.records:
            if entry.every is not None:
                self._every.append((entry.every, entry.work_us))
            else:
                named = TopicPartition(entry.topic, entry.partition)
                self._entries.setdefault(named, []).append(entry)
        self._find(self._entries)

    def created(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions were created now: other records arrive at the times that entries name."""
        self._find([partition for partition in partitions if partition in self._entries])

    def _find(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.fatal.pop(partition, None)
            extra: dict[int, int] = {}
            for entry in self._entries[partition]:
                arrived = self._logs.end(partition, entry.at_us or 0)
                offset = entry.offset if entry.offset is not None else arrived
                self._named.setdefault((partition, offset), entry)
                extra.setdefault(offset, NEVER_DONE_US if entry.crashes else entry.work_us)
                if entry.crashes:
                    self.fatal.setdefault(partition, (offset, entry.work_us))
            self._of_partition[partition] = (sorted(extra), extra)

    def extra_us(self, partition: TopicPartition, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """The slow records from offset ``first`` to before ``last``, and how much longer each takes."""
        found: dict[int, int] = {}
        if partition in self._of_partition:
            offsets, extra = self._of_partition[partition]
            for offset in offsets[bisect_left(offsets, first) : bisect_left(offsets, last)]:
                found[offset] = extra[offset]
        for number, work_us in self._every:
            for offset in range(-(-first // number) * number, last, number):
                found.setdefault(offset, work_us)
        return tuple(sorted(found.items()))

    def entry(self, partition: TopicPartition, offset: int) -> tuple[int, str]:
        """Return the microseconds of work on the record, and its outcome; (0, "") if it is not slow."""
        found = self._named.get((partition, offset))
        numbers = [number for number, _ in self._every if not offset % number]
        if found is None and numbers:
            found = self._of_number[numbers[0]]
        return (0, "") if found is None else (found.work_us, found.outcome)

    def next_offset(self, partition: TopicPartition, first: int) -> int | None:
        """The first slow record at ``first`` or later; None: there is none."""
        candidates = [-(-first // number) * number for number, _ in self._every]
        if partition in self._of_partition:
            offsets, _ = self._of_partition[partition]
            at = bisect_left(offsets, first)
            candidates += offsets[at : at + 1]
        return min(candidates, default=None)


class RecordTimes:
    """The times of one process. ``factor`` is that of its machine, in thousandths.

    The application works on ``concurrency`` records at a time: a batch takes the sum of its records' times
    divided by that. ``commit_ns``: what commits by hand add to each record, whoever works on it.
    """

    def __init__(
        self,
        process: Distribution,
        concurrency: int,
        stream: Stream,
        factor: int = UNCHANGED,
        slow: SlowRecordTimes | None = None,
        commit_ns: int = 0,
    ) -> None:
        self._process = process
        self._factor = factor
        self._share = UNCHANGED * concurrency
        #: The time that the slowest record takes, times `_share`.
        self._slowest = process.largest_us * factor
        self._stream = stream
        self._mean_ns, self._variance = process.mean_and_variance()
        self._commit_ns = commit_ns
        self.slow = slow
        #: Whether each record takes the same time.
        self.are_even = process.is_constant and slow is None

    def _scaled(self, us: int) -> int:
        return us * self._factor // self._share

    def records_us(self, count: int, batch: int, slot: int) -> int:
        """The time of ``count`` records of the ``slot``-th partition of a batch, but for slow records."""
        return self._work_us(count, batch, slot) + self._committing_us(count)

    def _work_us(self, count: int, batch: int, slot: int) -> int:
        process = self._process
        if process.is_constant:
            return self._scaled(count * process.largest_us)
        index = (batch << _BATCH_BITS) + (slot << _SLOT_BITS)
        if count <= _FEW:
            drawn = 0
            for record in range(count):
                drawn += process.at(self._stream.at(index + record))
            return self._scaled(drawn)
        spread = isqrt(count * self._variance) * self._normal(index) // 65_536
        drawn = max(count * self._mean_ns // 1000 + spread, count * process.least_us)
        drawn = min(drawn, count * process.largest_us)
        return self._scaled(drawn)

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

    def largest_us(self, count: int) -> int:
        """The longest time that ``count`` records can take, without what makes single records slow."""
        return count * self._slowest // self._share + self._committing_us(count)

    def mean_us(self, count: int) -> int:
        """The time that ``count`` records take in the mean."""
        return count * self._mean_ns * self._factor // (self._share * 1_000) + self._committing_us(count)

    def _committing_us(self, count: int) -> int:
        return count * self._commit_ns // 1000


# What a process draws at one instant: each purpose has a number of its own.
ASSIGN: Final = 0
CALLBACK: Final = 1
_PURPOSES: Final = 2


class ApplicationDraws:
    """The draws of one process: they depend on its name, its incarnation, the time and the purpose alone."""

    def __init__(self, clock: Clock, seed: int, name: str, incarnation: int) -> None:
        self._clock = clock
        self._stream = Stream(seed, "application", name, incarnation)

    def draw(self, purpose: int) -> int:
        return self._stream.at(_PURPOSES * self._clock.now_us + purpose)

    def duration_us(self, distribution: Distribution, purpose: int) -> int:
        """A duration that begins now."""
        if distribution.is_constant:
            return distribution.largest_us
        return distribution.at(self.draw(purpose))


def drawn_member_id(seed: int, name: str, incarnation: int) -> str:
    """A UUID as Kafka prints it (Uuid.randomUuid): the same in every run of that seed."""
    attempt = 0
    while True:
        content = f"{seed}/consumer-group-member/{name}/{incarnation}/{attempt}".encode()
        drawn = urlsafe_b64encode(blake2b(content, digest_size=16).digest()).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn
        attempt += 1
