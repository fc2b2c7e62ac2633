"""The versions that Kafka 4.4.0 brought, with the bytes and the answers of a broker of that release."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import commit
from tests.broker.driver import Driver
from tests.broker.transactional import TransactionalProducer

TOPIC = uuid.UUID("59a60480-c722-4d09-a505-3935e06a2e36")


@pytest.fixture
def driver() -> Driver:
    return Driver(topics={"orders": 1})


def commit_of(topic_id: uuid.UUID, partition: int) -> Any:
    one = {"partition_index": partition, "committed_offset": 3, "committed_metadata": None}
    return {"topic_id": topic_id, "partitions": (one,)}


def test_offsets_of_a_transaction_name_topics_by_id() -> None:
    """By the schema of version 6: the id stands where the name stood."""
    member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
    body = wire.request_body(
        wire.TXN_OFFSET_COMMIT,
        6,
        transactional_id="t",
        group_id="g",
        producer_id=7,
        producer_epoch=1,
        topics=(commit_of(TOPIC, 0),),
        **member,
    )
    assert body.hex(" ") == (
        "02 74 02 67 00 00 00 00 00 00 00 07 00 01 ff ff ff ff 01 00 02 "
        f"{TOPIC.bytes.hex(' ')} 02 00 00 00 00 00 00 00 00 00 00 00 03 ff ff ff ff 00 00 00 00"
    )


def test_an_unknown_topic_id_and_an_unknown_partition_are_refused(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    (known,) = driver.ask(wire.METADATA, 10, topics=None).topics
    answer = driver.ask(
        wire.TXN_OFFSET_COMMIT,
        6,
        transactional_id=producer.name,
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id=-1,
        member_id="",
        topics=(commit_of(TOPIC, 0), commit_of(known.topic_id, 9), commit_of(known.topic_id, 0)),
    )
    assert [(one.topic_id, one.partitions[0].error_code) for one in answer.topics] == [
        (TOPIC, Error.UNKNOWN_TOPIC_ID),
        (known.topic_id, Error.UNKNOWN_TOPIC_OR_PARTITION),
        (known.topic_id, Error.NONE),
    ]


def test_errors_of_deleted_groups_have_no_sentence(driver: Driver) -> None:
    commit(driver, 8)
    answer = driver.ask(wire.DELETE_GROUPS, 3, groups_names=("g", "none", ""))
    assert [(one.group_id, one.error_code, one.error_message) for one in answer.results] == [
        ("g", Error.NONE, None),
        ("none", Error.GROUP_ID_NOT_FOUND, None),
        ("", Error.GROUP_ID_NOT_FOUND, None),
    ]


@pytest.mark.parametrize(
    ("cluster", "node", "error"),
    [
        (None, -1, Error.NONE),
        ("this", 1, Error.NONE),
        ("this", 2, Error.REBOOTSTRAP_REQUIRED),
        ("other", 1, Error.REBOOTSTRAP_REQUIRED),
        ("this", -1, Error.INVALID_REQUEST),
        (None, 1, Error.INVALID_REQUEST),
    ],
)
def test_a_client_may_say_which_broker_it_expects(
    driver: Driver, cluster: str | None, node: int, error: Error
) -> None:
    if cluster == "this":
        cluster = driver.ask(wire.DESCRIBE_CLUSTER, 0).cluster_id
    answer = driver.ask(
        wire.API_VERSIONS,
        5,
        client_software_name="a",
        client_software_version="1",
        cluster_id=cluster,
        node_id=node,
    )
    assert answer.error_code == error
    assert bool(answer.api_keys) is (error is Error.NONE)
