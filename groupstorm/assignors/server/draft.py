"""A member's target while an assignor changes it."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.contract import MapOrder
from groupstorm.assignors.server.contract import Target
from groupstorm.assignors.server.group import ServerGroup, is_same, topic_order
from groupstorm.javahash import JavaHashMap, integer_hash, uuid_hash


class Draft:
    """A copy of a target, as Kafka's builders make one before they change it (deepCopyAssignment).

    It is a HashMap of HashSets, because its order of topics and partitions becomes that of the record, and
    so of the next assignment's tables.
    """

    __slots__ = ("_before", "_order", "_table")

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

    def remove(self, topic: UUID, partition: int) -> None:
        """Remove a partition, and the topic after its last one."""
        partitions = self._table[topic]
        partitions.remove(partition)
        if not partitions:
            self._table.remove(topic)

    def remove_topic(self, topic: UUID) -> None:
        self._table.remove(topic)

    def finished(self) -> Target:
        """The new target; the old mapping itself if nothing changed, because Kafka then writes no record."""
        after = {topic: partitions.keys() for topic, partitions in self._table.items()}
        if is_same(self._before, after):
            return self._before
        if self._order is MapOrder.SORTED:
            return {topic: sorted(after[topic]) for topic in sorted(after, key=topic_order)}
        return after
