"""Record batches, magic 2 (KIP-98): the fields that a broker reads, and the checks of produced batches.

Layout (DefaultRecordBatch): base offset 0, length 8, leader epoch 12, magic 16, crc 17, attributes 21,
last offset delta 23, base timestamp 27, max timestamp 35, producer id 43, producer epoch 51, base
sequence 53, record count 57, records 61. The checksum covers everything from the attributes on, so
that base offset and leader epoch can be written without touching it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import crc32c
import structlog

from groupstorm.broker.config import INT64_MAX
from groupstorm.broker.log.records import KeyedRecord, NoLibraryError, UnpackError, keyed_records, unpack
from groupstorm.broker.topic_configs import LogSettings
from groupstorm.coordinator.errors import Error

HEADER_BYTES = 61
LENGTH_END = 12
"""The batch's length counts from here on."""

HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_COVERED = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_MAGIC = 2
_CRC_AT = 17
CRC_STARTS = 21
_MAX_TIMESTAMP_AT = 35
#: In a marker's key, behind its version.
_MARKER_KIND = slice(2, 4)
_COMMIT_KIND = b"\0\1"
_LOG_APPEND_TIME = 0x08
_PLACED = struct.Struct(">qii")
COMPRESSION_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
HAS_DELETE_HORIZON = 0x40
_ZSTD_FIRST_PRODUCE_VERSION = 7
NO_PRODUCER_ID = -1


class RecordError(NamedTuple):
    """Why one record of a batch is refused (KIP-467)."""

    batch_index: int
    message: str


class BatchError(ValueError):
    """Records that a broker refuses with ``error``; ``record_errors``: those of single records."""

    def __init__(self, error: Error, sentence: str, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(sentence)
        self.error = error
        self.record_errors = record_errors


class Batch(NamedTuple):
    """The fields of a batch's header, and all its bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count_of_records: int
    data: bytes

    @classmethod
    def read(cls, data: bytes) -> Batch:
        """Read a batch of which the header at least is whole."""
        return cls._make((*HEADER.unpack_from(data), data))

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def is_commit_marker(self) -> bool:
        """Whether this control batch, which has its marker, commits (ControlRecordType)."""
        (marker,) = keyed_records(self.data, self.data[HEADER_BYTES:])
        return (marker.key or b"")[_MARKER_KIND] == _COMMIT_KIND

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def last_sequence(self) -> int:
        """Sequence numbers wrap around to 0 (DefaultRecordBatch.incrementSequence)."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on compaction may remove the batch's tombstones, or its marker (KIP-534)."""
        return self.base_timestamp_ms if self.attributes & HAS_DELETE_HORIZON else None


def says_transactional(records: bytes | None) -> bool:
    """Whether the first batch calls itself transactional, whatever else may be wrong with it."""
    if records is None or len(records) < HEADER_BYTES:
        return False
    batch = Batch.read(records)
    return batch.magic == _MAGIC and batch.is_transactional


def parse_stored(records: bytes) -> Batch | None:
    """The first batch of ``records``, as `placed_at` has written it; None if the batch is incomplete: the end
    of a file that was being written."""
    if len(records) < HEADER_BYTES:
        return None
    batch = Batch.read(records)
    size = LENGTH_END + batch.length
    if batch.magic != _MAGIC or not HEADER_BYTES <= size <= len(records):
        return None
    data = records[:size]
    is_whole = crc32c.crc32c(memoryview(data)[CRC_STARTS:]) == batch.crc
    return batch._replace(data=data) if is_whole else None


def marker_batch(producer_id: int, producer_epoch: int, is_commit: bool, now_ms: int) -> Batch:
    """The control batch that ends a transaction (EndTransactionMarker,
    MemoryRecords.withEndTransactionMarker).

    One record: key version 0 and kind (0 aborts, 1 commits), value version 0 and coordinator epoch 0.
    """
    kind = _COMMIT_KIND if is_commit else b"\0\0"
    body = b"\0\0\0" + b"\x08" + b"\0\0" + kind + b"\x0c" + bytes(6) + b"\0"
    records = bytes((len(body) << 1,)) + body
    attributes = _TRANSACTIONAL | _CONTROL
    covered = _COVERED.pack(attributes, 0, now_ms, now_ms, producer_id, producer_epoch, -1, 1) + records
    size = HEADER_BYTES + len(records)
    head = _BEFORE_COVERED.pack(0, size - LENGTH_END, 0, _MAGIC, crc32c.crc32c(covered))
    return Batch.read(head + covered)


def stamped(batch: Batch, now_ms: int) -> Batch:
    """The batch with the broker's time, for topics whose message.timestamp.type is LogAppendTime
    (DefaultRecordBatch.setMaxTimestamp)."""
    covered = bytearray(memoryview(batch.data)[CRC_STARTS:])
    struct.pack_into(">h", covered, 0, batch.attributes | _LOG_APPEND_TIME)
    struct.pack_into(">q", covered, _MAX_TIMESTAMP_AT - CRC_STARTS, now_ms)
    head = batch.data[:_CRC_AT] + struct.pack(">I", crc32c.crc32c(covered))
    return Batch.read(head + bytes(covered))


def parse_produced(records: bytes | None, produce_version: int, max_bytes: int) -> Batch:
    """The one batch that a producer may send per partition. Raises BatchError.

    The checks of ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and
    LogValidator that do not need the records themselves.
    """
    if not records:
        raise BatchError(Error.INVALID_RECORD, "a produce request carries one record batch per partition")
    if len(records) < HEADER_BYTES:
        raise BatchError(Error.CORRUPT_MESSAGE, f"a record batch of {len(records)} bytes is too short")
    batch = Batch.read(records)
    if batch.magic != _MAGIC:
        raise BatchError(Error.INVALID_RECORD, f"record batches have magic {_MAGIC}, not {batch.magic}")
    size = LENGTH_END + batch.length
    if not HEADER_BYTES <= size <= len(records):
        sentence = f"a record batch announces {batch.length} bytes of {len(records)}"
        raise BatchError(Error.CORRUPT_MESSAGE, sentence)
    if size < len(records):
        raise BatchError(Error.INVALID_RECORD, "a produce request carries only one batch per partition")
    if size > max_bytes:
        raise BatchError(Error.MESSAGE_TOO_LARGE, f"a record batch of {size} bytes, allowed are {max_bytes}")
    if crc32c.crc32c(memoryview(records)[CRC_STARTS:]) != batch.crc:
        raise BatchError(Error.CORRUPT_MESSAGE, "the checksum of a record batch is wrong")
    _check_header(batch, produce_version)
    return batch


def _check_header(batch: Batch, produce_version: int) -> None:
    base_offset, count = batch.base_offset, batch.count_of_records
    if batch.compression > _ZSTD:
        raise BatchError(Error.CORRUPT_MESSAGE, f"compression {batch.compression} does not exist")
    if batch.compression == _ZSTD and produce_version < _ZSTD_FIRST_PRODUCE_VERSION:
        raise BatchError(Error.UNSUPPORTED_COMPRESSION_TYPE, "zstd came with version 7 of Produce (KIP-110)")
    if base_offset != 0:
        raise BatchError(Error.INVALID_RECORD, f"a produced batch begins at offset 0, not {base_offset}")
    if count <= 0 or batch.last_offset_delta != count - 1:
        raise BatchError(
            Error.INVALID_RECORD, f"a batch of {count} records with last offset {batch.last_offset_delta}"
        )
    if batch.is_control:
        raise BatchError(Error.INVALID_RECORD, "control batches are the broker's to write")
    if batch.is_transactional and batch.producer_id == NO_PRODUCER_ID:
        raise BatchError(Error.INVALID_RECORD, "a transactional batch has a producer id")
    if batch.producer_id != NO_PRODUCER_ID and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise BatchError(Error.INVALID_RECORD, f"an idempotent producer's sequence {batch.base_sequence}")


def placed_at(batch: Batch, offset: int, leader_epoch: int) -> bytes:
    """The batch's bytes with its offset and leader epoch in the log."""
    head = _PLACED.pack(offset, len(batch.data) - LENGTH_END, leader_epoch)
    if batch.data.startswith(head):
        return batch.data  # of a journal
    return head + memoryview(batch.data)[_PLACED.size :]


_SHOWN_ERRORS = 3
_NO_TIMESTAMP = -1


def check_records(batch: Batch, settings: LogSettings, partition: str, now_ms: int) -> None:
    """Raises BatchError with an error for each record that is refused; the whole batch is refused then
    (KIP-467). ``partition``: for messages, as ``orders-0``.

    A batch with a compression whose library is missing passes, on a compacted topic with a warning.
    """
    if not settings.is_compacted and not _may_be_out_of_range(batch, settings, now_ms):
        return
    try:
        records = [*keyed_records(batch.data, unpack(batch.data[HEADER_BYTES:], batch.compression))]
    except NoLibraryError as missing:
        if settings.is_compacted:
            _warn_of_unread(partition, str(missing))
        return
    except (UnpackError, ValueError) as problem:
        raise BatchError(
            Error.INVALID_RECORD, f"the records of a batch cannot be read: {problem}"
        ) from problem
    refused = [*_refused(records, settings, partition, now_ms)]
    if refused:
        raise _refusal(refused)


@cache
def _warn_of_unread(partition: str, problem: str) -> None:
    """One warning for a partition, whatever the number of its batches."""
    sentence = "batches of a compacted topic are neither checked nor compacted"
    structlog.get_logger().warning(sentence, partition=partition, why=problem)


def _may_be_out_of_range(batch: Batch, settings: LogSettings, now_ms: int) -> bool:
    """By the header, which has the newest timestamp and not the oldest: most batches need not be opened."""
    if settings.log_append_time:
        return False
    is_bounded = settings.timestamp_before_max_ms < INT64_MAX
    return is_bounded or batch.max_timestamp_ms > now_ms + settings.timestamp_after_max_ms


def _refused(
    records: list[KeyedRecord], settings: LogSettings, partition: str, now_ms: int
) -> Iterator[tuple[Error, RecordError]]:
    first_ms, last_ms = now_ms - settings.timestamp_before_max_ms, now_ms + settings.timestamp_after_max_ms
    for index, record in enumerate(records):
        stamp_ms = record.timestamp_ms
        if settings.is_compacted and record.key is None:
            sentence = f"Compacted topic cannot accept message without key in topic partition {partition}"
            yield Error.INVALID_RECORD, RecordError(index, sentence)
        elif (
            not settings.log_append_time and stamp_ms != _NO_TIMESTAMP and not first_ms <= stamp_ms <= last_ms
        ):
            sentence = (
                f"Timestamp {stamp_ms} of message with offset {record.offset_delta} is out of range."
                f" The timestamp should be within [{first_ms}, {last_ms}]"
            )
            yield Error.INVALID_TIMESTAMP, RecordError(index, sentence)


def _refusal(refused: list[tuple[Error, RecordError]]) -> BatchError:
    """LogValidator.processRecordErrors: one timestamp among the errors decides on the error of the batch."""
    errors = tuple(one for _, one in refused)
    if any(error is Error.INVALID_TIMESTAMP for error, _ in refused):
        sentence = "One or more records have been rejected due to invalid timestamp"
        return BatchError(Error.INVALID_TIMESTAMP, sentence, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:_SHOWN_ERRORS]
    )
    sentence = (
        f"One or more records have been rejected due to {len(errors)} record errors in total,"
        f" and only showing the first three errors at most: [{shown}]"
    )
    return BatchError(Error.INVALID_RECORD, sentence, errors)
