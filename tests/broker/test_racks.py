"""`broker.rack` of several brokers: in Metadata and DescribeCluster, and where the replicas of topics go."""

from __future__ import annotations

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.cluster import Cluster
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.driver import Driver


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
