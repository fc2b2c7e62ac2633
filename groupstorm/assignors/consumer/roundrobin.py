"""Kafka's RoundRobinAssignor: partitions in turn, over members in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.members import by_name, claim_nothing, in_order, subscribers_in_order
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition


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
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        index, claims = PartitionIndex(wanted), claim_nothing(subscriptions)
        return by_name(index, claims, self.plan(index, wanted, claims, range(len(claims))))

    def plan(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """The same as numbers, per member in the order of ``claims``; ``visit`` does not matter."""
        if not claims and self.bug_compat:
            raise AssignmentRefused(
                "IllegalArgumentException", "CircularIterator can only be used on non-empty lists"
            )
        place_of = {member: place for place, member in enumerate(in_order(claims))}
        subscribers = subscribers_in_order(index.topics, claims)
        assigned: list[list[int]] = [[] for _ in claims]
        turn = 0
        # with the same subscribers the turn goes on from topic to topic
        for members, alike in groupby(index.topics, key=subscribers.__getitem__):
            numbers = [index.number_of_topic[topic] for topic in alike]
            partitions = range(index.real(numbers[0]).start, index.real(numbers[-1]).stop)
            start = next((at for at, member in enumerate(members) if place_of[member] >= turn), 0)
            in_turn = members[start:] + members[:start]
            for nth, member in enumerate(in_turn[: len(partitions)]):
                assigned[member] += partitions[nth :: len(members)]
            turn = place_of[in_turn[(len(partitions) - 1) % len(members)]] + 1
        return assigned
