"""Which consumers a scenario's processes are: their clients, assignors and incarnations."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.randomness import Stream
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from tests.storms.storms_in_memory import START, MemorySink, scenario
from tests.storms.transcript import WORLD


def consumers(**settings: Any) -> PlainConsumers:
    resolved = scenario([START], **WORLD | settings).resolve(None, 1, {})
    return PlainConsumers(Environment(resolved, MemorySink()), chosen_assignors(resolved))


def offered(process: Any) -> list[str]:
    """The assignors in the JoinGroup of a process."""
    return [name for name, _ in process.membership._join_request().protocols]


@pytest.mark.parametrize(
    ("protocol", "kind"), [("classic", VirtualConsumer), ("consumer", ConsumerGroupProcess)]
)
def test_the_group_protocol_says_what_kind_of_process_a_consumer_is(protocol: str, kind: type) -> None:
    found = consumers(**{"group.protocol": protocol})
    process = found.new(0, "member-0")
    assert type(process) is kind
    assert found.running == {"member-0": process}


def test_a_consumer_takes_its_name_over_from_an_earlier_one() -> None:
    found = consumers()
    first, other, second = (found.new(at, name) for at, name in ((0, "a"), (1, "b"), (0, "a")))
    assert found.running == {"a": second, "b": other}
    assert first is not second


def test_the_incarnations_of_a_name_are_numbered_for_what_they_draw() -> None:
    found = consumers()
    names = ("a", "a", "a", "b")
    processes: list[Any] = [found.new(0, name) for name in names]
    expected = [
        Stream(1, "application", name, number) for name, number in zip(names, (1, 2, 3, 1), strict=True)
    ]
    assert [process.draws.draw(0) for process in processes] == [stream.at(0) for stream in expected]


def test_a_process_offers_all_assignors_in_their_order() -> None:
    found = consumers(**{"partition.assignment.strategy": ["roundrobin", "range"]})
    assert offered(found.new(0, "a")) == ["roundrobin", "range"]


def test_of_several_clients_each_offers_its_own_assignors() -> None:
    """Java's are range and cooperative-sticky, librdkafka's are range and roundrobin."""
    settings = {name: value for name, value in WORLD.items() if name != "partition.assignment.strategy"}
    resolved = scenario([START], **settings, client_profile=["java", "librdkafka"]).resolve(None, 1, {})
    found = PlainConsumers(Environment(resolved, MemorySink()), chosen_assignors(resolved))
    assert [offered(found.new(at, f"member-{at}")) for at in (0, 1)] == [
        ["range", "cooperative-sticky"],
        ["range", "roundrobin"],
    ]


def test_nothing_runs_in_a_plain_consumer_that_the_group_does_not_know_of() -> None:
    found = consumers()
    assert found.settled
    assert not found.follow_ups
    assert found.give_up_follow_ups() is False
