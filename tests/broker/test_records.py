"""Produce, Fetch, ListOffsets: record batches that stay opaque."""

from __future__ import annotations

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.broker.apis.api import Done, Wait
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.records import Stamp, first_record_since, record_of_max_timestamp
from groupstorm.broker.requests import DelayedFetches
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import fetch, fetch_fields, list_offsets, produce, versions
from tests.broker.driver import Driver
from tests.broker.frames.harness import cpu_limit
from tests.broker.frames.requests import compressed
from tests.broker.transactional import TransactionalProducer


@pytest.mark.parametrize("version", versions(wire.FETCH))
def test_fetch_gives_the_batches_from_the_one_that_holds_the_offset(driver: Driver, version: int) -> None:
    produce(driver, 8, records=wire.batch([b"a", b"b", b"c"]))
    produce(driver, 8, records=wire.batch([b"d"]))
    both, last = fetch(driver, version, 1), fetch(driver, version, 3)
    assert both.high_watermark == 4
    assert int.from_bytes(both.records[:8], "big") == 0, "offset 1 is in the batch that begins at 0"
    assert both.records[61:].find(b"d") > 0
    assert both.records.endswith(last.records)
    assert int.from_bytes(last.records[:8], "big") == 3, "the base offset was written into the batch"


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_an_empty_answer_has_the_present_offsets(driver: Driver, isolation_level: int) -> None:
    def ends(offset: int) -> tuple[int, int, object]:
        found = fetch(driver, 12, offset, isolation_level=isolation_level)
        assert found.records == b""
        return found.high_watermark, found.last_stable_offset, found.aborted_transactions

    none = () if isolation_level else None
    assert ends(0) == ends(0) == (0, 0, none)
    produce(driver, 8)
    assert ends(1) == ends(1) == (1, 1, none)
    producer = TransactionalProducer(driver, "t")
    producer.add()
    identity = {"producer_id": producer.producer_id, "epoch": producer.epoch, "sequence": 0}
    produce(driver, 9, records=wire.batch([b"v"], attributes=0x10, **identity), transactional_id="t")
    assert ends(2) == ends(2) == (2, 1, none)


def test_the_first_batch_comes_even_if_it_exceeds_the_limits(driver: Driver) -> None:
    produce(driver, 8, records=wire.batch([b"x" * 500]))
    produce(driver, 8, records=wire.batch([b"y" * 500]))
    assert len(fetch(driver, 11, 0, partition_max_bytes=10).records) > 500
    assert len(fetch(driver, 11, 0, max_bytes=10).records) < 1000


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for(driver: Driver) -> None:
    one_batch = len(wire.batch([b"value"]))
    waiting = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, max_wait_ms=500, min_bytes=one_batch + 1))
    produce(driver, 8)
    assert waiting not in driver.answers
    produce(driver, 8)
    assert len(driver.answers[waiting].responses[0].partitions[0].records) == 2 * one_batch


def test_a_fetch_waits_no_longer_than_it_says(driver: Driver) -> None:
    waiting = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, max_wait_ms=500))
    driver.advance(499)
    assert waiting not in driver.answers
    driver.advance(1)
    assert driver.answers[waiting].responses[0].partitions[0].records == b""


def test_a_fetch_of_a_partition_that_does_not_exist_is_answered_at_once(driver: Driver) -> None:
    fields = fetch_fields(driver, 0, max_wait_ms=500)
    nowhere = {"partition": 9}
    topic = {"topic": "orders", "partitions": (nowhere,)}
    answer = driver.ask(wire.FETCH, 12, **(fields | {"topics": (topic,)}))
    assert answer.responses[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_the_deadline_of_an_answered_fetch_is_not_that_of_the_next_one() -> None:
    fetches, log = DelayedFetches(), PartitionLog()

    def wait(deadline_ms: int, ready: bool) -> Wait:
        return Wait(deadline_ms, [log], lambda: ready, lambda: Done(deadline_ms))

    fetches.park(1, wait(100, ready=True))
    assert fetches.appended([log]) == [(1, Done(100))]
    fetches.park(1, wait(300, ready=False))
    assert fetches.expire(200) == []
    assert fetches.next_deadline() == 300
    assert fetches.expire(300) == [(1, Done(300))]
    assert (fetches.next_deadline(), len(fetches)) == (None, 0)


def test_a_forgotten_fetch_is_not_answered(driver: Driver) -> None:
    waiting = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, max_wait_ms=500))
    driver.broker.forget(waiting, driver.now_ms)
    produce(driver, 8)
    driver.advance(1000)
    assert waiting not in driver.answers


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", Error.INVALID_RECORD),
        (b"short", Error.CORRUPT_MESSAGE),
        (wire.batch([b"a"])[:-1] + b"!", Error.CORRUPT_MESSAGE),
        (wire.batch([b"a"])[:16] + b"\x01" + wire.batch([b"a"])[17:], Error.INVALID_RECORD),
        (wire.batch([b"a"])[:-1], Error.CORRUPT_MESSAGE),
        (wire.batch([b"a"]) * 2, Error.INVALID_RECORD),
        (wire.batch([b"a" * 2000]), Error.MESSAGE_TOO_LARGE),
        (wire.batch([], count=0), Error.INVALID_RECORD),
        (b"\x00" * 7 + b"\x05" + wire.batch([b"a"])[8:], Error.INVALID_RECORD),
        (wire.batch([b"a"], attributes=0x20), Error.INVALID_RECORD),
        (wire.batch([b"a"], attributes=0x10), Error.INVALID_RECORD),
        (wire.batch([b"a"], attributes=7), Error.CORRUPT_MESSAGE),
        (wire.batch([b"a"], producer_id=3, epoch=0, sequence=-1), Error.INVALID_RECORD),
    ],
)
def test_records_that_a_broker_refuses(records: bytes, error: Error) -> None:
    driver = Driver({"message.max.bytes": "1000"}, {"orders": 1})
    answer = produce(driver, 8, records=records)
    assert (answer.error_code, answer.base_offset) == (error, -1)
    assert fetch(driver, 8).high_watermark == 0


def test_zstd_came_with_produce_7(driver: Driver) -> None:
    zstd = wire.batch([b"a"], attributes=4)
    assert produce(driver, 6, records=zstd).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(driver, 7, records=zstd).error_code == Error.NONE


def test_produce_refuses_unknown_partitions_and_acks(driver: Driver) -> None:
    assert produce(driver, 8, partition=3).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(driver, 8, name="other").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(driver, 8, acks=2).error_code == Error.INVALID_REQUIRED_ACKS


def test_offsets_are_found_by_special_timestamps_and_by_time(driver: Driver) -> None:
    for timestamp_ms in (100, 300, 200):
        produce(driver, 8, records=wire.batch([b"a", b"b"], timestamp_ms=timestamp_ms))
    found = {
        timestamp: list_offsets(driver, 11, timestamp) for timestamp in (-1, -2, -3, -4, -5, -6, 150, 301)
    }
    assert {timestamp: one.offset for timestamp, one in found.items()} == {
        -1: 6,
        -2: 0,
        -3: 2,
        -4: 0,
        -5: -1,
        -6: 0,
        150: 2,
        301: -1,
    }
    assert (found[150].timestamp, found[-1].timestamp) == (300, -1)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)])
def test_special_timestamps_came_version_by_version(driver: Driver, timestamp: int, since: int) -> None:
    assert list_offsets(driver, since - 1, timestamp).error_code == Error.UNSUPPORTED_VERSION
    if since <= APIS[wire.LIST_OFFSETS].max_version:
        assert list_offsets(driver, since, timestamp).error_code == Error.NONE


@pytest.mark.parametrize("unpacked", [bytes(32 * 1024 * 1024), wire.batch([b"a"])[61:]])
def test_a_batch_that_announces_more_records_than_it_has_is_not_searched(unpacked: bytes) -> None:
    """32 MB of zeros would be as many empty records: half a minute of CPU."""
    batch = compressed(wire.batch([b"a"], count=2**31 - 1), records=unpacked)
    with cpu_limit():
        assert first_record_since(batch, 1_800_000_000_000, 0) == Stamp(1_700_000_000_000, 0)
        assert record_of_max_timestamp(batch) == 0
