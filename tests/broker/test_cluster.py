"""Several brokers in one process: spread leaders, coordinators and racks; older releases."""

from __future__ import annotations

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.cluster import Cluster
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.asking import commit, create, fetch, join, list_offsets, metadata, produce
from tests.broker.driver import PEER, Driver


@pytest.fixture
def three() -> Driver:
    return Driver({"group.initial.rebalance.delay.ms": "0"}, {"orders": 3}, brokers=3)


def test_leaders_are_spread_and_another_broker_refuses(three: Driver) -> None:
    answer = three.ask(wire.METADATA, 12, topics=None)
    assert [one.node_id for one in answer.brokers] == [1, 2, 3]
    assert [one.leader_id for one in answer.topics[0].partitions] == [1, 2, 3]
    assert produce(three, 8, 0).error_code == Error.NONE
    assert produce(three, 8, 1).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert list_offsets(three, 7, -1, partition=2).error_code == Error.NOT_LEADER_OR_FOLLOWER
    three.node = 2
    assert produce(three, 8, 1).error_code == Error.NONE
    assert fetch(three, 12).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_the_next_topic_begins_at_the_next_broker_and_has_as_many_replicas_as_asked(three: Driver) -> None:
    create(three, 5, "next", partitions=2, replication_factor=2)
    (topic,) = metadata(three, 4, "next")
    assert [one.replica_nodes for one in topic.partitions] == [(2, 3), (3, 1)]
    assert create(three, 5, "more", replication_factor=4)[0].error_code == Error.INVALID_REPLICATION_FACTOR


def test_groups_are_spread_by_kafkas_partition_of_the_offsets_topic() -> None:
    groups = Cluster((1, 2, 3)).groups
    # "g".hashCode() is 103
    assert groups.partition_of("g") == 103 % 50
    assert groups.node_of("g") == 1 + 103 % 50 % 3
    assert {groups.node_of(f"group-{number}") for number in range(20)} == {1, 2, 3}


def test_a_groups_coordinator_moves_without_transactional_ids(three: Driver) -> None:
    def found(key_type: int) -> int:
        answer = three.ask(wire.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=("g",))
        return int(answer.coordinators[0].node_id)

    before = found(0), found(1)
    three.collect(three.broker.move_coordinator("g", None, three.now_ms))
    assert (found(0), found(1)) == (before[0] % 3 + 1, before[1])


def test_a_group_is_found_and_served_at_its_coordinator_alone(three: Driver) -> None:
    (found,) = three.ask(wire.FIND_COORDINATOR, 4, coordinator_keys=("g",)).coordinators
    for node in (1, 2, 3):
        three.node = node
        expected = Error.NONE if node == found.node_id else Error.NOT_COORDINATOR
        assert commit(three, 8) == [(0, expected)]
        listed = [one.group_id for one in three.ask(wire.LIST_GROUPS, 4).groups]
        assert listed == (["g"] if node == found.node_id else [])
        described = three.ask(wire.DESCRIBE_GROUPS, 5, groups=("g",)).groups[0]
        assert described.error_code == expected


def test_transactional_ids_have_their_coordinator_too(three: Driver) -> None:
    (found,) = three.ask(wire.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=("t",)).coordinators
    fields = {"transactional_id": "t", "transaction_timeout": wire.milliseconds(1_000)}
    for node in (1, 2, 3):
        three.node = node
        answer = three.ask(wire.INIT_PRODUCER_ID, 2, **fields)
        assert (answer.error_code == Error.NONE) is (node == found.node_id)


def test_a_moving_coordinator_answers_parked_requests(three: Driver) -> None:
    before = three.broker.state.cluster.groups.node_of("g")
    three.node = before
    first = join(three, 3)
    three.advance(0)
    parked = join(three, 3)
    assert parked not in three.answers
    three.collect(three.broker.move_coordinator("g", None, three.now_ms))
    assert three.answers[parked].error_code == Error.NOT_COORDINATOR
    after = three.broker.state.cluster.groups.node_of("g")
    assert after == before % 3 + 1
    assert three.ask(wire.FIND_COORDINATOR, 0, key="g").node_id == after
    member = {"group_id": "g", "generation_id": 1, "member_id": three.answers[first].member_id}
    assert three.ask(wire.HEARTBEAT, 0, **member).error_code == Error.NOT_COORDINATOR
    with pytest.raises(ValueError, match="no broker 9"):
        three.broker.move_coordinator("g", 9, three.now_ms)


def test_advertised_brokers_have_consecutive_ports() -> None:
    driver = Driver({"advertised.listeners": "kafka.test:7000"}, {}, brokers=2)
    answer = driver.ask(wire.METADATA, 9, topics=())
    assert [(one.host, one.port) for one in answer.brokers] == [("kafka.test", 7000), ("kafka.test", 7001)]


#: The levels of the features of a cluster of Kafka 4.4.0.
FINALIZED = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "metadata.version": 33,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}


@pytest.mark.parametrize(
    ("release", "joins", "transactions", "describes_cluster"),
    [("2.8", 7, {}, True), ("3.9", 9, {}, True), ("4.x", 9, FINALIZED, True)],
)
def test_an_older_release_advertises_older_versions(
    release: str, joins: int, transactions: dict[str, int], describes_cluster: bool
) -> None:
    driver = Driver(release=release)
    software = {"client_software_name": "a", "client_software_version": "1"}
    answer = driver.ask(wire.API_VERSIONS, 3, **software)
    highest = {one.api_key: one.max_version for one in answer.api_keys}
    assert highest[wire.JOIN_GROUP] == joins
    assert (wire.DESCRIBE_CLUSTER in highest) is describes_cluster
    assert {one.name: one.max_version_level for one in answer.finalized_features} == transactions
    # a newer client asks with its own highest version and is told ours
    frame = wire.request(wire.API_VERSIONS, 4, 1, **software)
    frame = frame[:2] + b"\x00\x09" + frame[4:]
    (refusal,) = driver.broker.receive(999, PEER, frame, driver.now_ms).outputs
    assert refusal.payload is not None
    told = wire.parse_response(wire.API_VERSIONS, 0, refusal.payload[4:])[1]
    assert told.error_code == Error.UNSUPPORTED_VERSION
    assert [one.max_version for one in told.api_keys] == [highest[wire.API_VERSIONS]]
    closed = driver.send(wire.METADATA, 13, topics=None)
    assert (closed in driver.closed) is (release != "4.x")


def test_requests_beyond_the_limits_of_groups_and_topics_are_refused() -> None:
    limits = {"groupstorm.max.groups": "1", "groupstorm.max.topics": "2", "groupstorm.max.partitions": "6"}
    driver = Driver(limits, {"orders": 3})
    assert commit(driver, 8) == [(0, Error.NONE)]
    assert commit(driver, 8, group_id="h") == [(0, Error.POLICY_VIOLATION)]
    refused = join(driver, 3, group="h")
    assert driver.answers[refused].error_code == Error.POLICY_VIOLATION
    assert create(driver, 5, "a", partitions=4)[0].error_code == Error.POLICY_VIOLATION
    assert create(driver, 5, "a", partitions=2)[0].error_code == Error.NONE
    (result,) = create(driver, 5, "b", partitions=1)
    assert (result.error_code, "groupstorm.max.topics" in result.error_message) == (
        Error.POLICY_VIOLATION,
        True,
    )


@pytest.mark.parametrize(
    ("setting", "expected"),
    [({}, [None] * 3), ({"broker.rack": "a"}, ["a"] * 3), ({"broker.rack": "a, b,c"}, ["a", "b", "c"])],
)
def test_every_broker_is_named_with_its_rack(setting: dict[str, str], expected: list[str | None]) -> None:
    driver = Driver(setting, {"orders": 3}, brokers=3)
    metadata = driver.ask(wire.METADATA, 9, topics=None)
    assert [one.rack for one in metadata.brokers] == expected
    described = driver.ask(wire.DESCRIBE_CLUSTER, 0)
    assert [one.rack for one in described.brokers] == expected


@pytest.mark.parametrize(("racks", "brokers"), [("a,b", 3), ("a,b", 1), ("a,b,c,d", 3), ("a,", 2), ("", 1)])
def test_racks_are_one_or_one_of_each_broker(racks: str, brokers: int) -> None:
    with pytest.raises(InputError, match=r"broker\.rack"):
        make_broker({"broker.rack": racks}, {}, brokers)


@pytest.mark.parametrize(
    ("racks", "count"),
    [("aabb", 2), ("abab", 2), ("aaab", 2), ("aabbcc", 3), ("abcabc", 3), ("aabbcc", 4), ("aaaabb", 3)],
)
def test_replicas_are_in_as_many_racks_as_there_are(racks: str, count: int) -> None:
    nodes = range(1, len(racks) + 1)
    cluster = Cluster(nodes, racks=tuple(racks))
    for partition in range(12):
        replicas = cluster.replicas(0, partition, count)
        assert len({*replicas}) == count
        assert replicas[0] == nodes[partition % len(nodes)], "brokers lead in turn, whatever their racks"
        assert len({cluster.rack(node) for node in replicas}) == min(count, len({*racks}))


def test_without_racks_replicas_are_the_next_brokers() -> None:
    for cluster in (Cluster((1, 2, 3)), Cluster((1, 2, 3), racks=("a",))):
        assert [cluster.replicas(1, partition, 2) for partition in range(3)] == [(2, 3), (3, 1), (1, 2)]
