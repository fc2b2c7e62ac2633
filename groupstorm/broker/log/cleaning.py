"""Compaction of a log (Kafka's Cleaner, CleanedTransactionMetadata).

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c

from groupstorm.broker.log.batches import (
    COMPRESSION_MASK,
    CRC_STARTS,
    HAS_DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    RawHeader,
    is_commit_marker,
    read_header,
)
from groupstorm.broker.log.columns import LogBatches
from groupstorm.broker.log.compression import UnpackError, pack, unpack
from groupstorm.broker.log.producers import AbortedTransaction, LastRecord
from groupstorm.broker.log.records import KeyedRecord, keyed_records
from groupstorm.broker.log.segments import Cleanable


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

    def is_discardable(self, header: RawHeader, data: bytes) -> bool:
        """Whether the batch is an aborted transaction's, or a marker that may go."""
        while self.aborted and self.aborted[-1].first_offset <= header.last_offset:
            begun = self.aborted.pop()
            self._open.setdefault(begun.producer_id, (begun, False))
        if header.is_control:
            return header.count_of_records == 0 or self._ends(header, data)
        if not header.is_transactional:
            return False
        met = self._open.get(header.producer_id)
        if met is None:
            self._committed.add(header.producer_id)
            return False
        self._open[header.producer_id] = (met[0], True)
        return True

    def _ends(self, header: RawHeader, data: bytes) -> bool:
        producer_id = header.producer_id
        if is_commit_marker(data):
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
        data = batches.data(index)
        header = read_header(data)
        may_go = transactions.is_discardable(header, data)
        stays = header.last_offset + 1 == part.end_offset or _is_last_of_producer(header, last_records)
        after = _after(header, data, newest, may_go, stays, (now_ms, now_ms + delete_retention_ms))
        if after is None:
            cleaned.removed.append(header.base_offset)
        elif after is not data:
            cleaned.rewritten[header.base_offset] = after
    behind = [one for one in aborted if one.last_offset >= part.end_offset]
    kept = [one for one in transactions.kept if one.last_offset < part.end_offset]
    cleaned.aborted.extend(sorted({*kept, *behind}, key=lambda one: one.last_offset))
    return cleaned


def _newest_offsets(batches: LogBatches, dirty: range, aborted: list[AbortedTransaction]) -> dict[bytes, int]:
    """Key -> its newest offset among the records that count (Cleaner.buildOffsetMap)."""
    newest: dict[bytes, int] = {}
    transactions = _Transactions(aborted)
    for index in dirty:
        data = batches.data(index)
        header = read_header(data)
        if transactions.is_discardable(header, data) or header.is_control:
            continue
        for record in _records(header, data) or ():
            if record.key is not None:
                newest[record.key] = header.base_offset + record.offset_delta
    return newest


def _records(header: RawHeader, data: bytes) -> list[KeyedRecord] | None:
    """None if the batch cannot be opened."""
    if not header.count_of_records:
        return []
    try:
        return [*keyed_records(data, unpack(data[HEADER_BYTES:], header.compression))]
    except (UnpackError, ValueError):
        return None


def _is_last_of_producer(header: RawHeader, last_records: Mapping[int, LastRecord]) -> bool:
    """Whether the state of the producer is in this batch: its last sequence number, or its epoch."""
    last = last_records.get(header.producer_id)
    if last is None:
        return False
    if last.offset is not None:
        return header.last_offset == last.offset
    return header.is_control and header.producer_epoch == last.epoch


def _after(
    header: RawHeader,
    data: bytes,
    newest: Mapping[bytes, int],
    may_go: bool,
    stays: bool,
    times_ms: tuple[int, int],
) -> bytes | None:
    """The batch after the pass: the same bytes, others, or None if it goes.

    ``times_ms``: the present time, and the delete horizon of a batch that gets one now.
    """
    now_ms, horizon_ms = times_ms
    old_horizon_ms = header.delete_horizon_ms
    is_over = old_horizon_ms is not None and old_horizon_ms <= now_ms
    if may_go and (is_over or not header.is_control):
        return _emptied(header, data) if stays else None
    records = _records(header, data)
    if records is None:
        return data
    kept = records if header.is_control else [*_newest(header, records, newest, keeps_tombstones=not is_over)]
    if not kept:
        return _emptied(header, data) if stays else None
    has_tombstones = may_go if header.is_control else any(one.value is None for one in kept)
    gets_horizon = has_tombstones and old_horizon_ms is None
    if len(kept) == len(records) and not gets_horizon:
        return data
    return with_records(header, kept, horizon_ms if gets_horizon else old_horizon_ms)


def _newest(
    header: RawHeader, records: list[KeyedRecord], newest: Mapping[bytes, int], keeps_tombstones: bool
) -> Iterator[KeyedRecord]:
    for record in records:
        if record.key is None or (record.value is None and not keeps_tombstones):
            continue
        if header.base_offset + record.offset_delta >= newest.get(record.key, -1):
            yield record


def _emptied(header: RawHeader, data: bytes) -> bytes:
    return _without_records(header) if header.count_of_records else data


_NO_TIMESTAMP = -1


def with_records(header: RawHeader, records: Sequence[KeyedRecord], delete_horizon_ms: int | None) -> bytes:
    """The batch with these of its records.

    ``delete_horizon_ms``: from when on its tombstones, or its marker, may go; it takes the place of the base
    timestamp (KIP-534).
    """
    attributes = header.attributes
    base_ms = records[0].timestamp_ms
    if delete_horizon_ms is not None:
        attributes |= HAS_DELETE_HORIZON
        base_ms = delete_horizon_ms
    body = b"".join(_record(one, base_ms) for one in records)
    changed = header._replace(
        attributes=attributes,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max(one.timestamp_ms for one in records),
        count_of_records=len(records),
    )
    return _batch(changed, pack(body, attributes & COMPRESSION_MASK))


def _without_records(header: RawHeader) -> bytes:
    """The batch without any record: its producer's last sequence number and the last offset stay."""
    attributes = header.attributes & ~(COMPRESSION_MASK | HAS_DELETE_HORIZON)
    changed = header._replace(attributes=attributes, base_timestamp_ms=_NO_TIMESTAMP, count_of_records=0)
    return _batch(changed, b"")


def _batch(header: RawHeader, records: bytes) -> bytes:
    length = HEADER_BYTES - LENGTH_END + len(records)
    covered = HEADER.pack(*header)[CRC_STARTS:] + records
    return HEADER.pack(*header._replace(length=length, crc=crc32c.crc32c(covered)))[:CRC_STARTS] + covered


def _record(record: KeyedRecord, base_ms: int) -> bytes:
    numbers = varint(record.timestamp_ms - base_ms) + varint(record.offset_delta)
    body = bytes((record.attributes,)) + numbers + record.behind_offset
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    """A zigzag number."""
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
