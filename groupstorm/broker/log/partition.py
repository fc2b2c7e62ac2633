"""The log of one partition: batches and their offsets, producers, open and aborted transactions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from groupstorm.broker.log.batches import Batch, marker_batch, placed_at
from groupstorm.broker.log.producers import Producers
from groupstorm.broker.log.records import first_record_since, record_of_max_timestamp
from groupstorm.broker.topic_configs import LogSettings

#: Partitions never change their leaders.
LEADER_EPOCH = 0
NO_TIMESTAMP = -1
NO_OFFSET = -1


class TimedOffset(NamedTuple):
    """An offset and the timestamp by which it was found; -1 and -1 if there is none."""

    timestamp_ms: int
    offset: int


class AbortedTransaction(NamedTuple):
    """Consumers of committed records drop this producer's records between these offsets; the last one is the
    marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


class Appended(NamedTuple):
    """The place of a batch. ``data``: its bytes with that offset; None if it is a repetition."""

    base_offset: int
    data: bytes | None


class PartitionLog:
    """Batches in the order of their offsets. The end offset is that of the next record, as in Kafka."""

    __slots__ = ("_aborted", "_base_offsets", "_batches", "_last_offsets", "_max_timestamps_ms",
                 "_open_transactions", "end_offset", "is_gone", "producers", "settings", "size_bytes",
                 "start_offset")  # fmt: skip

    def __init__(self, settings: LogSettings | None = None) -> None:
        self.settings = settings or LogSettings()
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        self.producers = Producers()
        #: The topic has been deleted; a waiting fetch may still hold this log.
        self.is_gone = False
        self._batches: list[bytes] = []
        self._base_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self._max_timestamps_ms: list[int] = []
        self._open_transactions: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

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

    def restore(self, batch: Batch, base_offset: int) -> None:
        """Append a batch of the journal at its offset. The log begins with the first one."""
        if not self._batches:
            self.start_offset = max(self.start_offset, base_offset)
        self.end_offset = base_offset
        self._append(batch)

    def _append(self, batch: Batch) -> Appended:
        base_offset = self.end_offset
        data = placed_at(batch, base_offset, LEADER_EPOCH)
        self._batches.append(data)
        self._base_offsets.append(base_offset)
        self._last_offsets.append(base_offset + batch.last_offset_delta)
        self._max_timestamps_ms.append(batch.max_timestamp_ms)
        self.end_offset = base_offset + batch.last_offset_delta + 1
        self.size_bytes += len(data)
        self._note_producer(batch, base_offset)
        self._retain_bytes()
        return Appended(base_offset, data)

    def _note_producer(self, batch: Batch, base_offset: int) -> None:
        if batch.is_control:
            self.producers.transaction_ended(batch.producer_id, batch.producer_epoch)
            first = self._open_transactions.pop(batch.producer_id, None)
            if first is not None and not batch.is_commit_marker:
                self._aborted.append(AbortedTransaction(batch.producer_id, first, base_offset))
            return
        self.producers.appended(batch, base_offset)
        if batch.is_transactional:
            self._open_transactions.setdefault(batch.producer_id, base_offset)

    @property
    def last_stable_offset(self) -> int:
        """The end of committed reads: the first offset of the earliest open transaction, or the end
        offset."""
        return min(self._open_transactions.values(), default=self.end_offset)

    def aborted(self, offset: int, until: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from ``offset`` to before ``until``, in the order of their
        markers (LogSegment.collectAbortedTxns)."""
        return [one for one in self._aborted if one.last_offset >= offset and one.first_offset < until]

    def _retain_bytes(self) -> None:
        """Drop the oldest batches beyond retention.bytes, never the last one."""
        if self.settings.retention_bytes < 0:
            return
        left, dropped = self.size_bytes, 0
        while left > self.settings.retention_bytes and dropped < len(self._batches) - 1:
            left -= len(self._batches[dropped])
            dropped += 1
        self._drop(dropped)

    def expire(self, now_ms: int) -> bool:
        """Drop the oldest batches whose newest record is older than retention.ms, and those beyond
        retention.bytes, which may have been lowered. Return whether any was dropped."""
        start_offset, dropped = self.start_offset, 0
        before_ms = now_ms - self.settings.retention_ms
        while (
            self.settings.retention_ms >= 0
            and dropped < len(self._batches)
            and self._max_timestamps_ms[dropped] < before_ms
        ):
            dropped += 1
        self._drop(dropped)
        self._retain_bytes()
        return self.start_offset > start_offset

    def delete_before(self, offset: int) -> None:
        """Begin the log at ``offset`` (DeleteRecords)."""
        if offset <= self.start_offset:
            return
        self._drop(bisect_left(self._last_offsets, offset))
        self.start_offset = offset

    def begin_at(self, offset: int) -> None:
        """Begin an empty log at this offset."""
        self.end_offset = max(self.end_offset, offset)
        self.delete_before(offset)

    def _drop(self, count: int) -> None:
        if not count:
            return
        self.size_bytes -= sum(map(len, self._batches[:count]))
        self.start_offset = max(self.start_offset, self._last_offsets[count - 1] + 1)
        for column in (self._batches, self._base_offsets, self._last_offsets, self._max_timestamps_ms):
            del column[:count]
        self._aborted = [one for one in self._aborted if one.last_offset >= self.start_offset]

    def read(self, offset: int, max_bytes: int, at_least_one: bool, until: int | None = None) -> list[bytes]:
        """Whole batches from the one that holds ``offset``, at most ``max_bytes`` of them.

        ``at_least_one``: read the first batch whatever its size, so that a consumer with smaller limits makes
        progress (KIP-74). ``until``: the offset before which to stop.
        """
        taken: list[bytes] = []
        left = max_bytes
        for index in self._range(offset, until):
            batch = self._batches[index]
            if len(batch) > left and (taken or not at_least_one):
                break
            taken.append(batch)
            left -= len(batch)
        return taken

    def _range(self, offset: int, until: int | None) -> range:
        end = len(self._batches) if until is None else bisect_left(self._base_offsets, until)
        return range(bisect_left(self._last_offsets, offset), end)

    def readable_bytes(self, offset: int, max_bytes: int, until: int | None = None) -> int:
        """The bytes from ``offset`` on, counted up to ``max_bytes``."""
        total = 0
        for index in self._range(offset, until):
            total += len(self._batches[index])
            if total >= max_bytes:
                return max_bytes
        return total

    def has_offset(self, offset: int) -> bool:
        """Whether a consumer may fetch from here. At the end offset it waits."""
        return self.start_offset <= offset <= self.end_offset

    def batches(self) -> Sequence[bytes]:
        """All batches, in order."""
        return self._batches

    def at_timestamp(self, timestamp_ms: int) -> TimedOffset:
        """The first record of that time or later (UnifiedLog.fetchOffsetByTimestamp).

        For a batch with snappy, lz4 or zstd the answer is its first offset, which is never behind the right
        one.
        """
        for index, max_timestamp_ms in enumerate(self._max_timestamps_ms):
            if max_timestamp_ms < timestamp_ms:
                continue
            found = first_record_since(self._batches[index], timestamp_ms, self.start_offset)
            if found is not None:
                return TimedOffset(found.timestamp_ms, self._base_offsets[index] + found.offset_delta)
        return TimedOffset(NO_TIMESTAMP, NO_OFFSET)

    def at_max_timestamp(self) -> TimedOffset:
        """The record with the highest timestamp, the earliest of several (KIP-734)."""
        if not self._batches:
            return TimedOffset(NO_TIMESTAMP, NO_OFFSET)
        highest = max(self._max_timestamps_ms)
        index = self._max_timestamps_ms.index(highest)
        delta = record_of_max_timestamp(self._batches[index])
        return TimedOffset(highest, self._base_offsets[index] + delta)
