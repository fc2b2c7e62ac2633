"""A group before its assignment: its members numbered, its topics by id, its targets in order.

Hash tables of the broker are walked in their order (`groupstorm.javahash`), or sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from groupstorm.assignors.contract import MapOrder
from groupstorm.assignors.server.contract import MemberSpec, Target, TopicDescription
from groupstorm.javahash import JavaHashMap, hash_order, integer_hash, uuid_hash

_SIGN_BITS = 1 << 127 | 1 << 63


def topic_order(topic: UUID) -> int:
    """A sort key that orders as ``Uuid.compareTo`` does: by two signed longs."""
    return topic.int ^ _SIGN_BITS


@dataclass(frozen=True)
class ServerGroup:
    """The question to an assignor (GroupSpec and SubscribedTopicDescriber).

    ``ids`` are the members in the order in which they count; ``specs`` are their subscriptions and targets.
    ``subscriptions_are_equal``: as the broker has counted them (SubscriptionType), None if it has not.
    """

    topics: Mapping[str, TopicDescription]
    ids: Sequence[str]
    specs: Sequence[MemberSpec]
    order: MapOrder
    subscriptions_are_equal: bool | None = None

    @classmethod
    def of(
        cls,
        topics: Mapping[str, TopicDescription],
        members: Mapping[str, MemberSpec],
        order: MapOrder,
        subscriptions_are_equal: bool | None = None,
    ) -> ServerGroup:
        return cls(topics, list(members), list(members.values()), order, subscriptions_are_equal)

    @cached_property
    def partitions(self) -> dict[UUID, int]:
        """How many partitions each topic has."""
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
            return sorted(self.subscribed[member], key=topic_order)
        listed = dict.fromkeys(self.specs[member].topics)
        return [self.topics[name].id for name in listed if name in self.topics]

    def subscribed_as_set(self, member: int) -> list[UUID]:
        """The same as a HashSet, whose size counts all names that the member lists."""
        topics = self.subscribed_in_order(member)
        if self.order is MapOrder.SORTED:
            return topics
        room = max(int(len(set(self.specs[member].topics)) / 0.75) + 1, 16)
        return hash_order(topics, uuid_hash, initial_capacity=room)

    def emptied(self) -> list[Target]:
        """Targets of members that get nothing."""
        return [spec.target if not spec.target else {} for spec in self.specs]

    def target(self, member: int) -> dict[UUID, list[int]]:
        """A member's target in the order of a HashMap and HashSets that are filled from its record."""
        target = self.specs[member].target
        if self.order is MapOrder.SORTED:
            return {topic: sorted(target[topic]) for topic in sorted(target, key=topic_order)}
        return {
            topic: JavaHashMap.set_of(target[topic], integer_hash).keys()
            for topic in hash_order(target, uuid_hash)
        }


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets hold the same partitions, whatever their order."""
    return one.keys() == other.keys() and all(set(one[topic]) == set(other[topic]) for topic in one)
