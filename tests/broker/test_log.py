"""The log of a partition, and the producers that write to it."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from groupstorm.broker.log.batches import BatchError, parse_produced
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.producers import PRODUCERS_KEPT, Producers
from groupstorm.broker.topic_configs import LogSettings
from groupstorm.coordinator.errors import Error
from tests.broker import wire


def append(log: PartitionLog, count: int = 1, size: int = 1, **fields: Any) -> int:
    batch = parse_produced(wire.batch([b"x" * size] * count, **fields), 8, 1_000_000)
    return log.append(batch).base_offset


def test_only_what_lies_before_the_checksum_is_written() -> None:
    log = PartitionLog()
    append(log, 2)
    sent = wire.batch([b"x"] * 3)
    log.append(parse_produced(sent, 8, 1_000_000))
    (stored,) = log.read(2, 1_000_000, at_least_one=True)
    base_offset, length, leader_epoch = struct.unpack_from(">qii", stored)
    assert (base_offset, length, leader_epoch) == (2, len(sent) - 12, 0)
    assert stored[16:] == sent[16:]


def test_reading_stops_before_the_limit_and_at_least_one_batch_comes_if_asked() -> None:
    log = PartitionLog()
    for _ in range(4):
        append(log)
    size = len(wire.batch([b"x"]))
    assert len(log.read(0, 3 * size - 1, at_least_one=False)) == 2
    assert len(log.read(1, 10 * size, at_least_one=False)) == 3
    assert log.read(0, size - 1, at_least_one=False) == []
    assert len(log.read(0, size - 1, at_least_one=True)) == 1
    assert log.read(4, 10 * size, at_least_one=True) == []
    assert (log.readable_bytes(1, 10 * size), log.readable_bytes(1, size), log.readable_bytes(4, 9)) == (
        3 * size,
        size,
        0,
    )


def test_the_oldest_batches_go_when_more_than_retention_is_kept() -> None:
    size = len(wire.batch([b"x"]))
    log = PartitionLog(LogSettings({"retention.bytes": str(2 * size)}))
    for _ in range(5):
        append(log)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 5, 2 * size)
    assert [log.has_offset(offset) for offset in (2, 3, 5, 6)] == [False, True, True, False]
    append(log, size=500)
    assert (log.start_offset, log.end_offset) == (5, 6), "the last batch stays even if it is too large alone"


def test_the_last_five_batches_of_a_producer_are_recognised_and_no_older_one() -> None:
    """ProducerStateEntry.NUM_BATCHES_TO_RETAIN: a producer has at most five requests in flight. A repetition
    of an older batch looks like a gap."""
    log = PartitionLog()
    idempotent = {"producer_id": 7, "epoch": 0}
    for sequence in range(7):
        assert append(log, 1, sequence=sequence, **idempotent) == sequence
    for sequence in range(2, 7):
        assert append(log, 1, sequence=sequence, **idempotent) == sequence, "answered with the old offset"
    for sequence in (0, 1):
        with pytest.raises(BatchError, match="expected 7") as refused:
            append(log, 1, sequence=sequence, **idempotent)
        assert refused.value.error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 7


def test_a_batch_is_a_repetition_only_if_all_its_numbers_are_the_same() -> None:
    log = PartitionLog()
    append(log, 3, producer_id=7, epoch=1, sequence=0)
    for count, fields in (
        (2, {"producer_id": 7, "epoch": 1, "sequence": 0}),
        (2, {"producer_id": 7, "epoch": 1, "sequence": 1}),
        (4, {"producer_id": 7, "epoch": 1, "sequence": 0}),
    ):
        with pytest.raises(BatchError, match="expected 3"):
            append(log, count, **fields)
    assert append(log, 3, producer_id=7, epoch=2, sequence=0) == 3, "a new epoch begins anew"
    assert append(log, 3, producer_id=8, epoch=1, sequence=0) == 6


@pytest.mark.parametrize(
    ("epoch", "sequence", "error"),
    [
        (1, 3, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (1, 0, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, 2, Error.INVALID_PRODUCER_EPOCH),
        (2, 2, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_sequences_that_do_not_follow_are_refused(epoch: int, sequence: int, error: Error) -> None:
    log = PartitionLog()
    append(log, 2, producer_id=7, epoch=1, sequence=0)
    with pytest.raises(BatchError) as refused:
        append(log, 1, producer_id=7, epoch=epoch, sequence=sequence)
    assert refused.value.error is error
    assert log.end_offset == 2
    # a new epoch begins at 0
    assert append(log, 1, producer_id=7, epoch=2, sequence=0) == 2


def test_an_unknown_producer_may_begin_with_any_sequence() -> None:
    # KIP-360: its state may be gone because its records are
    assert append(PartitionLog(), 1, producer_id=7, epoch=3, sequence=41) == 0


def test_sequences_wrap_around_to_zero() -> None:
    log = PartitionLog()
    append(log, 2, producer_id=7, epoch=0, sequence=2**31 - 2)
    assert append(log, 1, producer_id=7, epoch=0, sequence=0) == 2


@pytest.mark.slow
def test_a_partition_remembers_a_bounded_number_of_producers() -> None:
    producers = Producers()
    batches = [
        parse_produced(wire.batch([b"x"], producer_id=number, epoch=0, sequence=0), 8, 1_000_000)
        for number in range(PRODUCERS_KEPT + 1)
    ]
    for offset, batch in enumerate(batches):
        producers.appended(batch, offset)
    assert producers.repeated(batches[0]) is None
    assert producers.repeated(batches[1]) == 1
