"""The records inside a batch: their timestamps, keys and values.

A record (DefaultRecord): length, attributes, timestamp delta, offset delta, key, value, headers; the numbers
are zigzag varints. A broker reads only the first four.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from groupstorm.broker.log.compression import UnpackError, unpack

_HEAD = struct.Struct(">21xhiqq14xi")
_RECORDS_AT = 61
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
#: The most records of a batch among which a timestamp is looked for: a second of CPU.
_MAX_RECORDS = 1_000_000
#: Attributes, deltas of timestamp and offset, lengths of key and value, number of headers.
_LEAST_RECORD_BYTES = 6


class Stamp(NamedTuple):
    """A record's timestamp and its number in the batch."""

    timestamp_ms: int
    offset_delta: int


class KeyedRecord(NamedTuple):
    """A record of a batch. ``value`` None: a tombstone."""

    timestamp_ms: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    attributes: int
    behind_offset: bytes
    """Its bytes behind the offset's: key, value and headers."""


def keyed_records(batch: bytes, records: bytes) -> Iterator[KeyedRecord]:
    """The records of a batch. ``records``: its bytes behind the header, unpacked.

    Raises ValueError for a record that does not fit into the bytes.
    """
    attributes, _, base_ms, max_ms, count = _HEAD.unpack_from(batch)
    at = 0
    for _ in range(count):
        try:
            size, start = _varint(records, at)
            delta_ms, at = _varint(records, start + 1)
            offset_delta, behind = _varint(records, at)
            key, at = _nullable_bytes(records, behind)
            value, _ = _nullable_bytes(records, at)
        except IndexError as problem:
            raise ValueError(f"the records of a batch end at {len(records)}, within a record") from problem
        at = start + size
        if not start < at <= len(records):
            raise ValueError(f"a record of {size} bytes at {start}, with {len(records) - start} bytes left")
        stamp_ms = max_ms if attributes & _LOG_APPEND_TIME else base_ms + delta_ms
        yield KeyedRecord(stamp_ms, offset_delta, key, value, records[start], records[behind:at])


def _nullable_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes and the position behind them; None for a negative length. Raises IndexError."""
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise IndexError(at)
    return data[at : at + size], at + size


class _UnreadableError(ValueError):
    """Records that cannot be unpacked, damaged ones, or too many."""


def first_record_since(batch: bytes, timestamp_ms: int, start_offset: int) -> Stamp | None:
    """The first record of that time or later, from ``start_offset`` on.

    A batch whose records cannot be read to their end counts as its first record.
    """
    (base_offset,) = struct.unpack_from(">q", batch)
    try:
        for stamp in _stamps(batch):
            if stamp.timestamp_ms >= timestamp_ms and base_offset + stamp.offset_delta >= start_offset:
                return stamp
    except _UnreadableError:
        return Stamp(_HEAD.unpack_from(batch)[3], 0)
    return None


def record_of_max_timestamp(batch: bytes) -> int:
    """The record with the highest timestamp; the first one if the records cannot be read up to it."""
    highest = _HEAD.unpack_from(batch)[3]
    try:
        return next((delta for timestamp_ms, delta in _stamps(batch) if timestamp_ms >= highest), 0)
    except _UnreadableError:
        return 0


def _stamps(batch: bytes) -> Iterator[Stamp]:
    """Raises _UnreadableError. The header's number of records is a client's word: a record takes
    `_LEAST_RECORD_BYTES`, and offsets grow. Compaction leaves gaps between them, or no record at all."""
    attributes, last_delta, base_ms, max_ms, count = _HEAD.unpack_from(batch)
    if attributes & _LOG_APPEND_TIME and count:
        yield Stamp(max_ms, 0)
        return
    try:
        records = unpack(batch[_RECORDS_AT:], attributes & _COMPRESSION_MASK) if count else b""
    except UnpackError as problem:
        raise _UnreadableError(str(problem)) from problem
    if not 0 <= count <= min(len(records) // (_LEAST_RECORD_BYTES + 1), _MAX_RECORDS):
        raise _UnreadableError(f"{count} records in {len(records)} bytes")
    at, before = 0, -1
    for place in range(count):
        try:
            size, start = _varint(records, at)
            delta_ms, after = _varint(records, start + 1)
            offset_delta, _ = _varint(records, after)
        except IndexError as problem:
            raise _UnreadableError(f"the records end within record {place}") from problem
        if size < _LEAST_RECORD_BYTES or not before < offset_delta <= last_delta:
            raise _UnreadableError(f"record {place} has {size} bytes and offset {offset_delta}")
        yield Stamp(base_ms + delta_ms, offset_delta)
        at, before = start + size, offset_delta


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number and the position behind it. Raises IndexError at the end of the data."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise IndexError(at)
