"""Kafka's RoundRobinAssignor: partitions in turn, over members in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.members import in_order, subscribers_in_order
from groupstorm.assignors.consumer.memoryless import MemorylessAssignor
from groupstorm.assignors.contract import (
    AssignmentRefused,
    TopicMetadata,
)


@dataclass(frozen=True)
class RoundRobinAssignor(MemorylessAssignor):
    """All subscribed topics sorted, partitions ascending, one to each member in turn.

    A member that does not subscribe to the topic is skipped. The turn goes on from topic to topic, so
    unequal subscriptions can load a member heavily. Racks play no part.
    """

    name: ClassVar[str] = "roundrobin"

    def assign_indexed(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """Without members the answer is empty, though Kafka throws."""
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
