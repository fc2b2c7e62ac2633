"""A group before and during its assignment: its topics by id, its members numbered, their targets in order.

Topics are identified by their ids, because a topic that is created anew is another topic. Hash tables of the
broker are walked in their order (`groupstorm.javahash`), or sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.contract import MapOrder, uuid_order
from groupstorm.javahash import JavaHashMap, hash_order, integer_hash, uuid_hash
from groupstorm.turns import Turns

#: A member's target assignment: topic id -> partitions, each once, in the order of the record
#: ConsumerGroupTargetAssignmentMemberValue, in which Kafka fills its hash tables.
Target = Mapping[UUID, Sequence[int]]


class TopicDescription(NamedTuple):
    id: UUID
    partitions: int


class MemberSpec(NamedTuple):
    """A member as an assignor sees it (MemberSubscriptionAndAssignmentImpl).

    ``topics`` are the names to which it subscribes, in the order in which its set of topic ids yields them
    (TopicIds: in a broker that of a HashSet of these names). Nonexistent ones count for the comparison of
    subscriptions and for the size of tables. ``target`` is its last target. ``instance`` is its
    group.instance.id.
    """

    topics: Sequence[str]
    target: Target
    instance: str | None = None


@dataclass(frozen=True)
class ServerGroup:
    """The question to an assignor (GroupSpec and SubscribedTopicDescriber), members in their order."""

    topics: Mapping[str, TopicDescription]
    ids: Sequence[str]
    specs: Sequence[MemberSpec]
    order: MapOrder
    subscriptions_are_equal: bool | None = None

    @cached_property
    def partitions(self) -> dict[UUID, int]:
        return {topic.id: topic.partitions for topic in self.topics.values()}

    @cached_property
    def subscribed(self) -> list[frozenset[UUID]]:
        """The existing topics of each member."""
        known: dict[tuple[str, ...], frozenset[UUID]] = {}
        found = []
        for spec in self.specs:
            listed = tuple(spec.topics)
            if listed not in known:
                known[listed] = frozenset(self.topics[name].id for name in listed if name in self.topics)
            found.append(known[listed])
        return found

    @cached_property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same names, existing or not (ModernGroup.subscriptionType)."""
        if self.subscriptions_are_equal is not None:
            return self.subscriptions_are_equal
        return len({frozenset(listed) for listed in {tuple(spec.topics) for spec in self.specs}}) == 1

    def subscribed_in_order(self, member: int) -> list[UUID]:
        """The existing topics of a member in the order in which it lists them."""
        if self.order is MapOrder.SORTED:
            return sorted(self.subscribed[member], key=uuid_order)
        listed = dict.fromkeys(self.specs[member].topics)
        return [self.topics[name].id for name in listed if name in self.topics]

    def subscribed_as_set(self, member: int) -> list[UUID]:
        """Return these topics in the order of a HashSet, with room for all names that the member lists."""
        topics = self.subscribed_in_order(member)
        if self.order is MapOrder.SORTED:
            return topics
        room = max(int(len(set(self.specs[member].topics)) / 0.75) + 1, 16)
        return hash_order(topics, uuid_hash, initial_capacity=room)

    def emptied(self) -> list[Target]:
        return [spec.target if not spec.target else {} for spec in self.specs]

    def target(self, member: int) -> dict[UUID, list[int]]:
        """A member's target in the order of a HashMap and HashSets that are filled from its record."""
        target = self.specs[member].target
        if self.order is MapOrder.SORTED:
            return {topic: sorted(target[topic]) for topic in sorted(target, key=uuid_order)}
        return {
            topic: JavaHashMap.set_of(target[topic], integer_hash).keys()
            for topic in hash_order(target, uuid_hash)
        }


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets hold the same partitions, whatever their order."""
    return one.keys() == other.keys() and all(set(one[topic]) == set(other[topic]) for topic in one)


class Drafts(dict[int, "Draft"]):
    """The targets of a group while an assignor changes them: a member gets a draft at its first change."""

    def __init__(self, group: ServerGroup) -> None:
        super().__init__()
        self._group = group

    def __missing__(self, member: int) -> Draft:
        draft = self[member] = Draft(self._group, member)
        return draft

    def targets(self) -> Turns[list[Target]]:
        targets = []
        for member, spec in enumerate(self._group.specs):
            targets.append(self[member].finished() if member in self else spec.target)
            yield len(targets[-1])
        return targets


class Draft:
    """A copy of a target that is changed (deepCopyAssignment); its order becomes that of the record."""

    def __init__(self, group: ServerGroup, member: int) -> None:
        self._before = group.specs[member].target
        self._order = group.order
        target = group.target(member)
        self._table: JavaHashMap[UUID, JavaHashMap[int, None]] = JavaHashMap(
            uuid_hash, initial_capacity=len(target)
        )
        for topic, partitions in target.items():
            self._table.put(topic, JavaHashMap.set_of(partitions, integer_hash))

    def add(self, topic: UUID, partition: int, room: int | None = None) -> None:
        """Give a partition; ``room`` is the capacity of a new set for its topic (None: Java's default)."""
        partitions = self._table.compute_if_absent(
            topic, lambda: JavaHashMap(integer_hash, initial_capacity=room)
        )
        partitions.put(partition, None)

    def remove(self, topic: UUID, partition: int, *, keeps_topic: bool = False) -> None:
        """Remove a partition, and the topic after its last one unless ``keeps_topic``."""
        partitions = self._table[topic]
        partitions.remove(partition)
        if not partitions and not keeps_topic:
            self._table.remove(topic)

    def remove_topic(self, topic: UUID) -> None:
        self._table.remove(topic)

    def finished(self) -> Target:
        """The new target; the old mapping itself if nothing changed, because Kafka then writes no record."""
        after = {topic: partitions.keys() for topic, partitions in self._table.items()}
        if is_same(self._before, after):
            return self._before
        if self._order is MapOrder.SORTED:
            return {topic: sorted(after[topic]) for topic in sorted(after, key=uuid_order)}
        return after
