"""Transactions: producers that are fenced, records that are committed or aborted, offsets that wait."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import (
    commit,
    delete_topics,
    fetch_fields,
    offset_fetch,
    produce,
    versions,
)
from tests.broker.driver import Driver
from tests.broker.transactional import TransactionalProducer


def committed(driver: Driver, offset: int = 0, **more: Any) -> Any:
    fields = fetch_fields(driver, offset, 0, isolation_level=1, **more)
    return driver.ask(wire.FETCH, 12, **fields).responses[0].partitions[0]


def aborted(driver: Driver, offset: int, **more: Any) -> list[tuple[int, int]]:
    named = committed(driver, offset, **more).aborted_transactions
    return [(one.producer_id, one.first_offset) for one in named]


def test_only_aborted_transactions_with_records_among_the_fetched_ones_are_named(driver: Driver) -> None:
    """LogSegment.collectAbortedTxns. A consumer drops the records of a named transaction's producer up to the
    next abort marker: naming one that ended before hides what the producer has committed since."""
    producer = TransactionalProducer(driver)
    for is_commit in (False, True, False):  # offsets 0 and 1, 2 and 3, 4 and 5: a record, its marker
        assert (producer.add(), producer.produce(), producer.end(commit=is_commit)) == (Error.NONE,) * 3
    first, last = (producer.producer_id, 0), (producer.producer_id, 4)
    assert aborted(driver, 0) == [first, last]
    assert aborted(driver, 1) == [first, last], "its marker is among the fetched records"
    assert aborted(driver, 2) == [last], "it ended before"
    assert aborted(driver, 5) == [last]
    assert aborted(driver, 0, partition_max_bytes=1) == [first], "the last one begins behind these records"
    assert aborted(driver, 2, partition_max_bytes=1) == []


def test_a_committed_read_that_waits_is_answered_by_the_marker(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.add()
    producer.produce()
    waiting = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, 500, isolation_level=1))
    assert waiting not in driver.answers
    producer.end()
    assert driver.answers[waiting].responses[0].partitions[0].records != b""


def test_the_latest_offset_of_committed_reads_is_the_last_stable_one(driver: Driver) -> None:
    produce(driver, 8)
    producer = TransactionalProducer(driver)
    producer.add()
    producer.produce()
    asked = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    topic = {"name": "orders", "partitions": (asked,)}
    answer = driver.ask(wire.LIST_OFFSETS, 7, replica_id=-1, isolation_level=1, topics=(topic,))
    assert answer.topics[0].partitions[0].offset == 1


@pytest.mark.parametrize("version", versions(wire.TXN_OFFSET_COMMIT))
def test_offsets_count_when_the_transaction_is_committed(driver: Driver, version: int) -> None:
    producer = TransactionalProducer(driver)
    if version < 5:
        refused = Error.TRANSACTION_ABORTABLE if version == 4 else Error.INVALID_TXN_STATE
        assert producer.commit_offset(version) is refused
        assert producer.add_offsets() is Error.NONE
    assert producer.commit_offset(version) is Error.NONE
    assert offset_fetch(driver, 7) == [(0, -1, 0)]
    assert producer.end(5 if version == 5 else 3) is Error.NONE
    assert offset_fetch(driver, 7) == [(0, 5, 0)]


def test_offsets_that_are_refused(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.add_offsets()
    assert producer.commit_offset(partition=9) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offset(group_id="") is Error.INVALID_GROUP_ID
    assert producer.commit_offset(generation_id=3, member_id="m") is Error.ILLEGAL_GENERATION
    producer.epoch += 1
    assert producer.commit_offset() is Error.INVALID_PRODUCER_EPOCH


def test_an_unknown_partition_is_refused_before_the_coordinator_is_asked(driver: Driver) -> None:
    """Also outside of transactions: the coordinator would refuse the generation."""
    fields: dict[str, Any] = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert commit(driver, 8, 0, **fields) == [(0, Error.ILLEGAL_GENERATION)]
    assert commit(driver, 8, 9, **fields) == [(9, Error.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_second_producer_of_the_same_id_fences_the_first(driver: Driver) -> None:
    first = TransactionalProducer(driver)
    second = TransactionalProducer(driver)
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 1)
    assert first.add(1) is Error.INVALID_PRODUCER_EPOCH
    assert first.add(2) is Error.PRODUCER_FENCED
    assert first.add(4) is Error.PRODUCER_FENCED
    assert first.produce() is Error.INVALID_PRODUCER_EPOCH
    assert first.end(1) is Error.INVALID_PRODUCER_EPOCH
    assert first.end(3) is Error.PRODUCER_FENCED
    assert first.add_offsets(1) is Error.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_is_aborted_by_the_next_producer_which_asks_again(driver: Driver) -> None:
    first = TransactionalProducer(driver)
    first.add()
    first.produce()
    second = TransactionalProducer(driver, "other")
    second.name = first.name
    assert second.init() is Error.CONCURRENT_TRANSACTIONS
    assert committed(driver).last_stable_offset == 2
    assert second.init() is Error.NONE
    assert second.epoch == first.epoch + 2


def _stable(driver: Driver, partition: int) -> int:
    log = driver.broker.state.topics.partition("orders", partition)
    assert log is not None
    return log.last_stable_offset


def test_the_markers_of_many_partitions_are_written_behind_the_answer() -> None:
    """TransactionCoordinator.endTransaction: the transaction is PrepareCommit until the last one is there."""
    driver = Driver(topics={"orders": 1_000})
    producer = TransactionalProducer(driver)
    assert producer.add(3, *range(1_000)) is Error.NONE
    assert (producer.produce(), producer.produce(partition=999)) == (Error.NONE, Error.NONE)
    assert producer.end() is Error.NONE
    assert (_stable(driver, 0), _stable(driver, 999)) == (2, 0), "only the first ones are written"
    second = TransactionalProducer(driver, "second")
    second.name = producer.name
    concurrent = Error.CONCURRENT_TRANSACTIONS
    assert (producer.add(), producer.end(), second.init()) == (concurrent,) * 3
    assert producer.end(commit=False) is Error.INVALID_TXN_STATE
    described = driver.ask(wire.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("t",)).transaction_states[0]
    assert (described.transaction_state, len(described.topics[0].partitions)) == ("PrepareCommit", 1_000)
    assert producer.produce(partition=999) is Error.NOT_ENOUGH_REPLICAS, "ReplicaManager: repeat it"
    driver.advance(0)
    assert _stable(driver, 999) == 2
    assert (producer.add(3, *range(1_000)), producer.end(5)) == (Error.NONE, Error.NONE)
    producer.epoch -= 1
    assert producer.end(5) is concurrent, "it is repeated"
    driver.advance(0)
    assert producer.end(5) is Error.NONE


def test_a_deleted_topic_leaves_the_transactions(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.add()
    delete_topics(driver, 5, "orders")
    described = driver.ask(wire.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("t",)).transaction_states[0]
    assert described.topics == ()
    assert producer.end() is Error.NONE, "there is nothing to write a marker into"


def test_partitions_must_be_added_before_they_are_written(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    assert producer.produce(9) is Error.INVALID_TXN_STATE
    assert producer.produce(11) is Error.TRANSACTION_ABORTABLE
    assert producer.add(3, 9) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.produce(12) is Error.NONE, "from version 12 on writing adds them"
    assert producer.end(5) is Error.NONE


def test_transaction_version_2_counts_the_epoch_up_at_every_end(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    for epoch in range(1, 4):
        assert producer.produce(12) is Error.NONE
        assert producer.end(5, commit=epoch != 2) is Error.NONE
        assert producer.epoch == epoch
    assert producer.end(5, commit=False) is Error.NONE, "an abort needs no transaction"
    assert (producer.epoch, producer.end(5)) == (4, Error.INVALID_TXN_STATE)


def test_an_end_that_is_repeated_is_answered_as_the_first_one(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.produce(12)
    producer.end(5)
    producer.epoch -= 1
    assert producer.end(5, commit=False) is Error.INVALID_TXN_STATE
    assert (producer.end(5), producer.epoch) == (Error.NONE, 1)
    old = TransactionalProducer(driver, "old")
    old.add()
    old.produce()
    assert [old.end(), old.end(), old.end(commit=False)] == [Error.NONE, Error.NONE, Error.INVALID_TXN_STATE]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"timeout_ms": 0}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 5}, Error.INVALID_REQUEST),
        ({"producer_id": 5, "producer_epoch": 0}, Error.PRODUCER_FENCED),
    ],
)
def test_producers_that_are_refused(driver: Driver, fields: dict[str, Any], error: Error) -> None:
    assert TransactionalProducer(driver).init(**fields) is error


def test_a_producer_that_recovers_names_what_it_had(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    had = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    assert (producer.init(**had), producer.epoch) == (Error.NONE, 1)
    assert (producer.init(**had), producer.epoch) == (Error.NONE, 1), "a repeated request"
    assert producer.init(producer_id=had["producer_id"], producer_epoch=7) is Error.PRODUCER_FENCED
    assert producer.init(3, producer_id=had["producer_id"], producer_epoch=7) is Error.INVALID_PRODUCER_EPOCH


def test_unknown_ids_and_producers(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.name = "unknown"
    assert (producer.add(), producer.end()) == (Error.INVALID_PRODUCER_ID_MAPPING,) * 2
    producer.name = ""
    assert (producer.add(), producer.init(), producer.end()) == (Error.INVALID_REQUEST,) * 3
