"""Record batches of `__consumer_offsets`, as a segment file or a fetch has them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from groupstorm.broker.log.batches import HEADER_BYTES, Batch
from groupstorm.broker.log.records import keyed_records
from groupstorm.imports.offsets_topic.observer import RecordObserver
from groupstorm.imports.offsets_topic.schemas import WrittenRecord, read_key, read_value
from groupstorm.imports.source import LogSource
from groupstorm.problems import InputError
from groupstorm.protocol.codec import CodecError

_UNCOMPRESSED: Final = 0
#: Kafka's numbers of the compressions, and the function of `aiokafka.codec` that reads each.
_DECODERS: Final = {1: "gzip_decode", 2: "snappy_decode", 3: "lz4_decode", 4: "zstd_decode"}


class UnreadableBatch(Exception):
    """The records of a batch whose checksum is right cannot be read."""


class BatchReader:
    """Gives the records of one partition's batches to an observer."""

    def __init__(self, source: LogSource, observer: RecordObserver) -> None:
        self._source = source
        self._observer = observer

    def take(self, batch: Batch, base_offset: int) -> None:
        """All records of a batch. Raises UnreadableBatch, and InputError without the library for their
        compression."""
        if batch.is_control:
            self._observer.end_transaction(batch.producer_id, batch.is_commit_marker, batch.max_timestamp_ms)
            return
        transaction = batch.producer_id if batch.is_transactional else None
        for offset, record in self._records(batch, base_offset):
            self._observer.take(record, offset, transaction)

    def _records(self, batch: Batch, base_offset: int) -> Iterator[tuple[int, WrittenRecord]]:
        unpacked = _unpacked(batch.data[HEADER_BYTES:], batch.compression)
        try:
            found = [*keyed_records(batch.data, unpacked)]
        except ValueError as problem:
            raise UnreadableBatch(str(problem)) from problem
        for one in found:
            self._source.lines += 1
            try:
                record = _written(one.key or b"", one.value)
            except CodecError as problem:
                self._source.count_not_understood(str(problem), str(problem)[:80])
                continue
            yield base_offset + one.offset_delta, record._replace(time_ms=one.timestamp_ms)


def _written(key: bytes, value: bytes | None) -> WrittenRecord:
    key_type, fields = read_key(key)
    if fields is None:
        return WrittenRecord(key_type, {}, None)
    return WrittenRecord(key_type, fields, None if value is None else read_value(key_type, value))


def _unpacked(records: bytes, compression: int) -> bytes:
    """Raises UnreadableBatch for bytes that are not of that compression."""
    if compression == _UNCOMPRESSED:
        return records
    name = _DECODERS.get(compression)
    if name is None:
        raise UnreadableBatch(f"compression {compression} does not exist")
    try:
        from aiokafka import codec
    except ImportError as missing:
        raise InputError(
            "compressed records are read with aiokafka, which is not installed: pip install groupstorm[kafka]"
        ) from missing
    try:
        return bytes(getattr(codec, name)(records))
    except (RuntimeError, ValueError, OSError, EOFError, zlib.error) as problem:
        raise UnreadableBatch(f"{name.removesuffix('_decode')}: {problem}") from problem
