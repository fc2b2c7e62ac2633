"""Compaction of a log: which part of it is compacted, and how (Kafka's LogToClean, Cleaner,
CleanedTransactionMetadata).

One pass looks for the newest offset of each key in the dirty part of the log. Then it goes through all
batches in front of the end, and keeps of their records the newest of each key. Offsets do not change.

* A tombstone, and the marker of a transaction whose records are all gone, stay for delete.retention.ms behind
  the first pass that meets them; the batch holds that time (KIP-534).
* Records of aborted transactions go. The records of a compacted topic have keys; one without goes too.
* A batch whose records are all gone stays without records if it is the last one of its producer or pass.
* A batch keeps its offsets, its producer's sequence numbers and its compression, whatever is left of it
  (MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader).
* A batch that cannot be opened stays as it is, and its keys replace no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import crc32c

from groupstorm.broker.log.batches import (
    COMPRESSION_MASK,
    CRC_STARTS,
    HAS_DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    Batch,
)
from groupstorm.broker.log.columns import NO_TIMESTAMP, LogBatches
from groupstorm.broker.log.producers import AbortedTransaction, LastRecord
from groupstorm.broker.log.records import KeyedRecord, UnpackError, keyed_records, pack, unpack, varint
from groupstorm.broker.topic_configs import LogSettings


class Cleanable(NamedTuple):
    """The cleaner looks for newer records of each key from ``first_dirty_offset`` to before ``end_offset``.
    It cleans everything in front of ``end_offset``."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    """In front of the first dirty offset."""
    dirty_bytes: int
    is_overdue: bool
    """Records have been dirty for longer than max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, settings: LogSettings) -> bool:
        if self.is_overdue and self.dirty_bytes:
            return True
        return self.dirty_ratio > settings.min_cleanable_dirty_ratio


def cleanable(
    batches: LogBatches,
    segments: list[int],
    first_dirty_offset: int,
    last_stable_offset: int,
    settings: LogSettings,
    now_ms: int,
) -> Cleanable:
    """``segments``: the offsets at which they begin.

    Only whole segments are cleaned: not the active one, not the one with the last stable offset, and none
    whose records are younger than min.compaction.lag.ms.
    """
    end_offset = min(_segment_with(segments, last_stable_offset), segments[-1])
    dirty = [base for base in segments if base >= _segment_with(segments, first_dirty_offset)]
    lag_ms = settings.min_compaction_lag_ms
    for base, next_base in pairwise(dirty):
        if lag_ms > 0 and _newest_ms(batches, base, next_base) > now_ms - lag_ms:
            end_offset = min(end_offset, base)
            break
    end_offset = max(end_offset, first_dirty_offset)
    first, last = batches.from_base(first_dirty_offset), batches.from_base(end_offset)
    oldest_ms = min((at for base in dirty[:-1] if (at := _first_ms(batches, base)) > 0), default=now_ms)
    return Cleanable(
        first_dirty_offset,
        end_offset,
        batches.size_of(0, first),
        batches.size_of(first, last),
        oldest_ms < now_ms - settings.max_compaction_lag_ms,
    )


def _segment_with(segments: list[int], offset: int) -> int:
    """The base of the segment that holds this offset."""
    return segments[max(0, bisect_right(segments, offset) - 1)]


def _newest_ms(batches: LogBatches, base: int, next_base: int) -> int:
    first, last = batches.from_base(base), batches.from_base(next_base)
    return max(batches.columns.max_timestamps_ms[first:last], default=0)


def _first_ms(batches: LogBatches, base: int) -> int:
    """The time of a segment's first batch."""
    first = batches.from_base(base)
    return batches.columns.max_timestamps_ms[first] if first < len(batches) else 0


class Cleaned(NamedTuple):
    """The result of a pass: what is to be changed."""

    removed: list[int]
    """The base offsets of batches."""
    rewritten: dict[int, bytes]
    """Base offset -> the batch that takes its place."""
    aborted: list[AbortedTransaction]
    """The aborted transactions that still have batches."""


@dataclass(slots=True)
class _Transactions:
    """The transactions that a pass has met (CleanedTransactionMetadata). A marker may go if the pass has met
    no batch of its transaction."""

    aborted: list[AbortedTransaction]
    """The aborted transactions that the pass will meet, in the order of their first offsets."""
    kept: list[AbortedTransaction] = field(default_factory=list)
    """The aborted transactions that still have batches."""
    _committed: set[int] = field(default_factory=set)
    _open: dict[int, tuple[AbortedTransaction, bool]] = field(default_factory=dict)
    """Producer -> its aborted transaction, and whether a batch of it was met."""

    def __post_init__(self) -> None:
        self.aborted = sorted(self.aborted, key=lambda one: one.first_offset, reverse=True)

    def is_discardable(self, batch: Batch) -> bool:
        """Whether the batch is an aborted transaction's, or a marker that may go."""
        while self.aborted and self.aborted[-1].first_offset <= batch.last_offset:
            begun = self.aborted.pop()
            self._open.setdefault(begun.producer_id, (begun, False))
        if batch.is_control:
            return batch.count_of_records == 0 or self._ends(batch)
        if not batch.is_transactional:
            return False
        met = self._open.get(batch.producer_id)
        if met is None:
            self._committed.add(batch.producer_id)
            return False
        self._open[batch.producer_id] = (met[0], True)
        return True

    def _ends(self, batch: Batch) -> bool:
        producer_id = batch.producer_id
        if batch.is_commit_marker:
            was_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_met
        transaction, was_met = self._open.pop(producer_id, (None, False))
        if transaction is not None and was_met:
            self.kept.append(transaction)
        return not was_met


def clean(
    batches: LogBatches,
    part: Cleanable,
    aborted: Sequence[AbortedTransaction],
    last_records: Mapping[int, LastRecord],
    delete_retention_ms: int,
    now_ms: int,
) -> Cleaned:
    """One pass. ``aborted``: all of the log; ``last_records``: of each producer.

    Raises OSError if a batch cannot be read.
    """
    end = batches.from_base(part.end_offset)
    in_front = [one for one in aborted if one.first_offset < part.end_offset]
    open_in_dirty = [one for one in in_front if one.last_offset >= part.first_dirty_offset]
    dirty = range(batches.holding(part.first_dirty_offset), end)
    newest = _newest_offsets(batches, dirty, open_in_dirty)
    transactions = _Transactions(in_front)
    cleaned = Cleaned([], {}, [])
    for index in range(end):
        batch = Batch.read(batches.data(index))
        may_go = transactions.is_discardable(batch)
        stays = batch.last_offset + 1 == part.end_offset or _is_last_of_producer(batch, last_records)
        after = _after(batch, newest, may_go, stays, (now_ms, now_ms + delete_retention_ms))
        if after is None:
            cleaned.removed.append(batch.base_offset)
        elif after is not batch.data:
            cleaned.rewritten[batch.base_offset] = after
    behind = [one for one in aborted if one.last_offset >= part.end_offset]
    kept = [one for one in transactions.kept if one.last_offset < part.end_offset]
    cleaned.aborted.extend(sorted({*kept, *behind}, key=lambda one: one.last_offset))
    return cleaned


def _newest_offsets(batches: LogBatches, dirty: range, aborted: list[AbortedTransaction]) -> dict[bytes, int]:
    """Key -> its newest offset among the records that count (Cleaner.buildOffsetMap)."""
    newest: dict[bytes, int] = {}
    transactions = _Transactions(aborted)
    for index in dirty:
        batch = Batch.read(batches.data(index))
        if transactions.is_discardable(batch) or batch.is_control:
            continue
        for record in _records(batch) or ():
            if record.key is not None:
                newest[record.key] = batch.base_offset + record.offset_delta
    return newest


def _records(batch: Batch) -> list[KeyedRecord] | None:
    """None if the batch cannot be opened."""
    if not batch.count_of_records:
        return []
    try:
        return [*keyed_records(batch.data, unpack(batch.data[HEADER_BYTES:], batch.compression))]
    except (UnpackError, ValueError):
        return None


def _is_last_of_producer(batch: Batch, last_records: Mapping[int, LastRecord]) -> bool:
    """Whether the state of the producer is in this batch: its last sequence number, or its epoch."""
    last = last_records.get(batch.producer_id)
    if last is None:
        return False
    if last.offset is not None:
        return batch.last_offset == last.offset
    return batch.is_control and batch.producer_epoch == last.epoch


def _after(
    batch: Batch,
    newest: Mapping[bytes, int],
    may_go: bool,
    stays: bool,
    times_ms: tuple[int, int],
) -> bytes | None:
    """The batch after the pass: the same bytes, others, or None if it goes.

    ``times_ms``: the present time, and the delete horizon of a batch that gets one now.
    """
    now_ms, horizon_ms = times_ms
    old_horizon_ms = batch.delete_horizon_ms
    is_over = old_horizon_ms is not None and old_horizon_ms <= now_ms
    if may_go and (is_over or not batch.is_control):
        return _emptied(batch) if stays else None
    records = _records(batch)
    if records is None:
        return batch.data
    kept = records if batch.is_control else [*_newest(batch, records, newest, keeps_tombstones=not is_over)]
    if not kept:
        return _emptied(batch) if stays else None
    has_tombstones = may_go if batch.is_control else any(one.value is None for one in kept)
    gets_horizon = has_tombstones and old_horizon_ms is None
    if len(kept) == len(records) and not gets_horizon:
        return batch.data
    return with_records(batch, kept, horizon_ms if gets_horizon else old_horizon_ms)


def _newest(
    batch: Batch, records: list[KeyedRecord], newest: Mapping[bytes, int], keeps_tombstones: bool
) -> Iterator[KeyedRecord]:
    for record in records:
        if record.key is None or (record.value is None and not keeps_tombstones):
            continue
        if batch.base_offset + record.offset_delta >= newest.get(record.key, -1):
            yield record


def _emptied(batch: Batch) -> bytes:
    return _without_records(batch) if batch.count_of_records else batch.data


def with_records(batch: Batch, records: Sequence[KeyedRecord], delete_horizon_ms: int | None) -> bytes:
    """The batch with these of its records.

    ``delete_horizon_ms``: from when on its tombstones, or its marker, may go; it takes the place of the base
    timestamp (KIP-534).
    """
    attributes = batch.attributes
    base_ms = records[0].timestamp_ms
    if delete_horizon_ms is not None:
        attributes |= HAS_DELETE_HORIZON
        base_ms = delete_horizon_ms
    body = b"".join(_record(one, base_ms) for one in records)
    changed = batch._replace(
        attributes=attributes,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max(one.timestamp_ms for one in records),
        count_of_records=len(records),
    )
    return _batch(changed, pack(body, attributes & COMPRESSION_MASK))


def _without_records(batch: Batch) -> bytes:
    """The batch without any record: its producer's last sequence number and the last offset stay."""
    attributes = batch.attributes & ~(COMPRESSION_MASK | HAS_DELETE_HORIZON)
    changed = batch._replace(attributes=attributes, base_timestamp_ms=NO_TIMESTAMP, count_of_records=0)
    return _batch(changed, b"")


def _batch(batch: Batch, records: bytes) -> bytes:
    length = HEADER_BYTES - LENGTH_END + len(records)
    covered = HEADER.pack(*batch[:-1])[CRC_STARTS:] + records
    return HEADER.pack(*batch._replace(length=length, crc=crc32c.crc32c(covered))[:-1])[:CRC_STARTS] + covered


def _record(record: KeyedRecord, base_ms: int) -> bytes:
    numbers = varint(record.timestamp_ms - base_ms) + varint(record.offset_delta)
    body = bytes((record.attributes,)) + numbers + record.behind_offset
    return varint(len(body)) + body
