"""APIs that tools and consoles ask at every page, with Kafka 4.4.0's answers to the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, metadata, produce
from tests.broker.driver import Driver
from tests.broker.test_cluster import FINALIZED
from tests.broker.transactional import TransactionalProducer

GROUP, SET = 32, 0


@pytest.fixture
def driver() -> Driver:
    return Driver(topics={"orders": 1})


def test_the_features_are_those_of_kafka(driver: Driver) -> None:
    client = {"client_software_name": "a", "client_software_version": "1"}
    answer = driver.ask(wire.API_VERSIONS, 4, **client)
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert {one.name: one.max_version_level for one in answer.finalized_features} == FINALIZED
    assert [one.name for one in driver.ask(wire.API_VERSIONS, 3, **client).supported_features] == [
        "metadata.version"
    ]
    versions = {one.api_key: one.max_version for one in answer.api_keys}
    assert versions[wire.INIT_PRODUCER_ID] == 5  # version 6 is not stable: Kafka does not advertise it


DOWN = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)


@pytest.mark.parametrize(
    ("feature", "level", "upgrade", "problem"),
    [
        ("group.version", 1, 1, None),
        ("foo", 1, 1, "Local controller 1 does not support this feature."),
        ("group.version", 9, 1, "Local controller 1 only supports versions 0-1"),
        ("metadata.version", 1, 1, "Local controller 1 only supports versions 7-33"),
        ("group.version", 0, 1, DOWN),
        ("group.version", 1, 0, "The controller does not support the given upgrade type."),
        ("eligible.leader.replicas.version", 0, 2, "The features of this broker cannot change."),  # ours
    ],
)
def test_updates_of_features(
    driver: Driver, feature: str, level: int, upgrade: int, problem: str | None
) -> None:
    asked = {"feature": feature, "max_version_level": level, "upgrade_type": upgrade}
    answer = driver.ask(wire.UPDATE_FEATURES, 2, feature_updates=(asked,))
    if problem is None:
        assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    else:
        assert answer.error_code == Error.INVALID_UPDATE_VERSION
        assert answer.error_message == (
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {level} for feature {feature}. {problem}"
        )


def test_log_dirs_hold_the_bytes_of_the_partitions_that_the_broker_has() -> None:
    driver = Driver(topics={"orders": 2}, brokers=2)
    data = wire.batch([b"a"])
    produce(driver, 8, records=data)
    (folder,) = driver.ask(wire.DESCRIBE_LOG_DIRS, 4, topics=None).results
    assert folder.log_dir == "/tmp/kafka-logs"  # Kafka's default of log.dir
    (topic,) = folder.topics
    found = [(one.partition_index, one.partition_size) for one in topic.partitions]
    assert found == [(0, len(data))]
    names = ("orders", "none")
    asked = [{"topic": name, "partitions": (0, 1, 7)} for name in names]
    (folder,) = driver.ask(wire.DESCRIBE_LOG_DIRS, 4, topics=tuple(asked)).results
    assert [(one.name, len(one.partitions)) for one in folder.topics] == [("orders", 1)]


def test_resources_with_configurations_are_listed(driver: Driver) -> None:
    session = ("consumer.session.timeout.ms", SET, "50000")
    assert alter_configs(driver, 1, session, kind=GROUP, name="readers") is Error.NONE

    def listed(version: int, *kinds: int) -> Any:
        answer = driver.ask(wire.LIST_CONFIG_RESOURCES, version, resource_types=kinds)
        resources = answer.config_resources
        names = [(getattr(one, "resource_type", 16), one.resource_name) for one in resources]
        return Error(answer.error_code), names

    everything = [(32, "readers"), (8, "1"), (4, "1"), (2, "orders")]
    assert listed(1) == (Error.NONE, everything)
    assert listed(1, 2) == (Error.NONE, [(2, "orders")])
    assert listed(1, 4, 8, 32) == (Error.NONE, everything[:3])
    assert listed(1, 99) == (Error.UNSUPPORTED_VERSION, [])
    assert listed(0) == (Error.NONE, [])


def test_producers_of_a_partition_and_their_open_transactions(driver: Driver) -> None:
    produce(driver, 8, records=wire.batch([b"a"], producer_id=7, epoch=3, sequence=4))

    def described(name: str) -> Any:
        asked = {"name": name, "partition_indexes": (0, 9)}
        (topic,) = driver.ask(wire.DESCRIBE_PRODUCERS, 0, topics=(asked,)).topics
        return topic.partitions

    here, not_here = described("orders")
    (one,) = here.active_producers
    assert (one.producer_id, one.producer_epoch, one.last_sequence) == (7, 3, 4)
    assert one.current_txn_start_offset == -1
    assert (not_here.error_code, not_here.error_message) == (Error.UNKNOWN_TOPIC_OR_PARTITION, None)
    metadata(driver, 12, "__consumer_offsets")  # creates it
    offsets, others = described("__consumer_offsets")
    assert (offsets.error_code, offsets.active_producers, others.error_code) == (Error.NONE, (), Error.NONE)
    unknown = described("none")[0]
    assert unknown.error_message == "This server does not host this topic-partition."


def test_transactions_are_described_and_listed(driver: Driver) -> None:
    producer = TransactionalProducer(driver)
    producer.add(1)
    state, none, empty = driver.ask(
        wire.DESCRIBE_TRANSACTIONS, 0, transactional_ids=(producer.name, "none", "")
    ).transaction_states
    assert (state.error_code, state.transaction_state) == (Error.NONE, "Ongoing")
    assert [(one.topic, one.partitions) for one in state.topics] == [("orders", (0,))]
    assert (none.error_code, empty.error_code) == (Error.TRANSACTIONAL_ID_NOT_FOUND, Error.INVALID_REQUEST)

    def listed(version: int = 2, **filters: Any) -> Any:
        wanted = {"duration_filter": -1, "transactional_id_pattern": None, **filters}
        return driver.ask(wire.LIST_TRANSACTIONS, version, **wanted)

    def found(**filters: Any) -> list[str]:
        return [one.transaction_state for one in listed(**filters).transaction_states]

    assert found() == ["Ongoing"]
    assert found(state_filters=("Ongoing", "Foo")) == ["Ongoing"]
    assert listed(state_filters=("Ongoing", "Foo")).unknown_state_filters == ("Foo",)
    assert found(state_filters=("Empty",)) == []
    assert found(producer_id_filters=(4711,)) == []
    assert found(transactional_id_pattern="none.*") == []
    assert found(transactional_id_pattern=producer.name[0] + ".*") == ["Ongoing"]
    assert listed(transactional_id_pattern="[").error_code == Error.INVALID_REGULAR_EXPRESSION
    assert found(duration_filter=1_000) == []
    driver.advance(1_001)
    assert found(duration_filter=1_000) == ["Ongoing"]


MANUAL = "The manual partition assignment includes"


@pytest.mark.parametrize(
    ("name", "index", "replicas", "error", "sentence"),
    [
        ("orders", 0, (1,), Error.NONE, None),
        ("orders", 0, None, Error.NO_REASSIGNMENT_IN_PROGRESS, None),
        (
            *("orders", 0, (7,), Error.INVALID_REPLICA_ASSIGNMENT),
            f"{MANUAL} broker 7, but no such broker is registered.",
        ),
        ("orders", 0, (), Error.INVALID_REPLICA_ASSIGNMENT, f"{MANUAL} an empty replica list."),
        ("orders", 0, (1, 1), Error.INVALID_REPLICA_ASSIGNMENT, f"{MANUAL} the broker 1 more than once."),
        ("orders", 5, (1,), Error.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:5."),
        ("none", 0, (1,), Error.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named none."),
    ],
)
def test_reassignments(
    driver: Driver, name: str, index: int, replicas: Any, error: Error, sentence: str | None
) -> None:
    (answer,) = reassign(driver, name, index, replicas).responses[0].partitions
    assert (answer.error_code, answer.error_message) == (error, sentence)


def reassign(driver: Driver, name: str, index: int, replicas: Any, **more: Any) -> Any:
    one = {"partition_index": index, "replicas": replicas}
    asked = {"name": name, "partitions": (one,)}
    more = {"allow_replication_factor_change": True, **more}
    return driver.ask(wire.ALTER_REASSIGNMENTS, 1, topics=(asked,), **more)


def test_a_reassigned_partition_has_its_new_leader_at_once_and_over_a_restart() -> None:
    driver = Driver(topics={"orders": 1}, brokers=2)
    assert reassign(driver, "orders", 0, (2, 1)).responses[0].partitions[0].error_code == Error.NONE
    driver.restart()
    for node in (1, 2):
        (topic,) = driver.ask(wire.METADATA, 8, topics=None).topics
        (partition,) = topic.partitions
        assert (partition.leader_id, partition.replica_nodes) == (2, (2, 1))
        driver.node = node
    (answer,) = (
        reassign(driver, "orders", 0, (1,), allow_replication_factor_change=False).responses[0].partitions
    )
    assert answer.error_code == Error.INVALID_REPLICATION_FACTOR
    assert driver.ask(wire.LIST_REASSIGNMENTS, 0, topics=None).topics == ()


def test_no_partition_needs_an_election(driver: Driver) -> None:
    def elect(election_type: int, *topics: str) -> Any:
        asked = tuple({"topic": topic, "partitions": (0, 9)} for topic in topics)
        return driver.ask(wire.ELECT_LEADERS, 2, election_type=election_type, topic_partitions=asked or None)

    orders, none = elect(0, "orders", "none").replica_election_results
    assert [(one.partition_id, one.error_code, one.error_message) for one in orders.partition_result] == [
        (0, Error.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
        (9, Error.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as orders-9"),
    ]
    assert none.partition_result[0].error_message == "No such topic as none"
    (everything,) = elect(0).replica_election_results
    assert (everything.topic, everything.partition_result) == ("orders", ())
    assert elect(7).error_code == Error.INVALID_REQUEST


def test_the_controller_is_the_quorum() -> None:
    driver = Driver(brokers=3)
    one = {"partition_index": 0}
    asked = {"topic_name": "__cluster_metadata", "partitions": (one,)}
    answer = driver.ask(wire.DESCRIBE_QUORUM, 2, topics=(asked,))
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (Error.NONE, 1)
    assert [one.replica_id for one in partition.current_voters] == [1]
    assert [one.replica_id for one in partition.observers] == [2, 3]
    assert [node.node_id for node in answer.nodes] == [1]
