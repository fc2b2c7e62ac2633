"""Record batches, magic 2 (KIP-98): what a broker reads of them, and nothing more.

Layout (DefaultRecordBatch): base offset 0, length 8, leader epoch 12, magic 16, crc 17, attributes 21,
last offset delta 23, base timestamp 27, max timestamp 35, producer id 43, producer epoch 51, base
sequence 53, record count 57, records 61. The checksum covers everything from the attributes on, so
that base offset and leader epoch can be written without touching it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import crc32c

from groupstorm.coordinator.errors import Error

HEADER_BYTES = 61
LENGTH_END = 12
"""The batch's length counts from here on."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_STARTS = 21
_PLACED = struct.Struct(">qii")
_COMPRESSION_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_ZSTD_FIRST_PRODUCE_VERSION = 7
NO_PRODUCER_ID = -1


class BatchError(ValueError):
    """Records that a broker refuses; ``error`` is what the producer is told."""

    def __init__(self, error: Error, sentence: str) -> None:
        super().__init__(sentence)
        self.error = error


class _RawHeader(NamedTuple):
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


class Batch(NamedTuple):
    """The header of one record batch and all its bytes."""

    data: bytes
    attributes: int
    last_offset_delta: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def compression(self) -> int:
        return self.attributes & _COMPRESSION_MASK

    @property
    def last_sequence(self) -> int:
        """Sequence numbers wrap around to 0 (DefaultRecordBatch.incrementSequence)."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF


def parse_produced(records: bytes | None, produce_version: int, max_bytes: int) -> Batch:
    """The one batch that a producer may send per partition. Raises BatchError.

    The checks of ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and
    LogValidator that do not need the records themselves.
    """
    if not records:
        raise BatchError(Error.INVALID_RECORD, "a produce request carries one record batch per partition")
    if len(records) < HEADER_BYTES:
        raise BatchError(Error.CORRUPT_MESSAGE, f"a record batch of {len(records)} bytes is too short")
    header = _RawHeader._make(_HEADER.unpack_from(records))
    magic, length = header.magic, header.length
    if magic != 2:
        raise BatchError(Error.INVALID_RECORD, f"record batches have magic 2, not {magic}")
    size = LENGTH_END + length
    if not HEADER_BYTES <= size <= len(records):
        raise BatchError(Error.CORRUPT_MESSAGE, f"a record batch announces {length} bytes of {len(records)}")
    if size < len(records):
        raise BatchError(Error.INVALID_RECORD, "a produce request carries only one batch per partition")
    if size > max_bytes:
        raise BatchError(Error.MESSAGE_TOO_LARGE, f"a record batch of {size} bytes, allowed are {max_bytes}")
    if crc32c.crc32c(memoryview(records)[_CRC_STARTS:]) != header.crc:
        raise BatchError(Error.CORRUPT_MESSAGE, "the checksum of a record batch is wrong")
    batch = Batch(
        records,
        header.attributes,
        header.last_offset_delta,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    _check_header(batch, header.base_offset, header.count_of_records, produce_version)
    return batch


def _check_header(batch: Batch, base_offset: int, count: int, produce_version: int) -> None:
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
    if batch.attributes & _CONTROL:
        raise BatchError(Error.INVALID_RECORD, "control batches are the broker's to write")
    if batch.attributes & _TRANSACTIONAL:
        raise BatchError(Error.INVALID_TXN_STATE, "transactions are not emulated")
    if batch.producer_id != NO_PRODUCER_ID and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise BatchError(Error.INVALID_RECORD, f"an idempotent producer's sequence {batch.base_sequence}")


def placed_at(batch: Batch, offset: int, leader_epoch: int) -> bytes:
    """The batch's bytes with the offset and the leader epoch that the log gives them."""
    head = _PLACED.pack(offset, len(batch.data) - LENGTH_END, leader_epoch)
    return head + memoryview(batch.data)[_PLACED.size :]
