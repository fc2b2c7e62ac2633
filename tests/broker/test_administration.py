"""Administration: growing and deleting topics, deleting records, configurations, the cluster."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import (
    alter_configs,
    commit,
    create,
    create_partitions,
    delete_records,
    delete_topics,
    describe_configs,
    epoch_end,
    fetch,
    fetch_fields,
    list_offsets,
    metadata,
    offset_delete,
    offset_fetch,
    produce,
    topic_id,
    versions,
)
from tests.broker.driver import Driver

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, GROUP = 2, 4, 32


def test_topics_are_deleted_by_id_from_version_6_on(driver: Driver) -> None:
    assert delete_topics(driver, 6, ids=(topic_id(driver), uuid.UUID(int=5))) == [
        Error.NONE,
        Error.UNKNOWN_TOPIC_ID,
    ]


def test_topics_named_twice_or_not_at_all_are_not_deleted(driver: Driver) -> None:
    assert delete_topics(driver, 5, "orders", "orders") == [Error.INVALID_REQUEST]
    assert delete_topics(driver, 6, ids=(None,)) == [Error.INVALID_REQUEST]
    assert driver.broker.state.topics.get("orders") is not None


def test_a_broker_may_refuse_to_delete_topics() -> None:
    driver = Driver({"delete.topic.enable": "false"}, {"orders": 1})
    assert delete_topics(driver, 2, "orders") == [Error.INVALID_REQUEST]
    assert delete_topics(driver, 3, "orders") == [Error.TOPIC_DELETION_DISABLED]


def test_deleting_a_topic_deletes_its_offsets_and_answers_waiting_fetches(driver: Driver) -> None:
    commit(driver, 8)
    waiting = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, max_wait_ms=500))
    by_id = driver.send(wire.FETCH, 13, **fetch_fields(driver, 0, max_wait_ms=500))
    delete_topics(driver, 5, "orders")
    assert driver.answers[waiting].responses[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.answers[by_id].responses[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_ID
    create(driver, 5, "orders")
    assert offset_fetch(driver, 7) == [(0, -1, 0)]


@pytest.mark.parametrize("version", versions(wire.CREATE_PARTITIONS))
def test_a_topic_grows_and_never_shrinks(driver: Driver, version: int) -> None:
    assert create_partitions(driver, version, 5) is Error.NONE
    assert len(metadata(driver, 4, "orders")[0].partitions) == 5
    for count in (5, 4, 0, -1):
        assert create_partitions(driver, version, count) is Error.INVALID_PARTITIONS
    assert create_partitions(driver, version, 9, "none") is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert create_partitions(driver, version, 9, validate_only=True) is Error.NONE
    assert len(metadata(driver, 4, "orders")[0].partitions) == 5


def test_new_partitions_get_their_assigned_replicas(driver: Driver) -> None:
    def assigned(*brokers: tuple[int, ...]) -> Any:
        return tuple({"broker_ids": one} for one in brokers)

    assert create_partitions(driver, 3, 5, assignments=assigned((1,))) is Error.INVALID_REPLICA_ASSIGNMENT
    assert create_partitions(driver, 3, 4, assignments=assigned((2,))) is Error.INVALID_REPLICA_ASSIGNMENT
    assert create_partitions(driver, 3, 4, assignments=assigned((1,))) is Error.NONE


@pytest.mark.parametrize("version", versions(wire.DELETE_RECORDS))
def test_records_are_deleted_up_to_an_offset(driver: Driver, version: int) -> None:
    for _ in range(3):
        produce(driver, 8, records=wire.batch([b"a", b"b"]))
    assert delete_records(driver, version, 3) == (Error.NONE, 3)
    assert fetch(driver, 12, 2).error_code == Error.OFFSET_OUT_OF_RANGE
    assert len(fetch(driver, 12, 3).records) == 2 * len(wire.batch([b"a", b"b"]))
    assert list_offsets(driver, 7, -2).offset == 3
    assert delete_records(driver, version, 7) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete_records(driver, version, 1) == (Error.NONE, 3)
    assert delete_records(driver, version, -1) == (Error.NONE, 6)
    assert delete_records(driver, version, 0, partition=9)[0] is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_records_of_compacted_topics_are_not_deleted(driver: Driver) -> None:
    alter_configs(driver, 1, ("cleanup.policy", SET, "compact"))
    assert delete_records(driver, 2, 0)[0] is Error.POLICY_VIOLATION


def test_the_only_leader_epoch_ends_at_the_end(driver: Driver) -> None:
    produce(driver, 8)
    assert epoch_end(driver, 4, 0) == (Error.NONE, 0, 1)
    assert epoch_end(driver, 4, 3) == (Error.NONE, -1, -1)
    assert epoch_end(driver, 4, 0, current=2) == (Error.UNKNOWN_LEADER_EPOCH, -1, -1)


def values(result: Any) -> dict[str, tuple[str, int]]:
    return {one.name: (one.value, one.config_source) for one in result.configs}


def test_configurations_change_one_by_one(driver: Driver) -> None:
    assert alter_configs(driver, 1, ("cleanup.policy", APPEND, "compact")) is Error.NONE
    assert values(describe_configs(driver, 4))["cleanup.policy"] == ("delete,compact", 1)
    assert alter_configs(driver, 1, ("cleanup.policy", SUBTRACT, "delete")) is Error.NONE
    assert values(describe_configs(driver, 4))["cleanup.policy"] == ("compact", 1)
    assert alter_configs(driver, 1, ("cleanup.policy", DELETE, None)) is Error.NONE
    assert values(describe_configs(driver, 4))["cleanup.policy"] == ("delete", 5)
    assert alter_configs(driver, 1, ("retention.ms", SET, "1"), validate_only=True) is Error.NONE
    assert values(describe_configs(driver, 4))["retention.ms"][1] == 5


def test_records_older_than_retention_ms_go_at_the_next_check() -> None:
    driver = Driver({"log.retention.check.interval.ms": "1000"}, {"orders": 1})
    alter_configs(driver, 1, ("retention.ms", SET, "5000"))
    produce(driver, 8, records=wire.batch([b"old"], timestamp_ms=driver.now_ms))
    driver.advance(4_000)
    produce(driver, 8, records=wire.batch([b"new"], timestamp_ms=driver.now_ms))
    driver.advance(1_000)
    assert list_offsets(driver, 7, -2).offset == 0
    driver.advance(1_000)
    assert list_offsets(driver, 7, -2).offset == 1


def test_log_append_time_is_the_brokers_and_the_checksum_fits(driver: Driver) -> None:
    alter_configs(driver, 1, ("message.timestamp.type", SET, "LogAppendTime"))
    answer = produce(driver, 8)
    assert answer.log_append_time.timestamp() * 1000 == driver.now_ms
    assert list_offsets(driver, 7, -3).timestamp == driver.now_ms
    from groupstorm.broker.log.batches import parse_stored

    assert parse_stored(fetch(driver, 12, 0).records) is not None


def test_a_topic_may_want_more_replicas_in_sync_than_it_has(driver: Driver) -> None:
    alter_configs(driver, 1, ("min.insync.replicas", SET, "2"))
    assert produce(driver, 8).error_code == Error.NOT_ENOUGH_REPLICAS
    assert produce(driver, 8, acks=1).error_code == Error.NONE


def test_topics_are_created_with_configurations(driver: Driver) -> None:
    def config(name: str, value: str) -> Any:
        return {"name": name, "value": value}

    (made,) = create(driver, 7, "made", configs=(config("retention.ms", "77"),))
    assert {one.name: one.value for one in made.configs}["retention.ms"] == "77"
    assert values(describe_configs(driver, 4, name="made"))["retention.ms"] == ("77", 1)
    assert (
        create(driver, 7, "other", configs=(config("retention", "1"),))[0].error_code == Error.INVALID_CONFIG
    )


def test_offsets_are_deleted_and_unknown_partitions_refused(driver: Driver) -> None:
    commit(driver, 8, 0, 2)
    assert offset_delete(driver, 0, 9) == (Error.NONE, [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION])
    assert offset_fetch(driver, 7, 0, 2) == [(0, -1, 0), (2, 12, 0)]
    assert offset_delete(driver, 0, group="none") == (Error.GROUP_ID_NOT_FOUND, [])


def test_the_cluster_is_described(driver: Driver) -> None:
    answer = driver.ask(wire.DESCRIBE_CLUSTER, 2, endpoint_type=1)
    assert [(one.broker_id, one.host, one.port) for one in answer.brokers] == [(1, "127.0.0.1", 9092)]
    assert (answer.error_code, answer.controller_id) == (Error.NONE, 1)
    controllers = driver.ask(wire.DESCRIBE_CLUSTER, 2, endpoint_type=2)
    assert (controllers.error_code, controllers.brokers) == (Error.UNSUPPORTED_ENDPOINT_TYPE, ())


def test_topics_are_described_page_by_page(driver: Driver) -> None:
    create(driver, 5, "a")
    seen, cursor, pages = [], None, 0
    while True:
        answer = driver.ask(
            wire.DESCRIBE_TOPIC_PARTITIONS, 0, topics=(), response_partition_limit=2, cursor=cursor
        )
        seen += [(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions]
        pages += 1
        if answer.next_cursor is None:
            break
        at = answer.next_cursor
        cursor = {"topic_name": at.topic_name, "partition_index": at.partition_index}
    assert seen == [("a", 0), ("a", 1), ("orders", 0), ("orders", 1), ("orders", 2)]
    assert pages == 3
    unknown = {"name": "none"}
    (topic,) = driver.ask(
        wire.DESCRIBE_TOPIC_PARTITIONS, 0, topics=(unknown,), response_partition_limit=2, cursor=None
    ).topics
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
