"""Kafka's RoundRobinAssignor: partitions in turn, over members in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupstorm.assignors.consumer.members import in_order
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition, java_sorted


@dataclass(frozen=True)
class RoundRobinAssignor:
    """All subscribed topics sorted, partitions ascending, one to each member in turn.

    A member that does not subscribe to the topic is passed over; the turn does not start anew with
    a topic, so unequal subscriptions can load a member heavily. Racks play no part.
    """

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str] = "roundrobin"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    needs_equal_subscriptions: ClassVar[bool] = False

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """Nothing: the next assignment does not depend on the last one."""
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign as RoundRobinAssignor.assign does; no members get nothing, where Kafka throws."""
        if not subscriptions and self.bug_compat:
            raise AssignmentRefused(
                "IllegalArgumentException", "CircularIterator can only be used on non-empty lists"
            )
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        circle = in_order(subscriptions, subscriptions)
        subscribed = [frozenset(subscriptions[member].topics) for member in circle]
        assigned: list[list[TopicPartition]] = [[] for _ in circle]
        turn = 0
        for topic in java_sorted(wanted):
            places = [place for place, own in enumerate(subscribed) if topic in own]
            cursor = next((at for at, place in enumerate(places) if place >= turn), 0)
            for partition in range(wanted[topic].partitions):
                place = places[(cursor + partition) % len(places)]
                assigned[place].append(TopicPartition(topic, partition))
                turn = (place + 1) % len(circle)
        by_member = dict(zip(circle, assigned, strict=True))
        return AssignmentResult({member: by_member[member] for member in subscriptions})
