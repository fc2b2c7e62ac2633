"""The log of a partition as the leader of a share group reads it: whole record batches.

Records arrive as `RecordLogs` says. They are in the log when their record batch is complete, or when the log
gets records at another rate: then producers send what they have. So the batches follow from the rates alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, overload

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.ports import ComputedBatches, LogPosition, LogRead, RecordBatch
from groupstorm.storms.records.logs import LogCurve
from groupstorm.storms.world.clock import Clock

#: A read ends so many records behind its beginning: no group can have more in flight.
_READ_MOST: Final = 20_000


class VirtualLog:
    """A `share_records.ports.PartitionLog`.

    ``curve``: the records that have arrived by a time; ``per_batch``: records of a record batch.
    """

    def __init__(self, curve: LogCurve, clock: Clock, per_batch: int, record_bytes: int) -> None:
        self._per_batch = per_batch
        self._curve = curve
        self._clock = clock
        self._record_bytes = record_bytes
        #: The end of the log at a time; questions come several at a time.
        self._known_us, self._known = -1, LogPosition(0, 0)
        #: The times at which the rate changes, and where the log ends then: record batches begin there.
        self._starts_us = [0]
        while (change_us := curve.next_change_us(self._starts_us[-1])) is not None:
            self._starts_us.append(change_us)
        self._starts = [curve.end(start_us) for start_us in self._starts_us]
        #: The record batches before each of these.
        self._before = [0]
        for start, end in pairwise(self._starts):
            self._before.append(self._before[-1] - (start - end) // per_batch)

    def leader_epoch(self) -> int:
        return 0

    def earliest_offset(self) -> int:
        return 0

    def latest_offset(self) -> int:
        """The end of the last complete record batch."""
        return self._end().offset

    def _end(self) -> LogPosition:
        now_us = self._clock.now_us
        if now_us != self._known_us:
            start = self._starts[bisect_right(self._starts_us, now_us) - 1]
            end = start + (self._curve.end(now_us) - start) // self._per_batch * self._per_batch
            self._known_us, self._known = now_us, LogPosition(end, end * self._record_bytes)
        return self._known

    def next_arrival_us(self) -> int | None:
        """When the next record batch is complete; None: nothing more arrives."""
        piece = bisect_right(self._starts_us, self._clock.now_us)
        complete_us = self._curve.arrived_us(self.latest_offset() + self._per_batch - 1)
        if piece == len(self._starts_us):
            return complete_us
        change_us = self._starts_us[piece]
        return change_us if complete_us is None else min(complete_us, change_us)

    def end(self, *, is_committed: bool) -> LogPosition:
        del is_committed
        return self._end()

    def bytes_between(self, start: LogPosition, end: LogPosition, most: int) -> int:
        return min(end.byte - start.byte, most)

    def offset_at(self, timestamp_ms: int) -> int:
        return self._curve.end(timestamp_ms * 1000)

    def read(self, offset: int, max_bytes: int, *, one_at_least: bool, is_committed: bool) -> LogRead:
        del is_committed
        end = self.latest_offset()
        if offset > end:
            return LogRead(Error.OFFSET_OUT_OF_RANGE)
        base = self._batch_start(offset)
        position = LogPosition(offset, base * self._record_bytes)
        if offset == end:
            return LogRead(Error.NONE, position)
        until = min(end, base + min(_READ_MOST, max_bytes // self._record_bytes))
        if until < end:
            until = self._batch_start(until)
        if until <= offset and one_at_least:
            until = self.batch(self._number(base)).last_offset + 1
        if until <= base:
            return LogRead(Error.NONE, position)
        number = self._number(base)
        batches: Sequence[RecordBatch] = (self.batch(number),)
        if until > batches[0].last_offset + 1:
            batches = RecordBatches(self, range(number, self._number(until)))
        return LogRead(Error.NONE, position, batches, (until - base) * self._record_bytes)

    def _batch_start(self, offset: int) -> int:
        """The first record of the batch that holds ``offset``."""
        start = self._starts[bisect_right(self._starts, offset) - 1]
        return offset - (offset - start) % self._per_batch

    def _number(self, offset: int) -> int:
        """The record batches before the one that holds ``offset``."""
        piece = bisect_right(self._starts, offset) - 1
        return self._before[piece] + (offset - self._starts[piece]) // self._per_batch

    def begun(self, offset: int) -> int:
        """The record batches that begin at or before ``offset``."""
        return self._number(offset) + 1 if offset >= 0 else 0

    def batch(self, number: int) -> RecordBatch:
        """The record batch with so many before it."""
        piece = bisect_right(self._before, number) - 1
        base = self._starts[piece] + (number - self._before[piece]) * self._per_batch
        end = base + self._per_batch
        if piece + 1 < len(self._starts):
            end = min(end, self._starts[piece + 1])
        return RecordBatch(base, end - 1, (end - base) * self._record_bytes)


class RecordBatches(ComputedBatches):
    """Record batches by their numbers, each made when somebody looks at it."""

    __slots__ = ("_log", "_numbers")

    def __init__(self, log: VirtualLog, numbers: range) -> None:
        self._log = log
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def up_to(self, offset: int) -> int:
        return max(0, min(self._log.begun(offset) - self._numbers.start, len(self._numbers)))

    @overload
    def __getitem__(self, at: int) -> RecordBatch: ...

    @overload
    def __getitem__(self, at: slice) -> RecordBatches: ...

    def __getitem__(self, at: int | slice) -> RecordBatch | RecordBatches:
        if isinstance(at, slice):
            return RecordBatches(self._log, self._numbers[at])
        return self._log.batch(self._numbers[at])
