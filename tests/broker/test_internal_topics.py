"""`__consumer_offsets` and `__transaction_state`: when they appear, who leads them, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import (
    create,
    create_partitions,
    delete_topics,
    describe_configs,
    fetch,
    list_offsets,
    metadata,
    produce,
)
from tests.broker.driver import Driver

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP, TRANSACTIONAL_ID = 0, 1
LATEST, EARLIEST = -1, -2


def find_coordinator(driver: Driver, key_type: int, key: str = "g") -> int:
    (found,) = driver.ask(wire.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=(key,)).coordinators
    return int(found.node_id)


def names(driver: Driver) -> list[str]:
    return [topic.name for topic in driver.ask(wire.METADATA, 12, topics=None).topics]


def leaders(driver: Driver, topic: str = OFFSETS) -> list[int]:
    (found,) = metadata(driver, 12, topic)
    return [partition.leader_id for partition in found.partitions]


def test_metadata_creates_an_internal_topic_if_it_may_create_topics(driver: Driver) -> None:
    (unknown,) = metadata(driver, 12, OFFSETS, allow_auto_topic_creation=False)
    assert (unknown.error_code, names(driver)) == (Error.UNKNOWN_TOPIC_OR_PARTITION, ["orders"])
    (created,) = metadata(driver, 12, OFFSETS)
    assert created.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION  # this once, as for other topics
    assert leaders(driver) == [1] * 50


def test_the_settings_say_how_many_partitions_there_are() -> None:
    driver = Driver({"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "3"})
    find_coordinator(driver, GROUP)
    find_coordinator(driver, TRANSACTIONAL_ID)
    assert (len(leaders(driver)), len(leaders(driver, TRANSACTIONS))) == (4, 3)


def test_the_coordinator_of_a_group_leads_the_groups_partition_also_after_a_move() -> None:
    driver = Driver({}, {}, brokers=4)
    partition = driver.broker.state.cluster.groups.partition_of("g")
    before = find_coordinator(driver, GROUP)
    assert leaders(driver) == [1 + index % 4 for index in range(50)]
    (topic,) = metadata(driver, 12, OFFSETS)
    assert {len(one.replica_nodes) for one in topic.partitions} == {3}
    driver.collect(driver.broker.move_coordinator("g", None, driver.now_ms))
    assert leaders(driver)[partition] == find_coordinator(driver, GROUP) == before % 4 + 1
    assert leaders(driver).count(before) == 12 + (before <= 2) - 1


def test_internal_topics_change_no_limit_and_no_place_of_another_topic() -> None:
    limits = {"groupstorm.max.topics": "2", "groupstorm.max.partitions": "2"}
    driver = Driver(limits, {"orders": 1}, brokers=3)
    find_coordinator(driver, GROUP)
    assert create(driver, 5, "payments", partitions=1)[0].error_code == Error.NONE
    assert leaders(driver, "payments") == [2]
    assert create(driver, 5, "refunds", partitions=1)[0].error_code == Error.POLICY_VIOLATION
    assert delete_topics(driver, 5, "payments") == [Error.NONE]
    assert create(driver, 5, "refunds", partitions=1)[0].error_code == Error.NONE


def test_clients_cannot_change_internal_topics(driver: Driver) -> None:
    find_coordinator(driver, GROUP)
    assert produce(driver, 8, name=OFFSETS).error_code == Error.INVALID_TOPIC_EXCEPTION
    assert delete_topics(driver, 5, OFFSETS) == [Error.POLICY_VIOLATION]
    assert create_partitions(driver, 1, 60, name=OFFSETS) == Error.POLICY_VIOLATION
    assert leaders(driver) == [1] * 50


def test_nobody_may_read_internal_topics(driver: Driver) -> None:
    """They hold no records here. An empty topic would say that there are no groups."""
    find_coordinator(driver, GROUP)
    assert fetch(driver, 13, name=OFFSETS).error_code == Error.TOPIC_AUTHORIZATION_FAILED
    for timestamp in (EARLIEST, LATEST):
        found = list_offsets(driver, 7, timestamp, name=OFFSETS)
        assert (found.error_code, found.offset) == (Error.TOPIC_AUTHORIZATION_FAILED, -1)


@pytest.mark.parametrize(
    ("key_type", "name", "expected"),
    [
        (GROUP, OFFSETS, {"cleanup.policy": "compact", "compression.type": "producer"}),
        (TRANSACTIONAL_ID, TRANSACTIONS, {"cleanup.policy": "compact", "min.insync.replicas": "1"}),
    ],
)
def test_internal_topics_have_kafkas_configurations(
    driver: Driver, key_type: int, name: str, expected: dict[str, str]
) -> None:
    find_coordinator(driver, key_type)
    configs: dict[str, Any] = {one.name: one.value for one in describe_configs(driver, 4, name=name).configs}
    expected |= {"segment.bytes": "104857600"}
    assert {key: configs[key] for key in expected} == expected
