"""The records of a batch: their compression, timestamps, keys and values.

A record (DefaultRecord): length, attributes, timestamp delta, offset delta, key, value, headers; the numbers
are zigzag varints. A broker reads only the first four.

Python's own library has gzip, cramjam the other compressions if it is installed. What is unpacked is bounded:
a batch of a megabyte may unpack to any size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

#: The most that a batch may unpack to.
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)
#: `zlib`: with a header of gzip.
_GZIP_FORMAT = 31
#: The first try to unpack lz4 or zstd: so many bytes, and so many times the packed ones.
_LEAST_ROOM_BYTES, _LEAST_RATIO, _GROWTH = 64 * 1024, 8, 8
#: The Java library's frame of snappy's blocks: this header, then the length of each block in front of it.
_XERIAL = struct.Struct(">8sii")
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_BLOCK_BYTES = 32 * 1024
_LENGTH = struct.Struct(">i")


class UnpackError(ValueError):
    """Records that cannot be unpacked: they are damaged, or too large."""


class NoLibraryError(UnpackError):
    """The library for this compression is not installed."""


def unpack(records: bytes, compression: int) -> bytes:
    """The records behind a batch's header, without their compression. Raises UnpackError."""
    if compression == _NONE:
        return records
    if compression == _GZIP:
        return _ungzip(records)
    read = _READERS.get(compression)
    if read is None:
        raise UnpackError(f"compression {compression} does not exist")
    library = _library()
    try:
        return read(library, records)
    except (library.DecompressionError, struct.error) as problem:
        raise UnpackError(str(problem)) from problem


def pack(records: bytes, compression: int) -> bytes:
    """The records with this compression, one that `unpack` has undone."""
    if compression == _NONE:
        return records
    if compression == _GZIP:
        packer = zlib.compressobj(wbits=_GZIP_FORMAT)
        return packer.compress(records) + packer.flush()
    return _WRITERS[compression](_library(), records)


def _ungzip(records: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=_GZIP_FORMAT)
    try:
        unpacked = unpacker.decompress(records, MAX_UNPACKED_BYTES)
    except zlib.error as problem:
        raise UnpackError(str(problem)) from problem
    if not unpacker.eof:
        raise UnpackError(f"more than {MAX_UNPACKED_BYTES} bytes, or not all of them")
    return unpacked


def _library() -> Any:
    try:
        import cramjam
    except ImportError as missing:
        raise NoLibraryError("snappy, lz4 and zstd need cramjam: pip install cramjam") from missing
    return cramjam


def _unsnappy(library: Any, records: bytes) -> bytes:
    if not records.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(library, records, MAX_UNPACKED_BYTES)
    unpacked = bytearray()
    at = _XERIAL.size
    while at < len(records):
        (size,) = _LENGTH.unpack_from(records, at)
        at += _LENGTH.size
        if not 0 < size <= len(records) - at:
            raise UnpackError(f"a block of {size} bytes, {len(records) - at} are left")
        unpacked += _unsnappy_block(library, records[at : at + size], MAX_UNPACKED_BYTES - len(unpacked))
        at += size
    return bytes(unpacked)


def _unsnappy_block(library: Any, block: bytes, most_bytes: int) -> bytes:
    size = library.snappy.decompress_raw_len(block)
    if size > most_bytes:
        raise UnpackError(f"more than {MAX_UNPACKED_BYTES} bytes")
    return bytes(library.snappy.decompress_raw(block))


def _pack_snappy(library: Any, records: bytes) -> bytes:
    packed = bytearray(_XERIAL.pack(_XERIAL_MAGIC, 1, 1))
    for at in range(0, len(records), _XERIAL_BLOCK_BYTES):
        block = bytes(library.snappy.compress_raw(records[at : at + _XERIAL_BLOCK_BYTES]))
        packed += _LENGTH.pack(len(block)) + block
    return bytes(packed)


def _pack_lz4(library: Any, records: bytes) -> bytes:
    """Kafka reads independent blocks only (KIP-57)."""
    packer = library.lz4.Compressor(content_checksum=False, block_linked=False)
    packer.compress(records)
    return bytes(packer.finish())


def _into_growing(module: Any, problem: type[Exception], records: bytes) -> bytes:
    """Unpack into more and more room: the packed bytes do not have to say how much they need."""
    room_bytes = max(_LEAST_ROOM_BYTES, _LEAST_RATIO * len(records))
    while True:
        room = bytearray(min(room_bytes, MAX_UNPACKED_BYTES))
        try:
            return bytes(room[: module.decompress_into(records, room)])
        except problem:
            if room_bytes >= MAX_UNPACKED_BYTES:
                raise
        room_bytes *= _GROWTH


_READERS: Mapping[int, Callable[[Any, bytes], bytes]] = {
    _SNAPPY: _unsnappy,
    _LZ4: lambda library, records: _into_growing(library.lz4, library.DecompressionError, records),
    _ZSTD: lambda library, records: _into_growing(library.zstd, library.DecompressionError, records),
}
_WRITERS: Mapping[int, Callable[[Any, bytes], bytes]] = {
    _SNAPPY: _pack_snappy,
    _LZ4: _pack_lz4,
    _ZSTD: lambda library, records: bytes(library.zstd.compress(records)),
}


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


def first_record_since(batch: bytes, timestamp_ms: int, start_offset: int) -> Stamp | None:
    """The first record of that time or later, from ``start_offset`` on.

    A batch whose records cannot be read to their end counts as its first record.
    """
    (base_offset,) = struct.unpack_from(">q", batch)
    try:
        for stamp in _stamps(batch):
            if stamp.timestamp_ms >= timestamp_ms and base_offset + stamp.offset_delta >= start_offset:
                return stamp
    except ValueError:
        return Stamp(_HEAD.unpack_from(batch)[3], 0)
    return None


def record_of_max_timestamp(batch: bytes) -> int:
    """The record with the highest timestamp; the first one if the records cannot be read up to it."""
    highest = _HEAD.unpack_from(batch)[3]
    try:
        return next((delta for timestamp_ms, delta in _stamps(batch) if timestamp_ms >= highest), 0)
    except ValueError:
        return 0


def _stamps(batch: bytes) -> Iterator[Stamp]:
    """Raises ValueError if the records cannot be unpacked, are damaged or too many. The header's number of
    records is a client's word: a record takes `_LEAST_RECORD_BYTES`, and offsets grow. Compaction leaves gaps
    between them, or no record at all."""
    attributes, last_delta, _, max_ms, count = _HEAD.unpack_from(batch)
    if attributes & _LOG_APPEND_TIME and count:
        yield Stamp(max_ms, 0)
        return
    records = unpack(batch[_RECORDS_AT:], attributes & _COMPRESSION_MASK) if count else b""
    if not 0 <= count <= min(len(records) // (_LEAST_RECORD_BYTES + 1), _MAX_RECORDS):
        raise ValueError(f"{count} records in {len(records)} bytes")
    before = -1
    for one in keyed_records(batch, records):
        if not before < one.offset_delta <= last_delta:
            raise ValueError(f"a record has offset {one.offset_delta} behind {before}")
        yield Stamp(one.timestamp_ms, one.offset_delta)
        before = one.offset_delta


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


def varint(number: int) -> bytes:
    """A zigzag number."""
    value = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
