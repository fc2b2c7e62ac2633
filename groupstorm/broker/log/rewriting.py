"""Batches with fewer records than before (MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader).

A batch keeps its offsets, its producer's sequence numbers and its compression, whatever is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import crc32c

from groupstorm.broker.log.batches import (
    COMPRESSION_MASK,
    CRC_STARTS,
    HAS_DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    RawHeader,
)
from groupstorm.broker.log.compression import pack
from groupstorm.broker.log.records import KeyedRecord

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


def without_records(header: RawHeader) -> bytes:
    """The batch without any record: its producer's last sequence number and the last offset stay."""
    attributes = header.attributes & ~(COMPRESSION_MASK | HAS_DELETE_HORIZON)
    changed = header._replace(attributes=attributes, base_timestamp_ms=_NO_TIMESTAMP, count_of_records=0)
    return _batch(changed, b"")


def _batch(header: RawHeader, records: bytes) -> bytes:
    length = HEADER_BYTES - LENGTH_END + len(records)
    covered = HEADER.pack(*header)[CRC_STARTS:] + records
    return HEADER.pack(*header._replace(length=length, crc=crc32c.crc32c(covered)))[:CRC_STARTS] + covered


def _record(record: KeyedRecord, base_ms: int) -> bytes:
    numbers = _varint(record.timestamp_ms - base_ms) + _varint(record.offset_delta)
    body = bytes((record.attributes,)) + numbers + record.behind_offset
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    """A zigzag number."""
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
