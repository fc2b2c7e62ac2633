"""Records that compaction keeps of a log: cases that depend on time, or on what a pass has met before.

`tests.conformance.test_compaction` compares the batches that are left with those of Kafka's Cleaner.
"""

from __future__ import annotations

from groupstorm.broker.log.batches import Batch, parse_stored
from groupstorm.broker.log.partition import PartitionLog
from tests.broker import wire
from tests.broker.compaction.reading import NOW_MS, Read, append, clean, compacted_log, offsets, read
from tests.broker.frames.requests import checked

DAY_MS = 86_400_000
TRANSACTIONAL = 0x10


def test_a_batch_that_cannot_be_opened_stays_and_replaces_no_record() -> None:
    log = compacted_log()
    append(log, (b"a", b"1"))
    data = wire.batch([b"2"], keys=[b"a"])
    unreadable = checked(data[:22] + bytes((data[22] | 1,)) + data[23:])  # gzip, as the header says
    stored = parse_stored(unreadable)
    assert stored is not None
    log.append(stored)
    append(log, (b"b", b"1"))
    assert clean(log)
    assert [Batch.read(one).base_offset for one in log.batches.all_data()] == [0, 1, 2]
    assert log.batches.data(1)[16:] == unreadable[16:]


# tombstones


def test_a_tombstone_stays_for_delete_retention_ms_behind_the_first_pass() -> None:
    log = compacted_log(delete_retention_ms=1000)
    append(log, (b"a", b"1"), (b"b", b"1"))
    append(log, (b"a", None), now_ms=NOW_MS - 5 * DAY_MS)
    append(log, (b"c", b"1"))
    clean(log, NOW_MS)
    assert [*read(log)] == [
        Read(1, b"b", b"1"),
        Read(2, b"a", None, NOW_MS - 5 * DAY_MS),
        Read(3, b"c", b"1"),
    ], "its own timestamp does not count, and stays"
    assert Batch.read(log.batches.data(1)).delete_horizon_ms == NOW_MS + 1000
    append(log, (b"d", b"1"))
    clean(log, NOW_MS + 999)
    assert offsets(log) == [1, 2, 3, 4]
    append(log, (b"e", b"1"))
    clean(log, NOW_MS + 1000)
    assert offsets(log) == [1, 3, 4, 5]


def test_a_horizon_is_of_the_batch_and_does_not_move() -> None:
    """KIP-534: the batch's records keep their timestamps, whose base is the horizon now."""
    log = compacted_log(delete_retention_ms=1000)
    append(log, (b"a", None), (b"b", b"1"), (b"c", None), now_ms=NOW_MS - 7)
    append(log, (b"d", b"1"))
    clean(log, NOW_MS)
    append(log, (b"c", b"2"))
    append(log, (b"d", b"2"))
    clean(log, NOW_MS + 500)
    assert Batch.read(log.batches.data(0)).delete_horizon_ms == NOW_MS + 1000
    assert [*read(log)][:2] == [Read(0, b"a", None, NOW_MS - 7), Read(1, b"b", b"1", NOW_MS - 7)]
    assert Batch.read(log.batches.data(0)).max_timestamp_ms == NOW_MS - 7


# transactions


def transaction(log: PartitionLog, is_commit: bool, *records: tuple[bytes, bytes], epoch: int = 0) -> None:
    append(log, *records, producer_id=7, epoch=epoch, sequence=0, attributes=TRANSACTIONAL)
    log.append_marker(7, epoch, is_commit, NOW_MS)


def test_a_marker_stays_until_a_pass_has_met_no_batch_of_its_transaction() -> None:
    """And from then on for delete.retention.ms. Its entry among the aborted transactions ends with its
    batches: it would hide the records that the producer writes next."""
    log = compacted_log(delete_retention_ms=1000)
    transaction(log, False, (b"a", b"aborted"), epoch=0)
    transaction(log, True, (b"a", b"kept"), epoch=1)
    append(log, (b"b", b"0"))
    clean(log, NOW_MS)
    assert base_offsets(log) == [1, 2, 3, 4], "the marker at 1, whose transaction had a batch at 0"
    assert len(log.transactions.aborted) == 1
    append(log, (b"b", b"1"))
    clean(log, NOW_MS + 1)
    assert base_offsets(log) == [1, 2, 3, 4, 5]
    assert Batch.read(log.batches.data(0)).delete_horizon_ms == NOW_MS + 1001
    assert log.transactions.aborted == []
    append(log, (b"b", b"2"))
    clean(log, NOW_MS + 1001)
    assert base_offsets(log) == [2, 3, 5, 6]
    assert [one.value for one in read(log, committed_only=True)] == [b"kept", b"1", b"2"]
    transaction(log, False, (b"a", b"2"), epoch=2)
    assert len(log.transactions.aborted) == 1


def base_offsets(log: PartitionLog) -> list[int]:
    return [Batch.read(one).base_offset for one in log.batches.all_data()]


def test_the_marker_keeps_the_epoch_of_a_producer_without_records() -> None:
    """KIP-890: the marker has the next epoch, and the producer has written nothing with it."""
    log = compacted_log(delete_retention_ms=0)
    append(log, (b"a", b"1"), producer_id=7, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    log.append_marker(7, 1, is_commit=True, now_ms=NOW_MS)
    append(log, (b"a", b"2"))
    append(log, (b"b", b"1"))
    for number in range(4):
        clean(log, NOW_MS + number)
        append(log, (b"b", b"%d" % number))
    assert base_offsets(log)[0] == 1
    assert Batch.read(log.batches.data(0)).is_control
