"""The broker's `range` (org.apache.kafka.coordinator.group.assignor.RangeAssignor).

Of each topic every subscriber gets one run of partitions: P // N, the first P % N of them one more.
Static members come first, by instance, then the others by id. It reads no targets, so it never
fails. Unlike the consumers' `range` it knows no racks.
"""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.contract import MapOrder
from groupstorm.assignors.server.contract import Target
from groupstorm.assignors.server.group import ServerGroup, is_same, topic_order
from groupstorm.assignors.userdata import java_key
from groupstorm.javahash import hash_order, uuid_hash


def assign_ranges(group: ServerGroup) -> list[Target]:
    """New targets, one for each member of a group that has members."""
    members = sorted(range(len(group.ids)), key=lambda member: _rank(group, member))
    ranges: list[dict[UUID, range]] = [{} for _ in members]
    for topic, sharing in _subscribers(group, members).items():
        floor, extras = divmod(group.partitions[topic], len(sharing))
        start = 0
        for place, member in enumerate(sharing):
            end = start + floor + (place < extras)
            if start < end:
                ranges[member][topic] = range(start, end)
            start = end
    return _Listing(group, members[0]).targets(ranges)


def _subscribers(group: ServerGroup, members: list[int]) -> dict[UUID, list[int]]:
    """The members that share each topic. If subscriptions are called equal, that of the first member counts
    for all, whatever the others subscribe to."""
    if group.is_homogeneous:
        return dict.fromkeys(group.subscribed[members[0]], members)
    subscribers: dict[UUID, list[int]] = {}
    for member in members:
        for topic in group.subscribed[member]:
            subscribers.setdefault(topic, []).append(member)
    return subscribers


def _rank(group: ServerGroup, member: int) -> tuple[bool, bytes]:
    instance = group.specs[member].instance
    return instance is None, java_key(group.ids[member] if instance is None else instance)


class _Listing:
    """Lists topics as Kafka's HashMaps do, which are filled in the order of subscriptions.

    With equal subscriptions that of the first member counts for all members.
    """

    def __init__(self, group: ServerGroup, first: int) -> None:
        self._group = group
        self._everybodys = self._filling(first) if group.is_homogeneous else None

    def _filling(self, member: int) -> tuple[list[UUID], int]:
        """The topics in the order in which a table is filled, and the table's initial capacity."""
        topics = self._group.subscribed_in_order(member)
        names = set(self._group.specs[member].topics)
        expected = len(topics if self._group.is_homogeneous else names)
        return topics, int(expected / 0.75 + 1)

    def targets(self, ranges: list[dict[UUID, range]]) -> list[Target]:
        found: list[Target] = []
        for member, given in enumerate(ranges):
            before = self._group.specs[member].target
            found.append(before if is_same(before, given) else self._listed(member, given))
        return found

    def _listed(self, member: int, given: dict[UUID, range]) -> Target:
        if self._group.order is MapOrder.SORTED:
            return {topic: list(given[topic]) for topic in sorted(given, key=topic_order)}
        topics, capacity = self._everybodys or self._filling(member)
        listed = hash_order(
            (topic for topic in topics if topic in given), uuid_hash, initial_capacity=capacity
        )
        return {topic: list(given[topic]) for topic in listed}
