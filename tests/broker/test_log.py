"""The log of a partition, and the producers that write to it."""

from __future__ import annotations

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


def test_the_oldest_batches_go_when_more_than_retention_is_kept() -> None:
    size = len(wire.batch([b"x"]))
    log = PartitionLog(LogSettings({"retention.bytes": str(2 * size)}))
    for _ in range(5):
        append(log)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 5, 2 * size)
    assert [log.has_offset(offset) for offset in (2, 3, 5, 6)] == [False, True, True, False]
    append(log, size=500)
    assert (log.start_offset, log.end_offset) == (5, 6), "the last batch stays even if it is too large alone"


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
