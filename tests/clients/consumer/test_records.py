"""Record batches as brokers send them, made with aiokafka's builder."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.consumer.records import (
    AbortedRecords,
    ConsumerRecord,
    Decoding,
    FetchBuffer,
    FetchedRecords,
    decoding,
)
from groupstorm.clients.wire.positions import Position, Positions

default_records = pytest.importorskip(
    "aiokafka.record.default_records", reason="pip install aiokafka (extra `kafka`)"
)
legacy_records = pytest.importorskip("aiokafka.record.legacy_records")

P0 = TopicPartition("orders", 0)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
UNCOMMITTED, COMMITTED = decoding(True, False), decoding(True, True)


def batch(
    first_offset: int,
    values: Sequence[bytes],
    *,
    codec: int = 0,
    producer: int = -1,
    transactional: bool = False,
    epoch: int = 3,
) -> bytes:
    builder = default_records.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1 << 20,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=1_000 + offset, key=b"k", value=value, headers=[("h", b"1")])
    built = bytearray(builder.build())
    struct.pack_into(">qii", built, 0, first_offset, len(built) - 12, epoch)
    return bytes(built)


def marker(offset: int, producer: int, key: bytes | None) -> bytes:
    """A control batch: aiokafka makes none, so this sets the bit and computes the checksum. ``key`` None: its
    record is gone."""
    import crc32c

    plain = default_records.DefaultRecordBatchBuilder(2, 0, 1, producer, 0, 0, 1 << 20)
    if key is not None:
        plain.append(0, timestamp=1, key=key, value=b"\0\0\0\0\0\0", headers=[])
    built = bytearray(plain.build())
    struct.pack_into(">qii", built, 0, offset, len(built) - 12, 3)
    (attributes,) = struct.unpack_from(">h", built, 21)
    struct.pack_into(">h", built, 21, attributes | 0x20)
    struct.pack_into(">I", built, 17, crc32c.crc32c(bytes(built[21:])))
    return bytes(built)


def read(fetched: FetchedRecords) -> list[ConsumerRecord]:
    records = []
    while (record := fetched.next()) is not None:
        records.append(record)
    return records


def offsets(data: bytes, start: int, how: Decoding, aborted: Sequence[AbortedRecords] = ()) -> list[int]:
    return [record.offset for record in read(FetchedRecords(P0, start, data, aborted, how))]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_record_has_all_fields_that_were_sent(codec: int) -> None:
    if codec > 1:
        pytest.importorskip("cramjam", reason="snappy, lz4 and zstd: pip install cramjam")
    fetched = FetchedRecords(P0, 7, batch(7, [b"a" * 100, b"b"], codec=codec), (), UNCOMMITTED)
    first, second = read(fetched)
    assert first == ConsumerRecord("orders", 0, 7, 1_000, 0, b"k", b"a" * 100, (("h", b"1"),), 3)
    assert (second.offset, second.value, second.topic_partition) == (8, b"b", P0)
    assert fetched.position == Position(9, 3)


@pytest.mark.parametrize("how", [UNCOMMITTED, COMMITTED])
def test_records_of_kafka_0_10_have_no_leader_epoch(how: Decoding) -> None:
    """Message format 1, which old topics still hold: nobody wrote epochs and producers then."""
    builder = legacy_records.LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    builder.append(0, timestamp=1_000, key=b"k", value=b"a")
    fetched = FetchedRecords(P0, 0, bytes(builder.build()), (), how)
    assert read(fetched) == [ConsumerRecord("orders", 0, 0, 1_000, 0, b"k", b"a", (), -1)]
    assert fetched.position == Position(1, -1)


def test_reading_begins_inside_a_batch_and_skips_a_truncated_batch() -> None:
    data = batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d"]) + batch(4, [b"e"])[:-1]
    assert offsets(data, 1, UNCOMMITTED) == [1, 2, 3]
    assert offsets(data[:5], 0, UNCOMMITTED) == []


def test_control_batches_are_skipped_and_move_the_position() -> None:
    fetched = FetchedRecords(P0, 0, marker(0, 5, COMMIT), (), UNCOMMITTED)
    assert read(fetched) == []
    assert fetched.position.offset == 1


def test_read_committed_skips_aborted_transactions() -> None:
    """Two concurrent producers; the second transaction of the first one is committed."""
    data = b"".join(
        [
            batch(0, [b"a"], producer=5, transactional=True),
            batch(1, [b"x"], producer=6, transactional=True),
            batch(2, [b"b"], producer=5, transactional=True),
            marker(3, 5, ABORT),
            batch(4, [b"c"], producer=5, transactional=True),
            marker(5, 6, COMMIT),
            marker(6, 5, COMMIT),
            batch(7, [b"y"]),
        ]
    )
    assert offsets(data, 0, COMMITTED, [AbortedRecords(5, 0)]) == [1, 4, 7]
    assert offsets(data, 0, UNCOMMITTED, [AbortedRecords(5, 0)]) == [0, 1, 2, 4, 7], "whatever was aborted"


def test_a_control_batch_that_compaction_has_emptied_ends_no_transaction() -> None:
    data = b"".join(
        [
            batch(0, [b"a"], producer=5, transactional=True),
            marker(1, 5, None),
            batch(2, [b"b"], producer=5, transactional=True),
            marker(3, 5, ABORT),
            batch(4, [b"c"]),
        ]
    )
    assert offsets(data, 0, COMMITTED, [AbortedRecords(5, 0)]) == [4]


def test_a_damaged_batch_raises_with_its_offset() -> None:
    damaged = bytearray(batch(0, [b"a"]) + batch(1, [b"b"]))
    damaged[-1] ^= 1
    fetched = FetchedRecords(P0, 0, bytes(damaged), (), UNCOMMITTED)
    record = fetched.next()
    assert record is not None
    with pytest.raises(RecordCorrupt, match="checksum") as corrupt:
        fetched.next()
    assert (corrupt.value.partition, corrupt.value.offset) == (P0, 1)
    assert offsets(bytes(damaged), 0, decoding(False, False)) == [0, 1]


def test_the_beginning_of_a_batch_alone_is_no_batch() -> None:
    """17 bytes that say that no more follow; 16 bytes are a batch that the fetch has cut off."""
    start = struct.pack(">qiib", 0, 5, 0, 2)
    assert offsets(start[:16], 0, UNCOMMITTED) == []
    with pytest.raises(RecordCorrupt):
        FetchedRecords(P0, 0, start, (), UNCOMMITTED).next()


@pytest.mark.parametrize("length", [-1, 0, 4, -(2**31)])
def test_an_invalid_batch_length_raises(length: int) -> None:
    data = struct.pack(">qiib", 0, length, 0, 2) + bytes(100)
    with pytest.raises(RecordCorrupt):
        FetchedRecords(P0, 0, data, (), UNCOMMITTED).next()


class Reader:
    """A buffer of two partitions that begin at 0."""

    def __init__(self) -> None:
        self.positions = Positions()
        self.partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        self.positions.own(self.partitions)
        for partition in self.partitions:
            self.positions.move_to(partition, Position(0))
        self.buffer = FetchBuffer(self.positions, lambda: None)

    def fetch(self, number: int, count: int, start: int = 0) -> None:
        partition = self.partitions[number]
        data = batch(start, [b"v"] * count)
        self.buffer.fetched(partition, FetchedRecords(partition, start, data, (), UNCOMMITTED))

    def next(self) -> Any:
        record = self.buffer.next()
        return None if record is None else (record.partition, record.offset)


def test_a_record_counts_as_processed_when_the_application_asks_for_the_next() -> None:
    reader = Reader()
    reader.fetch(0, 2)
    assert reader.next() == (0, 0)
    assert reader.positions.offsets_of(reader.partitions).positions == (0, 0)
    assert reader.buffer.position(reader.partitions[0]) == Position(1, 3)
    reader.buffer.processed()
    assert reader.positions.offsets_of(reader.partitions).positions == (1, 0)


def test_only_partitions_without_records_are_fetched() -> None:
    reader = Reader()
    first, second = reader.partitions
    reader.fetch(0, 1)
    assert reader.buffer.to_fetch() == [(second, Position(0))]
    reader.buffer.pause([second])
    assert reader.buffer.to_fetch() == []
    assert [reader.next(), reader.next()] == [(0, 0), None]
    assert reader.buffer.to_fetch() == [(first, Position(1, 3))]
    reader.positions.stop([first])
    assert reader.buffer.to_fetch() == []


def test_records_fetched_for_another_position_are_dropped() -> None:
    reader = Reader()
    reader.fetch(0, 3)
    reader.buffer.seek(reader.partitions[0], 2)
    assert reader.next() is None
    reader.fetch(0, 3)  # the answer to a request from before the seek
    assert reader.next() is None
    reader.fetch(0, 1, start=2)
    assert reader.next() == (0, 2)


def test_no_records_of_stopped_and_held_partitions_are_given_out() -> None:
    reader = Reader()
    reader.fetch(0, 2)
    reader.fetch(1, 2)
    reader.buffer.hold([reader.partitions[0]])
    assert reader.next() == (1, 0)
    reader.buffer.hold([])
    reader.positions.stop([reader.partitions[0]])
    assert [reader.next(), reader.next()] == [(1, 1), None]


def test_getmany_ends_before_an_unreadable_record() -> None:
    reader = Reader()
    damaged = bytearray(batch(0, [b"a"]) + batch(1, [b"b"]))
    damaged[-1] ^= 1
    partition = reader.partitions[0]
    reader.buffer.fetched(partition, FetchedRecords(partition, 0, bytes(damaged), (), UNCOMMITTED))
    given = reader.buffer.next_batch(10)
    assert [record.offset for record in given[partition]] == [0]
    reader.buffer.processed()
    assert reader.buffer.position(partition) == Position(1, 3)
    reader.buffer.fetched(partition, FetchedRecords(partition, 1, bytes(damaged), (), UNCOMMITTED))
    with pytest.raises(RecordCorrupt):
        reader.buffer.next_batch(10)
