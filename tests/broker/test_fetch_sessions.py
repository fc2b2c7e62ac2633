"""Fetch sessions (KIP-227), and finding records by their time."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.broker.fetch_sessions import FetchSessions
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import delete_topics, list_offsets, produce, topic_id
from tests.broker.driver import Driver
from tests.broker.frames.requests import compressed
from tests.broker.wire import milliseconds


class Consumer:
    """Fetches in a session, with one version of Fetch."""

    def __init__(self, driver: Driver, version: int = 12) -> None:
        self.driver = driver
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def fetch(
        self, offsets: dict[int, int], forget: tuple[int, ...] = (), **more: Any
    ) -> dict[int, tuple[Error, bytes]]:
        answer = self.ask(offsets, forget, **more)
        assert answer.error_code == Error.NONE
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return {
            one.partition_index: (Error(one.error_code), one.records)
            for topic in answer.responses
            for one in topic.partitions
        }

    def ask(self, offsets: dict[int, int], forget: tuple[int, ...] = (), **more: Any) -> Any:
        named = {"topic": "orders", "topic_id": topic_id(self.driver)}
        partitions = tuple(
            {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1_000_000}
            for partition, offset in offsets.items()
        )
        topics = ({"partitions": partitions, **named},)
        forgotten = ({"partitions": forget, **named},)
        fields = {
            "max_wait": milliseconds(0),
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "topics": topics if offsets else (),
            "forgotten_topics_data": forgotten if forget else (),
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            **more,
        }
        return self.driver.ask(wire.FETCH, self.version, **fields)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_session_answers_what_changed(driver: Driver, version: int) -> None:
    consumer = Consumer(driver, version)
    assert set(consumer.fetch({0: 0, 1: 0, 2: 0})) == {0, 1, 2}
    assert consumer.session_id > 0
    assert consumer.fetch({}) == {}
    produce(driver, 8, 1)
    assert {number: error for number, (error, _) in consumer.fetch({}).items()} == {1: Error.NONE}
    assert consumer.fetch({1: 1}) == {}
    assert consumer.fetch({1: 9})[1][0] is Error.OFFSET_OUT_OF_RANGE
    consumer.fetch({1: 1}, forget=(0,))
    produce(driver, 8, 0)
    assert consumer.fetch({}) == {}


def test_partitions_with_records_go_to_the_end_of_the_line(driver: Driver) -> None:
    consumer = Consumer(driver)
    consumer.fetch({0: 0, 1: 0})
    for partition in (0, 1):
        produce(driver, 8, partition)
    one = len(wire.batch([b"value"]))
    first = {number: data for number, (_, data) in consumer.fetch({}, max_bytes=one).items() if data}
    second = {number: data for number, (_, data) in consumer.fetch({}, max_bytes=one).items() if data}
    assert (list(first), list(second)) == ([0], [1])


def test_epochs_and_ids_that_do_not_fit_are_refused(driver: Driver) -> None:
    consumer = Consumer(driver)
    consumer.fetch({0: 0})
    consumer.epoch = 5
    assert consumer.ask({}).error_code == Error.INVALID_FETCH_SESSION_EPOCH
    consumer.session_id += 1
    assert consumer.ask({}).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    other = Consumer(driver, 12)
    other.fetch({0: 0})
    other.version = 13
    assert other.ask({}).error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_ends_by_request_or_without_partitions(driver: Driver) -> None:
    sessions = driver.broker.state.sessions[1]
    consumer = Consumer(driver)
    consumer.fetch({0: 0})
    assert len(sessions) == 1
    assert consumer.ask({0: 0}, session_epoch=-1).session_id == 0
    assert len(sessions) == 0
    consumer = Consumer(driver)
    consumer.fetch({0: 0})
    assert consumer.ask({}, forget=(0,)).session_id == 0
    assert len(sessions) == 0


def test_no_session_without_a_free_slot() -> None:
    driver = Driver({"max.incremental.fetch.session.cache.slots": "1"}, {"orders": 1})
    first, second = Consumer(driver), Consumer(driver)
    first.fetch({0: 0})
    second.fetch({0: 0})
    assert (first.session_id > 0, second.session_id) == (True, 0)
    driver.advance(120_001)
    third = Consumer(driver)
    third.fetch({0: 0})
    assert third.session_id > 0
    assert first.ask({}).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_reports_a_deleted_topic(driver: Driver) -> None:
    consumer = Consumer(driver, 13)
    consumer.fetch({0: 0})
    named = topic_id(driver)
    delete_topics(driver, 5, "orders")
    fields = {"replica_id": -1, "max_wait": milliseconds(0), "max_bytes": 1_000}
    session = {"session_id": consumer.session_id, "session_epoch": 1}
    (topic,) = driver.ask(wire.FETCH, 13, **fields, **session).responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (named, Error.UNKNOWN_TOPIC_ID)


def test_session_epochs_wrap_around_to_one() -> None:
    sessions = FetchSessions(10, lambda: 7)
    session = sessions.begin(True, 0)
    assert session is not None
    session.epoch = 2**31 - 1
    sessions.use(7, 2**31 - 1, True, 0)
    assert session.epoch == 1


def timed_batch(deltas_ms: list[int]) -> bytes:
    """A batch with the base timestamp 1,000 and one record per delta."""
    return wire.batch([None] * len(deltas_ms), stamps_ms=[1_000 + delta for delta in deltas_ms])


@pytest.mark.parametrize("compress", [False, True])
def test_a_time_is_answered_with_the_first_record_since(driver: Driver, compress: bool) -> None:
    produce(driver, 8)
    batch = timed_batch([0, 50, 30, 80, 80])
    produce(driver, 8, records=compressed(batch) if compress else batch)
    driver.broker.state.topics.get("orders").partitions[0].delete_before(1)  # type: ignore[union-attr]  # it is there
    found = [list_offsets(driver, 7, timestamp) for timestamp in (0, 1_001, 1_050, 1_051, 1_080, 1_081)]
    assert [(one.timestamp, one.offset) for one in found] == [
        (1_000, 1),
        (1_050, 2),
        (1_050, 2),
        (1_080, 4),
        (1_080, 4),
        (-1, -1),
    ]
    assert (list_offsets(driver, 7, -3).timestamp, list_offsets(driver, 7, -3).offset) == (1_080, 4)
