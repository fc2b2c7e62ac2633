"""Brokers that are reached at an address: what is made there, what goes again, what they cannot do.

The cluster is an emulated one that the test looks at from the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker, EmulatorOnly
from groupstorm.testing.real import RealBroker
from tests.server import wire
from tests.server.wire import RawClient
from tests.testing.members import AT_ONCE, RawMember, address


@pytest.fixture
def cluster() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"theirs": 1}, AT_ONCE) as running:
        yield running


def at(cluster: EmulatedBroker, topics: dict[str, int] | None = None) -> RealBroker:
    return RealBroker(read_kind(cluster.bootstrap_servers), topics, allow_writes=True)


def topics_of(cluster: EmulatedBroker) -> set[str]:
    with RawClient(address(cluster)) as client:
        return {topic.name for topic in client.ask(wire.METADATA, 9, topics=None).topics}


def test_nothing_is_made_without_consent(cluster: EmulatedBroker) -> None:
    with pytest.raises(InputError, match=r"say allow_writes=True \(pytest: --kafka-allow-writes\)"):
        RealBroker(read_kind(cluster.bootstrap_servers))


async def test_async_form(cluster: EmulatedBroker) -> None:
    async with at(cluster, {"orders": 2}) as broker:
        assert topics_of(cluster) == {"theirs", broker.topic("orders")}
        with pytest.raises(AssertionError, match="was not Stable with 1 members within 0 s"):
            await broker.group("g").stable(members=1, timeout_s=0)
    assert topics_of(cluster) == {"theirs"}


def test_a_topic_that_is_refused_leaves_nothing_behind(cluster: EmulatedBroker) -> None:
    broker = at(cluster, {"orders": 1, "no/topic": 1})
    with pytest.raises(InputError, match=r"no/topic: the cluster says INVALID_TOPIC_EXCEPTION"):
        broker.start()
    assert topics_of(cluster) == {"theirs"}


def test_a_group_that_still_has_members_is_named(cluster: EmulatedBroker) -> None:
    broker = at(cluster, {"orders": 1})
    broker.start()
    group = broker.group("readers")
    with RawMember(cluster) as member:
        member.send_join(group.id)
        member.joined()
        with pytest.raises(
            InputError, match=rf"could not be cleaned up: group {group.id}: .*NON_EMPTY_GROUP"
        ):
            broker.stop()
    assert topics_of(cluster) == {"theirs"}, "what can go is gone"


def test_it_is_used_inside_its_context(cluster: EmulatedBroker) -> None:
    with pytest.raises(InputError, match="use it inside `with` or `async with`"):
        _ = at(cluster).bootstrap_servers


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("fail", lambda broker: broker.fail("Heartbeat", "NOT_COORDINATOR")),
        ("delay", lambda broker: broker.delay("Heartbeat", 5)),
        ("disconnect", lambda broker: broker.disconnect("Heartbeat")),
        ("clear_faults", lambda broker: broker.clear_faults()),
        ("drop_connections", lambda broker: broker.drop_connections()),
        ("move_coordinator", lambda broker: broker.move_coordinator("g")),
        ("expire_member", lambda broker: broker.expire_member("g", "m")),
        ("pause", lambda broker: broker.pause()),
        ("resume", lambda broker: broker.resume()),
        ("events", lambda broker: broker.events),
        ("trace", lambda broker: broker.trace),
    ],
)
def test_what_only_the_emulator_does(
    cluster: EmulatedBroker, what: str, ask: Callable[[Broker], object]
) -> None:
    with at(cluster) as broker:
        with pytest.raises(EmulatorOnly, match=rf"^{what}: {cluster.bootstrap_servers} is a real broker: "):
            ask(broker)
        assert broker.control_url is None
