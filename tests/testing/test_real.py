"""Brokers that are reached at an address: what is made there, what goes again, what they cannot do.

The cluster is an emulated one that the test looks at from the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker, EmulatorOnly, secured
from groupstorm.testing.chosen import chosen_broker
from groupstorm.testing.real import RealBroker
from tests.certificates import make_certificates
from tests.testing.members import AT_ONCE, RawMember, topics_of


@pytest.fixture
def cluster() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"theirs": 1}, AT_ONCE) as running:
        yield running


def at(cluster: EmulatedBroker, topics: dict[str, int] | None = None) -> RealBroker:
    return RealBroker(read_kind(cluster.bootstrap_servers), topics, allow_writes=True)


def test_nothing_is_made_without_consent(cluster: EmulatedBroker) -> None:
    with pytest.raises(InputError, match=r"say allow_writes=True \(pytest: --kafka-allow-writes\)"):
        RealBroker(read_kind(cluster.bootstrap_servers))


async def test_async_form(cluster: EmulatedBroker) -> None:
    async with at(cluster, {"orders": 2}) as broker:
        assert set(topics_of(cluster)) == {"theirs", broker.topic("orders")}
        with pytest.raises(AssertionError, match="was not Stable with 1 member within 0 s"):
            await broker.group("g").stable(members=1, timeout_s=0)
    assert set(topics_of(cluster)) == {"theirs"}


def test_a_question_about_a_topic_makes_none(cluster: EmulatedBroker) -> None:
    """Brokers create topics on demand, if the one who asks lets them."""
    with at(cluster, {"orders": 1}) as broker:
        with pytest.raises(InputError, match="has no such topic"):
            broker.records("order")
        with pytest.raises(AssertionError, match="there is no such topic"):
            broker.group("g").wait_caught_up("order", timeout_s=0)
        assert set(topics_of(cluster)) == {"theirs", broker.topic("orders")}


def test_a_topic_that_is_refused_leaves_nothing_behind(cluster: EmulatedBroker) -> None:
    broker = at(cluster, {"orders": 1, "no/topic": 1})
    with pytest.raises(InputError, match=r"no/topic: the cluster says INVALID_TOPIC_EXCEPTION"):
        broker.start()
    assert set(topics_of(cluster)) == {"theirs"}


def test_a_group_goes_with_the_members_that_it_still_has(cluster: EmulatedBroker) -> None:
    broker = at(cluster, {"orders": 1})
    broker.start()
    group = broker.group("readers")
    with RawMember(cluster) as member:
        member.send_join(group.id)
        member.joined()
        assert group.state == "CompletingRebalance"
        broker.stop()
    assert cluster.group(group.id).state == "Dead"
    assert set(topics_of(cluster)) == {"theirs"}


def test_a_cluster_with_tls_and_sasl(tmp_path: Path) -> None:
    """The cluster is a `groupstorm.broker(security=...)`; the file is in the format of Kafka's tools."""
    made = make_certificates(tmp_path)
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={made.authority}\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="secret";\n'
    )
    demanded = secured(tls_cert=made.server, tls_key=made.server_key, sasl_users={"alice": "secret"})
    with groupstorm.broker(security=demanded) as cluster:
        place = cluster.bootstrap_servers
        said = {"topics": {"orders": 3}}
        with chosen_broker(place, said, allow_writes=True, client_config=config) as broker:
            with pytest.raises(InputError, match=r"orders: the cluster says TOPIC_ALREADY_EXISTS"):
                broker.create_topic("orders", 3)
            assert broker.group("readers").state == "Dead"
    with pytest.raises(InputError, match=r"tls_key: .*: expected tls_cert beside it"):
        secured(tls_key=made.server_key)


def test_it_is_used_inside_its_context(cluster: EmulatedBroker) -> None:
    with pytest.raises(InputError, match="use it inside `with` or `async with`"):
        _ = at(cluster).bootstrap_servers


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("move_coordinator", lambda broker: broker.move_coordinator("g")),
        ("expire_member", lambda broker: broker.expire_member("g", "m")),
        ("events", lambda broker: broker.events),
        ("trace", lambda broker: broker.trace),
    ],
)
def test_calls_that_only_the_emulator_has(
    cluster: EmulatedBroker, what: str, ask: Callable[[Broker], object]
) -> None:
    with at(cluster) as broker:
        with pytest.raises(EmulatorOnly, match=rf"^{what}: {cluster.bootstrap_servers} is a real broker: "):
            ask(broker)
        assert broker.control_url is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda broker: broker.fail("Heartbeat", "NOT_COORDINATOR"),
        lambda broker: broker.slow(5),
        lambda broker: broker.clear_faults(),
        lambda broker: broker.drop_connections(),
        lambda broker: broker.pause(),
        lambda broker: broker.resume(),
    ],
)
def test_faults_need_a_proxy(cluster: EmulatedBroker, ask: Callable[[Broker], object]) -> None:
    with at(cluster) as broker:
        sentence = rf"^{cluster.bootstrap_servers} is a real broker: .* go through a proxy: .*faults=True"
        with pytest.raises(InputError, match=sentence):
            ask(broker)
