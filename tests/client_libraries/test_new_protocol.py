"""confluent-kafka with `group.protocol=consumer` (KIP-848): alone, by regular expression, and in a live group
of the classic protocol that it upgrades."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import TOPIC

DEADLINE_S = 30.0
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


def test_a_member_of_the_new_protocol_upgrades_a_live_group_and_leaves_it_as_it_was(
    broker: EmbeddedBroker,
) -> None:
    checked("confluent-kafka")
    classic = {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": "300"}
    old = _consumer(broker, TOPIC, **classic)
    _poll_until(_is_shared, [old])
    new = _consumer(broker, TOPIC, **{"group.protocol": "consumer"})
    _poll_until(_is_shared, [old, new])
    new.close()
    _poll_until(_is_shared, [old])
    old.close()
