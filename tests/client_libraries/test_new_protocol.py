"""confluent-kafka with `group.protocol=consumer` (KIP-848): alone, by regular expression, in one group with
`CooperativeConsumer`; and members of the classic protocol whose live group is upgraded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import stopping
from tests.client_libraries.members import GROUP, MEMBERS, TOPIC, Member
from tests.client_libraries.our_member import OurNewMember
from tests.waiting import wait_until

DEADLINE_S = 60.0
#: Heartbeats as often as it takes for a quick test.
_OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(_OPTIONS, {TOPIC: 4}) as running:
        yield running


def _consumer(broker: EmbeddedBroker, topics: str, **options: str) -> Any:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **options})
    consumer.subscribe([topics])
    return consumer


def _poll_until(condition: Callable[[list[list[int]]], bool], consumers: list[Any]) -> list[list[int]]:
    """Poll until the consumers' partitions are as the condition says."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
        owned = [sorted(one.partition for one in consumer.assignment()) for consumer in consumers]
        if condition(owned):
            return owned
        assert time.monotonic() < deadline, owned


def _is_shared(owned: list[list[int]]) -> bool:
    return sorted(number for one in owned for number in one) == [0, 1, 2, 3] and all(owned)


def test_two_members_share_the_partitions_by_name_and_by_regular_expression(broker: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    first = _consumer(broker, TOPIC, **{"group.protocol": "consumer"})
    _poll_until(_is_shared, [first])
    second = _consumer(broker, f"^{TOPIC}.*", **{"group.protocol": "consumer"})
    _poll_until(_is_shared, [first, second])
    first.close()
    _poll_until(_is_shared, [second])
    second.close()


def test_librdkafka_and_our_consumer_share_and_hand_over(broker: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    with stopping([OurNewMember(broker.address)]) as ours:
        wait_until(lambda: ours[0].owned == {0, 1, 2, 3}, "all four are ours")
        theirs = _consumer(broker, TOPIC, **{"group.protocol": "consumer", "group.id": GROUP})
        [taken] = _poll_until(lambda owned: len(owned[0]) == 2, [theirs])
        wait_until(lambda: ours[0].owned == {0, 1, 2, 3} - set(taken), "the other two are ours")
        changes = [call for call in ours[0].notes.callbacks[1:] if call[1]]
        assert changes == [("revoked", frozenset(taken))]
        ours.pop().stop()
        _poll_until(_is_shared, [theirs])
        theirs.close()


def test_members_of_the_classic_protocol_of_every_library_and_our_new_one(
    broker: EmbeddedBroker, library: str
) -> None:
    """A live group of the other library is upgraded by ours, and is classic again when ours has left."""
    theirs = MEMBERS[library](broker.address, "range")
    with stopping([theirs]) as members:
        wait_until(lambda: theirs.owned == {0, 1, 2, 3}, "all four are theirs")
        members.append(OurNewMember(broker.address))
        wait_until(lambda: _split(members), "two each")
        members.pop().stop()
        wait_until(lambda: theirs.owned == {0, 1, 2, 3}, "all four are theirs again")


def _split(members: Sequence[Member]) -> bool:
    owned = [number for member in members for number in member.owned]
    return sorted(owned) == [0, 1, 2, 3] and all(len(member.owned) == 2 for member in members)
