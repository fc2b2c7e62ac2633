"""Our assignors inside other libraries' consumers, in groups of the emulator: real clients, real time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groupstorm.assignors.contract import Assignor, RebalanceProtocol
from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.problems import InputError
from groupstorm.trace.events.coordinator import GroupStateChanged
from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import stopping
from tests.client_libraries.members import MEMBERS, Member
from tests.waiting import wait_until

CLICKS, IMPRESSIONS = TOPICS = ("clicks", "impressions")
NUMBERS = 6
JOIN = "stream-join-sticky"


@pytest.fixture(params=["aiokafka", "kafka-python"])
def library(request: pytest.FixtureRequest) -> str:
    """The libraries that take custom assignors."""
    return checked(request.param)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """Two topics to join."""
    options = {"group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(options, dict.fromkeys(TOPICS, NUMBERS)) as running:
        yield running


def strategy(library: str, assignor: str | object) -> type:
    """A class of its own for one consumer."""
    if library == "aiokafka":
        from groupstorm.clients.adapters import aiokafka

        return aiokafka.assignor_class(assignor)
    from groupstorm.clients.adapters import kafka_python

    return kafka_python.assignor_class(assignor)


def joins(broker: EmbeddedBroker, library: str, assignor: str | object, name: str = "") -> Member:
    return MEMBERS[library](broker.address, name, strategy(library, assignor), TOPICS)


def is_shared_out(members: list[Member], apart: int = 0) -> bool:
    """Whether every partition of both topics has one owner, and loads differ by ``apart`` at most."""
    for member in members:
        assert member.failure is None
    owned = [partition for member in members for partition in member.notes.partitions]
    loads = [len(member.notes.partitions) for member in members]
    every = [(topic, number) for topic in TOPICS for number in range(NUMBERS)]
    return sorted(owned) == every and max(loads) - min(loads) <= apart


def is_joined(members: list[Member]) -> bool:
    """Whether the owner of a partition number owns it in both topics."""
    return all(
        member.notes.partitions == {(topic, number) for topic in TOPICS for number in member.owned}
        for member in members
    )


def protocols(broker: EmbeddedBroker) -> set[str | None]:
    return {
        event.protocol
        for _, event in broker.events
        if isinstance(event, GroupStateChanged) and event.state == "CompletingRebalance"
    }


def test_three_members_join_streams_and_keep_their_numbers(broker: EmbeddedBroker, library: str) -> None:
    with stopping([joins(broker, library, JOIN) for _ in range(3)]) as members:
        wait_until(lambda: is_shared_out(members), "two numbers of both topics each")
        assert is_joined(members)
        assert protocols(broker) == {JOIN}
        had = [member.owned for member in members[1:]]
        members.pop(0).stop()
        wait_until(lambda: is_shared_out(members), "three numbers each")
        assert is_joined(members)
        for member, numbers in zip(members, had, strict=True):
            assert numbers < member.owned, "nobody lost what it had"
        kept = [member.owned for member in members]
        members.append(joins(broker, library, JOIN))
        wait_until(lambda: is_shared_out(members), "two numbers each again")
        assert is_joined(members)
        for member, numbers in zip(members, kept, strict=False):
            assert member.owned < numbers, "the newcomer got one of each and nothing else moved"
    assert broker.closed == []


@pytest.mark.parametrize("first", ["aiokafka", "kafka-python"])
def test_both_libraries_in_one_group(broker: EmbeddedBroker, first: str) -> None:
    """The first member leads: it reads the other library's subscription."""
    others = [checked("aiokafka"), checked("kafka-python")]
    with stopping([joins(broker, first, JOIN)]) as members:
        wait_until(lambda: is_shared_out(members), "all of it")
        members.extend(joins(broker, library, JOIN) for library in others)
        wait_until(lambda: is_shared_out(members), "two numbers of both topics each")
        assert is_joined(members)
        had = members[1].owned
        members.pop().stop()
        wait_until(lambda: is_shared_out(members), "three numbers each")
        assert had < members[1].owned


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "sticky", "two-phase-sticky", "optimal-sticky"])
def test_eager_assignors(broker: EmbeddedBroker, library: str, assignor: str) -> None:
    with stopping([joins(broker, library, assignor)]) as members:
        wait_until(lambda: is_shared_out(members), "the first member owns everything")
        members.append(joins(broker, library, assignor))
        wait_until(lambda: is_shared_out(members), "half of it each")
        assert protocols(broker) == {assignor}
        had = members[1].notes.partitions
        members.append(joins(broker, library, assignor))
        wait_until(lambda: is_shared_out(members), "a third each")
        if "sticky" in assignor:
            assert members[1].notes.partitions < had


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor", ["cooperative-sticky", "constrained-cooperative-sticky", "optimal-sticky/cooperative"]
)
def test_cooperative_assignors_in_kafka_python(broker: EmbeddedBroker, assignor: str) -> None:
    """No member revokes a partition that it keeps, and the first round grants no moving partition."""
    library = checked("kafka-python")
    with stopping([joins(broker, library, assignor, "cooperative")]) as members:
        wait_until(lambda: is_shared_out(members), "the first member owns everything")
        members.append(joins(broker, library, assignor, "cooperative"))
        wait_until(lambda: is_shared_out(members), "half of it each")
        first, second = members
        revoked = [numbers for kind, numbers in first.notes.callbacks if kind == "revoked" and numbers]
        assert len(revoked) == 1, "what moves is given up once"
        given = [numbers for kind, numbers in second.notes.callbacks if kind == "assigned" and numbers]
        assert given == [second.owned]
        assert protocols(broker) == {assignor}


def by_id(topics: dict, subscriptions: dict) -> dict:
    """A custom assignor: partition n to the n-th member."""
    members = sorted(subscriptions)
    return {
        member: [(topic, n) for topic in topics for n in range(place, topics[topic].partitions, len(members))]
        for place, member in enumerate(members)
    }


def test_a_function_as_the_assignor(broker: EmbeddedBroker, library: str) -> None:
    with stopping([joins(broker, library, by_id) for _ in range(2)]) as members:
        wait_until(lambda: is_shared_out(members), "half of it each")
        assert is_joined(members)
        assert protocols(broker) == {"by_id"}


def test_aiokafka_refuses_what_it_cannot_serve() -> None:
    checked("aiokafka")
    with pytest.raises(InputError, match="cooperative assignors need the owned partitions"):
        strategy("aiokafka", "cooperative-sticky")
    with pytest.raises(InputError, match="did you mean range"):
        strategy("aiokafka", "rnge")


def test_one_of_ours_may_be_given_as_an_object(library: str) -> None:
    from groupstorm.assignors import registry

    ours: Assignor = registry.get("sticky", bug_compat=True)
    assert RebalanceProtocol.EAGER in ours.protocols
    assert registry.own(ours) is ours
    assert getattr(strategy(library, ours), "name", None) == "sticky"
