"""Metadata, FindCoordinator, CreateTopics."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from groupstorm.broker.apis import metadata as metadata_api
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import create, metadata, topic_id
from tests.broker.driver import Driver


def test_an_empty_list_asks_for_all_topics_in_version_0_and_for_none_later(driver: Driver) -> None:
    assert [topic.name for topic in driver.ask(wire.METADATA, 0, topics=()).topics] == ["orders"]
    assert driver.ask(wire.METADATA, 1, topics=()).topics == ()
    assert [topic.name for topic in driver.ask(wire.METADATA, 1, topics=None).topics] == ["orders"]


def test_topics_are_created_on_demand_with_the_brokers_number_of_partitions() -> None:
    driver = Driver({"num.partitions": "4"})
    assert (
        metadata(driver, 4, "new")[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    )  # this once, as in Kafka
    (topic,) = metadata(driver, 4, "new")
    assert (topic.error_code, len(topic.partitions)) == (Error.NONE, 4)
    assert metadata(driver, 12, "new")[0].topic_id == topic_id(driver, "new")


def test_topics_are_not_created_if_client_or_broker_forbids_it(driver: Driver) -> None:
    (topic,) = metadata(driver, 4, "new", allow_auto_topic_creation=False)
    assert (topic.error_code, topic.partitions) == (Error.UNKNOWN_TOPIC_OR_PARTITION, ())
    (topic,) = metadata(Driver({"auto.create.topics.enable": "false"}), 4, "new")
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "x" * 250])
def test_illegal_topic_names_are_refused(driver: Driver, name: str) -> None:
    assert metadata(driver, 4, name)[0].error_code == Error.INVALID_TOPIC_EXCEPTION


def test_topics_may_be_asked_for_by_id_from_version_12_on(driver: Driver) -> None:
    known, unknown = metadata(driver, 12, ids=(topic_id(driver), uuid.UUID(int=5)))
    assert (known.name, known.error_code) == ("orders", Error.NONE)
    assert (unknown.name, unknown.error_code) == (None, Error.UNKNOWN_TOPIC_ID)
    assert metadata(driver, 10, ids=(topic_id(driver),))[0].error_code == Error.INVALID_REQUEST


def test_metadata_names_the_advertised_listeners() -> None:
    driver = Driver(
        {"advertised.listeners": "PLAINTEXT://kafka.test:19092", "node.id": "7", "broker.rack": "r1"}
    )
    (broker,) = driver.ask(wire.METADATA, 9, topics=()).brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (7, "kafka.test", 19092, "r1")
    found = driver.ask(wire.FIND_COORDINATOR, 3, key="g")
    assert (found.node_id, found.host, found.port) == (7, "kafka.test", 19092)


def test_transactions_have_a_coordinator_and_share_groups_have_none(driver: Driver) -> None:
    answer = driver.ask(wire.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=("t",))
    assert (answer.coordinators[0].error_code, answer.coordinators[0].node_id) == (Error.NONE, 1)
    answer = driver.ask(wire.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=("s",))
    assert answer.coordinators[0].error_code == Error.INVALID_REQUEST


def test_every_idempotent_producer_gets_its_own_id(driver: Driver) -> None:
    answers = [driver.ask(wire.INIT_PRODUCER_ID, 4, transactional_id=None) for _ in range(3)]
    assert len({one.producer_id for one in answers}) == 3
    assert {one.producer_epoch for one in answers} == {0}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"partitions": 0}, Error.INVALID_PARTITIONS),
        ({"partitions": -2}, Error.INVALID_PARTITIONS),
        ({"partitions": 10_001}, Error.POLICY_VIOLATION),
        ({"replication_factor": 3}, Error.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_topics_that_cannot_be(driver: Driver, fields: dict[str, Any], error: Error) -> None:
    assert create(driver, 5, "new", **fields)[0].error_code == error


def test_a_name_twice_in_one_request_is_answered_once(driver: Driver) -> None:
    """As in ControllerApis: librdkafka refuses a response that names a topic twice."""
    (created,) = create(driver, 5, "a", "a")
    assert (created.error_code, created.error_message) == (Error.INVALID_REQUEST, "Duplicate topic name.")
    grown = {"name": "orders", "count": 9, "assignments": None}
    (answer,) = driver.ask(wire.CREATE_PARTITIONS, 3, topics=(grown, grown)).results
    assert (answer.error_code, answer.error_message) == (Error.INVALID_REQUEST, "Duplicate topic name.")
    (deleted,) = driver.ask(wire.DELETE_TOPICS, 5, topic_names=("orders", "orders")).responses
    assert (deleted.name, deleted.error_code) == ("orders", Error.INVALID_REQUEST)


def test_names_that_collide(driver: Driver) -> None:
    assert create(driver, 5, "a.b")[0].error_code == Error.NONE
    assert create(driver, 5, "a_b")[0].error_code == Error.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("placed", "more", "error"),
    [
        (((0, (1,)), (1, (1,))), {}, Error.NONE),
        (((0, (1,)), (2, (1,))), {}, Error.INVALID_REPLICA_ASSIGNMENT),
        (((0, (2,)),), {}, Error.INVALID_REPLICA_ASSIGNMENT),
        (((0, (1,)),), {"partitions": 1}, Error.INVALID_REQUEST),
    ],
)
def test_assignments_of_replicas(driver: Driver, placed: Any, more: dict[str, int], error: Error) -> None:
    assignments = tuple({"partition_index": index, "broker_ids": brokers} for index, brokers in placed)
    fields: dict[str, Any] = {"partitions": -1, "replication_factor": -1, "assignments": assignments, **more}
    assert create(driver, 5, "new", **fields)[0].error_code == error


def test_kept_answers_of_metadata_do_not_pile_up(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = driver.broker.state.metadata_cache
    for number in range(10):
        create(driver, 5, f"new-{number}")
        for version in (4, 7):
            driver.ask(wire.METADATA, version, topics=None)
        assert len(kept) == 2, "answers of before the last change are of no use"
    monkeypatch.setattr(metadata_api, "_BYTES_KEPT", 100)
    create(driver, 5, "last")
    answer = driver.ask(wire.METADATA, 4, topics=None)
    assert "last" in [topic.name for topic in answer.topics]
    assert not kept, "an answer that is larger than all that may be kept"
