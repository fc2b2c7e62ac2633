"""The log of one partition: batches and their offsets, segments, producers, transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from groupstorm.broker.log.batches import Batch, marker_batch, placed_at
from groupstorm.broker.log.cleaning import Cleanable, Cleaned, clean, cleanable
from groupstorm.broker.log.columns import (
    IN_MEMORY,
    NO_TIMESTAMP,
    Columns,
    LogBatches,
    RecordStore,
)
from groupstorm.broker.log.producers import AbortedTransaction, KeptProducer, PartitionTransactions, Producers
from groupstorm.broker.log.records import first_record_since, record_of_max_timestamp
from groupstorm.broker.topic_configs import LogSettings

#: Partitions never change their leaders.
LEADER_EPOCH = 0
NO_OFFSET = -1


class TimedOffset(NamedTuple):
    """An offset and the timestamp by which it was found; -1 and -1 if there is none."""

    timestamp_ms: int
    offset: int


class Appended(NamedTuple):
    """The place of a batch. ``data``: its bytes with that offset; None if it is a repetition."""

    base_offset: int
    data: bytes | None


class LogState(NamedTuple):
    """The part of a log that its batches do not tell."""

    start_offset: int
    end_offset: int
    first_dirty_offset: int
    segments: tuple[int, ...]
    producers: tuple[KeptProducer, ...]
    open_transactions: tuple[tuple[int, int], ...]
    aborted: tuple[AbortedTransaction, ...]


class Segments:
    """The offsets at which the segments of one log begin.

    Nothing is kept in segments here: a segment is the offset at which Kafka would begin a new file. The
    newest one, the active segment, is not compacted.
    """

    __slots__ = ("_active_bytes", "_active_since_ms", "bases")

    def __init__(self) -> None:
        self.bases = [0]
        self._active_bytes = 0
        self._active_since_ms = 0

    @property
    def active_base(self) -> int:
        return self.bases[-1]

    def appending(self, base_offset: int, size: int, max_timestamp_ms: int, settings: LogSettings) -> None:
        """Begin a new segment in front of this batch if the batch would make the active one too large, or is
        too much newer than the first batch of the active one (LogSegment.shouldRoll)."""
        if self._active_bytes:
            waited_ms = max_timestamp_ms - self._active_since_ms if self._active_since_ms >= 0 else 0
            is_full = self._active_bytes > settings.segment_bytes - size
            if is_full or waited_ms > settings.longest_segment_ms:
                self.bases.append(base_offset)
                self._active_bytes = 0
        if not self._active_bytes:
            self._active_since_ms = max_timestamp_ms
        self._active_bytes += size

    def begin_at(self, offset: int) -> None:
        """Forget the segments in front of this offset, the beginning of the log."""
        while len(self.bases) > 1 and self.bases[1] <= offset:
            del self.bases[0]
        self.bases[0] = max(self.bases[0], offset)

    def merge(self, until: int) -> None:
        """Compaction makes one segment of those in front of this offset, which is the base of another one."""
        self.bases = [self.bases[0], *(base for base in self.bases[1:] if base >= until)]

    def restore(self, bases: Sequence[int], batches: LogBatches) -> None:
        """Take the segments of a log that has these batches."""
        self.bases = list(bases)
        first = batches.from_base(self.active_base)
        self._active_bytes = batches.size_of(first, len(batches))
        stamps_ms = batches.columns.max_timestamps_ms
        self._active_since_ms = stamps_ms[first] if first < len(stamps_ms) else 0


class PartitionLog:
    """Batches in the order of their offsets. The end offset is that of the next record, as in Kafka."""

    __slots__ = ("_segments", "batches", "end_offset", "first_dirty_offset", "is_gone", "producers",
                 "settings", "size_bytes", "start_offset", "transactions")  # fmt: skip

    def __init__(self, settings: LogSettings | None = None, store: RecordStore | None = None) -> None:
        self.settings = settings or LogSettings()
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        #: Compaction has seen everything in front of it.
        self.first_dirty_offset = 0
        self.producers = Producers()
        self.transactions = PartitionTransactions()
        self.batches = LogBatches(store or RecordStore())
        #: The topic has been deleted; a waiting fetch may still hold this log.
        self.is_gone = False
        self._segments = Segments()

    def append(self, batch: Batch) -> Appended:
        """Append a batch; for a repetition, return the old offset and append nothing.

        Raises BatchError for an idempotent producer whose sequence does not follow.
        """
        repeated = self.producers.repeated(batch)
        if repeated is not None:
            return Appended(repeated, None)
        self.producers.check(batch)
        return self._append(batch)

    def append_marker(self, producer_id: int, producer_epoch: int, is_commit: bool, now_ms: int) -> Appended:
        """Append the control batch that ends a producer's transaction in this partition."""
        return self._append(marker_batch(producer_id, producer_epoch, is_commit, now_ms))

    def restore(self, batch: Batch, position: int = IN_MEMORY) -> None:
        """Append a batch of the journal at its offset; ``position``: where its bytes are in the file. The log
        begins with the first one."""
        if not self.batches:
            self.start_offset = max(self.start_offset, batch.base_offset)
        self.end_offset = batch.base_offset
        self._append(batch, position)

    def _append(self, batch: Batch, position: int = IN_MEMORY) -> Appended:
        base_offset = self.end_offset
        data = placed_at(batch, base_offset, LEADER_EPOCH)
        self._segments.appending(base_offset, len(data), batch.max_timestamp_ms, self.settings)
        self.batches.append(data, position)
        self.end_offset = base_offset + batch.last_offset_delta + 1
        self.size_bytes += len(data)
        self._note_producer(batch, base_offset)
        self._retain_bytes()
        return Appended(base_offset, data)

    def _note_producer(self, batch: Batch, base_offset: int) -> None:
        if batch.is_control:
            self.producers.transaction_ended(batch.producer_id, batch.producer_epoch)
        else:
            self.producers.appended(batch, base_offset)
        self.transactions.appended(batch, base_offset)

    @property
    def last_stable_offset(self) -> int:
        """See `PartitionTransactions.last_stable_offset`."""
        return self.transactions.last_stable_offset(self.end_offset)

    def state(self) -> LogState:
        """The state for the journal, behind the log's batches."""
        return LogState(
            self.start_offset,
            self.end_offset,
            self.first_dirty_offset,
            tuple(self._segments.bases),
            self.producers.kept(),
            tuple(self.transactions.open.items()),
            tuple(self.transactions.aborted),
        )

    def take_state(self, state: LogState) -> None:
        """Take the state that the journal holds; the batches are there already."""
        self.start_offset, self.end_offset = state.start_offset, state.end_offset
        self.first_dirty_offset = state.first_dirty_offset
        self._segments.restore(state.segments, self.batches)
        self.producers.restore(state.producers)
        self.transactions.restore(state.open_transactions, state.aborted)

    def take_batches(self, columns: Columns) -> None:
        """Take the batches of an empty log that are in the file; the log's state follows."""
        self.batches.extend(columns)
        self.size_bytes = sum(columns.sizes)

    # compaction

    def cleanable(self, now_ms: int) -> Cleanable:
        """The part that may be compacted now."""
        first_dirty_offset = max(self.first_dirty_offset, self.start_offset)
        segments, stable = self._segments.bases, self.last_stable_offset
        return cleanable(self.batches, segments, first_dirty_offset, stable, self.settings, now_ms)

    def clean(self, part: Cleanable, now_ms: int) -> Cleaned:
        """Find what compaction changes; `remove`, `rewrite` and `end_cleaning` change it. Raises OSError."""
        last_records = self.producers.last_records()
        return clean(
            self.batches,
            part,
            self.transactions.aborted,
            last_records,
            self.settings.delete_retention_ms,
            now_ms,
        )

    def remove(self, base_offsets: Collection[int]) -> None:
        """Remove the batches that begin at these offsets. The log begins and ends where it did."""
        self.batches.remove(frozenset(base_offsets))
        self.size_bytes = sum(self.batches.columns.sizes)

    def rewrite(self, data: bytes, position: int = IN_MEMORY) -> None:
        """Put a batch in the place of the one with its base offset. Raises LookupError if there is none."""
        base_offset = Batch.read(data).base_offset
        index = self.batches.index_of(base_offset)
        if index is None:
            raise LookupError(f"no batch begins at {base_offset}")
        self.size_bytes += len(data) - self.batches.columns.sizes[index]
        self.batches.replace(index, data, position)

    def end_cleaning(self, first_dirty_offset: int, aborted: Iterable[AbortedTransaction]) -> None:
        self.first_dirty_offset = first_dirty_offset
        self.transactions.aborted = [*aborted]
        self._segments.merge(first_dirty_offset)

    # retention

    def _retain_bytes(self) -> None:
        """Drop the oldest batches beyond retention.bytes, never the last one."""
        if self.settings.retention_bytes < 0 or not self.settings.is_deleted:
            return
        left, dropped = self.size_bytes, 0
        sizes = self.batches.columns.sizes
        while left > self.settings.retention_bytes and dropped < len(sizes) - 1:
            left -= sizes[dropped]
            dropped += 1
        self._drop(dropped)

    def expire(self, now_ms: int) -> bool:
        """Drop the oldest batches whose newest record is older than retention.ms, and those beyond
        retention.bytes, which may have been lowered, if the cleanup.policy says so. Return whether any was
        dropped."""
        start_offset, dropped = self.start_offset, 0
        before_ms = now_ms - self.settings.retention_ms
        stamps_ms = self.batches.columns.max_timestamps_ms
        expires = self.settings.is_deleted and self.settings.retention_ms >= 0
        while expires and dropped < len(stamps_ms) and stamps_ms[dropped] < before_ms:
            dropped += 1
        self._drop(dropped)
        self._retain_bytes()
        return self.start_offset > start_offset

    def delete_before(self, offset: int) -> None:
        """Begin the log at ``offset`` (DeleteRecords)."""
        if offset <= self.start_offset:
            return
        self._drop(self.batches.holding(offset))
        self._begin_at(offset)

    def begin_at(self, offset: int) -> None:
        """Begin an empty log at this offset."""
        self.end_offset = max(self.end_offset, offset)
        self.delete_before(offset)

    def _drop(self, count: int) -> None:
        if not count:
            return
        self.size_bytes -= self.batches.size_of(0, count)
        start_offset = self.batches.columns.last_offsets[count - 1] + 1
        self.batches.drop(count)
        self._begin_at(max(self.start_offset, start_offset))

    def _begin_at(self, offset: int) -> None:
        self.start_offset = offset
        self._segments.begin_at(offset)
        self.transactions.begin_at(offset)

    # reading

    def read(self, offset: int, max_bytes: int, at_least_one: bool, until: int | None = None) -> list[bytes]:
        """Whole batches from the one that holds ``offset``, at most ``max_bytes`` of them.

        ``at_least_one``: read the first batch whatever its size, so that a consumer with smaller limits makes
        progress (KIP-74). ``until``: the offset before which to stop. Raises OSError.
        """
        taken: list[bytes] = []
        left = max_bytes
        for index in self._range(offset, until):
            size = self.batches.columns.sizes[index]
            if size > left and (taken or not at_least_one):
                break
            taken.append(self.batches.data(index))
            left -= size
        return taken

    def _range(self, offset: int, until: int | None) -> range:
        end = len(self.batches) if until is None else self.batches.from_base(until)
        return range(self.batches.holding(offset), end)

    def readable_bytes(self, offset: int, max_bytes: int, until: int | None = None) -> int:
        """The bytes from ``offset`` on, counted up to ``max_bytes``."""
        if offset >= self.end_offset:
            return 0
        total = 0
        for index in self._range(offset, until):
            total += self.batches.columns.sizes[index]
            if total >= max_bytes:
                return max_bytes
        return total

    def has_offset(self, offset: int) -> bool:
        """Whether a consumer may fetch from here. At the end offset it waits."""
        return self.start_offset <= offset <= self.end_offset

    def at_timestamp(self, timestamp_ms: int) -> TimedOffset:
        """The first record of that time or later (UnifiedLog.fetchOffsetByTimestamp).

        For a batch that cannot be opened the answer is its first offset, which is never behind the right one.
        Raises OSError.
        """
        columns = self.batches.columns
        for index, max_timestamp_ms in enumerate(columns.max_timestamps_ms):
            if max_timestamp_ms < timestamp_ms:
                continue
            found = first_record_since(self.batches.data(index), timestamp_ms, self.start_offset)
            if found is not None:
                return TimedOffset(found.timestamp_ms, columns.base_offsets[index] + found.offset_delta)
        return TimedOffset(NO_TIMESTAMP, NO_OFFSET)

    def at_max_timestamp(self) -> TimedOffset:
        """The record with the highest timestamp, the earliest of several (KIP-734). Raises OSError."""
        columns = self.batches.columns
        highest = max(columns.max_timestamps_ms, default=NO_TIMESTAMP)
        if highest == NO_TIMESTAMP:
            return TimedOffset(NO_TIMESTAMP, NO_OFFSET)
        index = columns.max_timestamps_ms.index(highest)
        delta = record_of_max_timestamp(self.batches.data(index))
        return TimedOffset(highest, columns.base_offsets[index] + delta)
