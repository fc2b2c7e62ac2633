"""Faults on real brokers go through a proxy: what clients meet there."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from itertools import product

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker
from groupstorm.testing.real import RealBroker
from tests.broker import wire
from tests.broker.wire import RawClient
from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import stopping
from tests.client_libraries.members import MEMBERS
from tests.testing.kinds import EMULATED, KINDS, opened
from tests.testing.members import AT_ONCE, GROUP, RawMember, address
from tests.waiting import PATIENCE_S, wait_until

PARTITIONS = 4


def behind_a_proxy(cluster: EmulatedBroker) -> RealBroker:
    return RealBroker(read_kind(cluster.bootstrap_servers), allow_writes=True, faults=True)


@pytest.fixture
def two_brokers() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"orders": 2}, AT_ONCE, brokers=2) as running:
        yield running


@pytest.fixture(params=KINDS[1:])
def real(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A proxy in front of an emulated broker, and in front of Kafka."""
    with opened(request.param, {"orders": PARTITIONS}, AT_ONCE, faults=True) as broker:
        yield broker


@pytest.mark.parametrize("kind", EMULATED)
def test_a_forked_service_keeps_no_connection_open(kind: str) -> None:
    """It has the sockets of the broker, or the proxy, that were there before it."""
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(PATIENCE_S,))
    try:
        with opened(kind, {}, {}, faults=True) as broker:
            place = address(broker)
            with RawClient(place) as one, RawClient(place) as other:
                for client in (one, other):
                    client.ask(wire.API_VERSIONS, 0)
                forked.start()
                broker.disconnect("ApiVersions")
                one.send(wire.framed(wire.request(wire.API_VERSIONS, 0, 1)))
                assert one.is_closed_by_server()
                broker.drop_connections()
                assert other.is_closed_by_server()
        with pytest.raises(ConnectionRefusedError):
            RawClient(place)
    finally:
        forked.kill()


def test_every_response_that_names_brokers_names_the_proxys_addresses(two_brokers: EmulatedBroker) -> None:
    with behind_a_proxy(two_brokers) as broker:
        ports = {address(broker, number)[1] for number in range(2)}
        assert ports.isdisjoint({address(two_brokers, number)[1] for number in range(2)})
        with RawClient(address(broker)) as client:
            for version in (1, 9, 12):
                answer = client.ask(wire.METADATA, version, topics=None)
                assert {(one.host, one.port) for one in answer.brokers} == {
                    ("127.0.0.1", one) for one in ports
                }
            listed = client.ask(wire.DESCRIBE_CLUSTER, 0)
            assert {one.port for one in listed.brokers} == ports
            found = [client.ask(wire.FIND_COORDINATOR, 2, key=key) for key in ("a", "b")]
            several = client.ask(wire.FIND_COORDINATOR, 4, coordinator_keys=("a", "b"))
            assert {one.port for one in found} == ports
            assert [one.port for one in several.coordinators] == [one.port for one in found]


def test_one_of_several_brokers_is_paused(two_brokers: EmulatedBroker) -> None:
    with behind_a_proxy(two_brokers) as broker, RawClient(address(broker)) as client:
        with pytest.raises(InputError, match=r"^broker: 2: expected one .* named to a client: so far none$"):
            broker.pause(2)
        ports = {one.node_id: one.port for one in client.ask(wire.METADATA, 9, topics=None).brokers}
        with RawClient(("127.0.0.1", ports[2])) as second:
            broker.pause(2)
            assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
            second.send(wire.framed(wire.request(wire.API_VERSIONS, 0)))
            assert second.is_silent()
            broker.resume(2)
            assert second.answer(wire.API_VERSIONS, 0).error_code == Error.NONE
        with pytest.raises(InputError, match=r"^broker: 3: expected one .* named to a client: 1, 2$"):
            broker.pause(3)


def test_a_paused_broker_gets_no_request() -> None:
    """Not even one that it would carry out before its answer is held back."""
    with (
        groupstorm.broker({"orders": 2}, AT_ONCE) as cluster,
        behind_a_proxy(cluster) as broker,
        RawMember(broker) as member,
        RawMember(broker) as other,
    ):
        member.join_alone([0, 1])
        group = cluster.group(member.group)
        broker.pause()
        other.send_join()
        assert other.is_silent()
        assert group.state == "Stable"
        broker.resume()
        group.wait_reaches("PreparingRebalance")


def test_a_broker_that_is_named_during_a_pause_of_all_is_paused(two_brokers: EmulatedBroker) -> None:
    """The bootstrap address is one broker's: the other is named by the first Metadata response."""
    first = two_brokers.bootstrap_servers.partition(",")[0]
    with RealBroker(read_kind(first), allow_writes=True, faults=True) as broker:
        with RawClient(address(broker)) as client:
            ports = {one.node_id: one.port for one in client.ask(wire.METADATA, 9, topics=None).brokers}
        broker.pause()
        with RawClient(("127.0.0.1", ports[2])) as second:
            second.send(wire.framed(wire.request(wire.API_VERSIONS, 0)))
            assert second.is_silent()


def test_a_produce_without_a_response_does_not_hold_up_the_next_request() -> None:
    with groupstorm.broker({"orders": 1}) as cluster, behind_a_proxy(cluster) as broker:
        partition = {"index": 0, "records": wire.batch([b"one"])}
        topic = {"name": "orders", "partition_data": (partition,)}
        with RawClient(address(broker)) as client:
            produce = wire.request(
                wire.PRODUCE, 9, acks=0, timeout=wire.milliseconds(1000), topic_data=(topic,)
            )
            client.send(wire.framed(produce))
            assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
        assert [record.value for record in cluster.records("orders")] == [b"one"]


def test_a_request_that_fails_is_answered_behind_those_before_it() -> None:
    with groupstorm.broker({"orders": 1}) as cluster, behind_a_proxy(cluster) as broker:
        fault = broker.fail("ApiVersions", "INVALID_REQUEST")
        with RawClient(address(broker)) as client:
            asked = (wire.request(wire.METADATA, 9, topics=None), wire.request(wire.API_VERSIONS, 0))
            client.send(b"".join(map(wire.framed, asked)))
            assert client.answer(wire.METADATA, 9).brokers
            assert client.answer(wire.API_VERSIONS, 0).error_code == Error.INVALID_REQUEST
        assert fault.hits == 1


def test_versions_are_those_that_broker_and_proxy_know() -> None:
    with (
        groupstorm.broker(as_version="3.9") as cluster,
        behind_a_proxy(cluster) as broker,
        RawClient(address(cluster)) as direct,
        RawClient(address(broker)) as proxied,
    ):
        assert proxied.ask(wire.API_VERSIONS, 3) == direct.ask(wire.API_VERSIONS, 3)
        header = wire.request_header(wire.API_VERSIONS, 4, 1)
        answers = []
        for client in (direct, proxied):
            client.send(wire.framed(header.replace(b"\x00\x04", b"\x00\x63", 1)))
            answers.append(client.frame())
        assert answers[0] == answers[1], "KIP-511: an unknown version is answered in version 0"


def test_bytes_that_are_no_request_end_the_connection() -> None:
    with groupstorm.broker() as cluster, behind_a_proxy(cluster) as broker:
        for garbage in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", wire.framed(b"\x00"), wire.framed(b"")):
            with RawClient(address(broker)) as client:
                client.send(garbage)
                assert client.is_closed_by_server()
        with RawMember(broker) as member:
            assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID, "others go on"


def test_a_broker_that_goes_ends_its_connections() -> None:
    with groupstorm.broker() as cluster, behind_a_proxy(cluster) as broker, RawMember(broker) as member:
        assert member.heartbeat() == Error.UNKNOWN_MEMBER_ID
        cluster.drop_connections()
        assert member.is_closed_by_server()


@pytest.mark.slow
@pytest.mark.parametrize("library", sorted(MEMBERS))
def test_real_clients_survive_faults_of_a_real_broker(real: Broker, library: str) -> None:
    """Two members share a topic while commits fail, a broker is slow, and connections break."""
    checked(library)
    group, orders = real.group(GROUP), real.topic("orders")
    start = partial(MEMBERS[library], real.bootstrap_servers, topics=(orders,), group=group.id)
    with stopping([start(), start()]) as members:
        group.wait_stable(members=2, partitions=PARTITIONS)
        refused = real.fail("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", count=2, group=GROUP)
        with real.slow(20, "Fetch") as slow:
            for number in range(PARTITIONS):
                real.produce("orders", f"before {number}", partition=number)
            refused.wait_used_up()
            group.wait_caught_up("orders")
        assert slow.hits > 0
        assert real.drop_connections() >= len(members)
        for number in range(PARTITIONS):
            real.produce("orders", f"after {number}", partition=number)
        group.wait_caught_up("orders")
        wanted = {f"{when} {number}" for when, number in product(("before", "after"), range(PARTITIONS))}
        wait_until(
            lambda: {value for member in members for value in member.values} == wanted,
            "every record was read",
        )
