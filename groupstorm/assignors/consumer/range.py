"""Kafka's RangeAssignor: each topic on its own, a contiguous range of partitions to each member.

With racks (KIP-881) a first pass hands out what a member can read within its rack, without
touching the sizes of the ranges; topics with equal subscribers and equal numbers of partitions
stay co-partitioned even then (KAFKA-14891).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from groupstorm.assignors.consumer.members import in_order
from groupstorm.assignors.consumer.racks import use_racks
from groupstorm.assignors.contract import (
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition, java_key


@dataclass(frozen=True)
class RangeAssignor:
    """Per topic: partitions in order, subscribers in order, the first ones get one partition more.

    The order of topics within a member's list is that of Java's hash table; once racks have played
    a part, lists are sorted by topic and partition.
    """

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str] = "range"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    needs_equal_subscriptions: ClassVar[bool] = False

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """Nothing: the next assignment does not depend on the last one."""
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign as RangeAssignor.assignPartitions does."""
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        subscribers: dict[str, list[str]] = {topic: [] for topic in wanted}
        for member in in_order(subscriptions, subscriptions):
            for topic in dict.fromkeys(subscriptions[member].topics):
                if topic in subscribers:
                    subscribers[topic].append(member)
        racks = {member: sub.rack for member, sub in subscriptions.items() if sub.rack}
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        states = [
            _TopicState(topic, wanted[topic], subscribers[topic], racks, assignment) for topic in wanted
        ]
        racks_matter = any(state.racks_matter for state in states)
        if racks_matter:
            _assign_within_racks(states)
        for state in states:
            state.assign_ranges()
        if racks_matter:
            for partitions in assignment.values():
                partitions.sort(key=lambda tp: (java_key(tp.topic), tp.partition))
        return AssignmentResult(assignment)


class _TopicState:
    """What is left to assign of one topic, and how many more each subscriber may get."""

    def __init__(
        self,
        topic: str,
        metadata: TopicMetadata,
        subscribers: list[str],
        racks: Mapping[str, str],
        assignment: Mapping[str, list[TopicPartition]],
    ) -> None:
        self.topic = topic
        self.partitions = metadata.partitions
        self.subscribers = subscribers
        self.member_racks = {member: racks[member] for member in subscribers if member in racks}
        self.partition_racks = metadata.racks or (frozenset(),) * metadata.partitions
        self.racks_matter = use_racks(self.member_racks.values(), self.partition_racks)
        self._assignment = assignment
        self._left = dict.fromkeys(range(metadata.partitions))
        self._count = dict.fromkeys(subscribers, 0)
        self._quota, self._extras = divmod(metadata.partitions, len(subscribers))

    def may_get(self, member: str) -> int:
        """How many partitions more: the quota, and one while there are extras left."""
        return max(0, self._quota + (self._extras > 0) - self._count[member])

    def in_rack(self, member: str, partition: int) -> bool:
        """A member without a rack is at home everywhere."""
        return member not in self.member_racks or self.member_racks[member] in self.partition_racks[partition]

    def give(self, member: str, partitions: Sequence[int]) -> None:
        self._assignment[member].extend([TopicPartition(self.topic, partition) for partition in partitions])
        self._count[member] += len(partitions)
        if self._count[member] > self._quota:
            self._extras -= 1
        for partition in partitions:
            del self._left[partition]

    def assign_ranges(self) -> None:
        """Give every subscriber in turn what it may get, from the front of what is left."""
        left = iter(list(self._left))
        for member in self.subscribers:
            mine = list(islice(left, self.may_get(member)))
            if mine:
                self.give(member, mine)

    def assign_ranges_within_racks(self) -> None:
        """The same, but every subscriber gets only what is in its rack."""
        for member in self.subscribers:
            at_home = (partition for partition in self._left if self.in_rack(member, partition))
            mine = list(islice(at_home, self.may_get(member)))
            if mine:
                self.give(member, mine)


def _assign_within_racks(states: Iterable[_TopicState]) -> None:
    """The pass within racks: co-partitioned topics together, others where racks matter."""
    alike: defaultdict[tuple[frozenset[tuple[str, str | None]], int], list[_TopicState]] = defaultdict(list)
    for state in states:
        members = frozenset((member, state.member_racks.get(member)) for member in state.subscribers)
        known_racks = state.partitions if state.member_racks else 0
        alike[members, known_racks].append(state)
    for (_, partitions), group in alike.items():
        if len(group) > 1:
            _assign_co_partitioned(group, partitions)
        elif group[0].racks_matter:
            group[0].assign_ranges_within_racks()


def _assign_co_partitioned(group: Sequence[_TopicState], partitions: int) -> None:
    """Partition i of all topics to the first member that is in the rack of all of them and has room."""
    remaining = list(group[0].subscribers)
    for partition in range(partitions):
        for member in remaining:
            if all(state.in_rack(member, partition) and state.may_get(member) > 0 for state in group):
                break
        else:
            continue
        for state in group:
            state.give(member, [partition])
        if not any(state.may_get(member) > 0 for state in group):
            remaining.remove(member)
