"""Compacted topics on the emulator and on Kafka: the batches that are left, the records that are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.frames.requests import compressed
from tests.broker.wire import RawClient
from tests.conformance.backends import Backend, Backends, Configuration
from tests.conformance.compacting import Left, Partition

CLEANING = Configuration("cleaning", {"log.cleaner.backoff.ms": "100"})
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture(scope="session")
def cleaning(backends: Backends, kind: str) -> Backend:
    """A broker that compacts at once."""
    return backends.needed(kind, CLEANING)


@pytest.fixture
def partition(cleaning: Backend) -> Iterator[Partition]:
    """Yield a partition whose segments last a minute of the records' time. It is not compacted yet, so that
    one pass sees everything."""
    host, _, port = cleaning.address.partition(":")
    with RawClient((host, int(port))) as client:
        found = Partition(client, cleaning.topic(1, "compacted"))
        found.configure(segment_ms=str(MINUTE_MS), min_cleanable_dirty_ratio="0.0", delete_retention_ms="0")
        yield found


def rows(batches: list[Left]) -> list[tuple[object, ...]]:
    """Without timestamps."""
    return [
        (
            one.base_offset,
            one.last_offset,
            tuple(row[:3] for row in one.records),
            one.marker,
            one.compression,
            one.sequence,
            one.has_delete_horizon,
        )
        for one in batches
    ]


def test_the_batches_that_compaction_leaves(partition: Partition) -> None:
    """All of them, with their numbers: replaced records, tombstones, records without keys, an idempotent
    producer, transactions, compressions.

    A marker has the broker's time. The records behind it are so far in the future that they begin segments
    of their own, however long the machine takes to get there.
    """
    pytest.importorskip("cramjam", reason="snappy, lz4 and zstd: pip install cramjam")
    start_ms = time.time_ns() // 1_000_000 - HOUR_MS
    idempotent, epoch = partition.producer()
    name = f"t-{partition.topic}"
    partition.write((b"a", b"1"), (b"b", b"1"), (None, b"1"), (b"a", b"2"), at_ms=start_ms)  # 0-3
    partition.write((b"c", b"1"), (b"b", None), at_ms=start_ms + 1)  # 4-5
    for number, compression in enumerate((1, 2, 3, 4)):  # 6-13
        partition.write(
            (b"x", b"%d" % number), (b"%d" % number, b"y"), at_ms=start_ms, compression=compression
        )
    for sequence in range(2):  # 14, 15
        partition.write(
            (b"d", b"%d" % sequence),
            at_ms=start_ms + 5,
            producer_id=idempotent,
            epoch=epoch,
            sequence=sequence,
        )
    partition.transact(name, (b"a", b"aborted"), at_ms=start_ms + 6, commits=False)  # 16, marker 17
    partition.transact(name, (b"c", b"3"), at_ms=start_ms + 7, commits=True)  # 18, marker 19
    partition.write((b"d", b"9"), (b"e", None), at_ms=start_ms + HOUR_MS + 20 * MINUTE_MS)  # 20-21
    partition.write((b"f", b"1"), (b"f", b"2"), at_ms=start_ms + HOUR_MS + 30 * MINUTE_MS)  # 22-23, active
    partition.configure(cleanup_policy="compact")
    left = partition.wait_for([3, 5, 7, 9, 11, 12, 13, 18, 20, 21, 22, 23])
    assert rows(left) == [
        (0, 3, ((3, b"a", b"2"),), "", 0, -1, False),
        (4, 5, ((5, b"b", None),), "", 0, -1, True),
        (6, 7, ((7, b"0", b"y"),), "", 1, -1, False),
        (8, 9, ((9, b"1", b"y"),), "", 2, -1, False),
        (10, 11, ((11, b"2", b"y"),), "", 3, -1, False),
        (12, 13, ((12, b"x", b"3"), (13, b"3", b"y")), "", 4, -1, False),
        (15, 15, (), "", 0, 1, False),
        (17, 17, (), "abort", 0, -1, False),
        (18, 18, ((18, b"c", b"3"),), "", 0, 0, False),
        (19, 19, (), "commit", 0, -1, False),
        (20, 21, ((20, b"d", b"9"), (21, b"e", None)), "", 0, -1, True),
        (22, 23, ((22, b"f", b"1"), (23, b"f", b"2")), "", 0, -1, False),
    ]
    (tombstone,) = left[1].records
    assert tombstone[3] == start_ms + 1, "its timestamp stays, whatever the batch's base is"
    assert partition.list_offset(start_ms) == (start_ms, 3)
    assert partition.list_offset(start_ms + 1) == (start_ms + 1, 5)
    assert partition.list_offset(start_ms + 2)[1] in (17, 18), "a marker has a time too"
    assert partition.list_offset(-3) == (start_ms + HOUR_MS + 30 * MINUTE_MS, 22)
    # the next pass: tombstones and the abort marker go, whose delete.retention.ms is 0
    partition.write((b"g", b"1"), at_ms=start_ms + HOUR_MS + 40 * MINUTE_MS)  # 24
    again = partition.wait_for([3, 7, 9, 11, 12, 13, 18, 20, 23, 24])
    assert [(one.base_offset, one.marker, one.has_delete_horizon) for one in again] == [
        (0, "", False),
        (6, "", False),
        (8, "", False),
        (10, "", False),
        (12, "", False),
        (15, "", False),
        (17, "abort", True),
        (18, "", False),
        (19, "commit", False),
        (20, "", True),
        (22, "", False),
        (24, "", False),
    ]
    partition.write((b"h", b"1"), at_ms=start_ms + HOUR_MS + 50 * MINUTE_MS)  # 25
    last = partition.wait_for_batches([0, 6, 8, 10, 12, 15, 18, 19, 20, 22, 24, 25])
    assert [row[0] for one in last for row in one.records] == [3, 7, 9, 11, 12, 13, 18, 20, 23, 24, 25]
    # the producer goes on behind its empty batch, and its last batch is still a repetition
    partition.write((b"d", b"10"), at_ms=start_ms, producer_id=idempotent, epoch=epoch, sequence=2)
    assert (
        partition.write((b"d", b"1"), at_ms=start_ms, producer_id=idempotent, epoch=epoch, sequence=1) == 15
    )


@pytest.mark.parametrize("compression", [0, 1])
def test_a_record_without_a_key_is_refused_with_its_index(partition: Partition, compression: int) -> None:
    partition.configure(cleanup_policy="compact")
    data = wire.batch([b"1", b"2", b"3"], keys=[None, b"k", None], timestamp_ms=time.time_ns() // 1_000_000)
    answer = partition.write_until_refused(compressed(data, compression))
    sentence = f"Compacted topic cannot accept message without key in topic partition {partition.topic}-0"
    assert answer.error_code == Error.INVALID_RECORD
    assert [(one.batch_index, one.batch_index_error_message) for one in answer.record_errors] == [
        (0, sentence),
        (2, sentence),
    ]
    assert answer.error_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first"
        f" three errors at most: [RecordError(batchIndex=0, message='{sentence}'),"
        f" RecordError(batchIndex=2, message='{sentence}')]"
    )
    assert partition.left() == []


def test_a_record_from_the_future_is_refused_with_its_range(partition: Partition) -> None:
    before_ms = time.time_ns() // 1_000_000
    stamp_ms = before_ms + 2 * HOUR_MS
    answer = partition.try_to_write(
        wire.batch([b"1", b"2"], keys=[b"a", b"b"], stamps_ms=[before_ms, stamp_ms])
    )
    assert answer.error_code == Error.INVALID_TIMESTAMP
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    ((index, message),) = [(one.batch_index, one.batch_index_error_message) for one in answer.record_errors]
    assert index == 1
    begin = f"Timestamp {stamp_ms} of message with offset 1 is out of range. The timestamp should be within ["
    assert message.startswith(begin)
    first_ms, last_ms = map(int, message.removeprefix(begin).removesuffix("]").split(", "))
    now_ms = last_ms - HOUR_MS
    after_ms = time.time_ns() // 1_000_000
    assert before_ms - 10_000 < now_ms < after_ms + 10_000, "the broker's own time"
    assert first_ms == now_ms - (2**63 - 1)
