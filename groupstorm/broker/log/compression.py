"""The compressions of record batches: Python's own library has gzip, cramjam the others if it is installed.

What is unpacked is bounded: a batch of a megabyte may unpack to any size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

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
