"""The partitions that have moved between members, in one general sticky assignment.

The sticky assignor does not move one partition of a topic from A to B and another one from B to A: it sends
the first one back instead (AbstractStickyAssignor.PartitionMovements).
"""

from __future__ import annotations

from collections.abc import Hashable

from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.contract import MapOrder
from groupstorm.javahash import JavaHashMap, string_hash

_Pair = tuple[int, int]


class PartitionMovements:
    """Movements as (from, to) pairs of members, per topic and per partition."""

    def __init__(self, index: PartitionIndex, order: MapOrder) -> None:
        self._index = index
        self._topic_hashes = [string_hash(topic) for topic in index.topics]
        self._order = order
        self._moved: dict[int, _Pair] = {}
        self._by_topic: dict[int, dict[_Pair, JavaHashMap[int, None]]] = {}

    def _java_hash(self, partition: int) -> int:
        """TopicPartition.hashCode."""
        index = self._index
        return 31 * (31 + index.partition_of[partition]) + self._topic_hashes[index.topic_of[partition]]

    def state(self) -> Hashable:
        return frozenset(self._moved.items())

    def better_choice(self, partition: int, source: int, target: int) -> int:
        """The partition to move from ``source`` to ``target`` instead; may be the same one."""
        pairs = self._by_topic.get(self._index.topic_of[partition])
        if pairs is None:
            return partition
        if partition in self._moved:
            source = self._moved[partition][0]
        moved_back = pairs.get((target, source))
        if moved_back is None:
            return partition
        return moved_back.first() if self._order is MapOrder.JAVA_HASH else min(moved_back.keys())

    def record(self, partition: int, source: int, target: int) -> None:
        """Note a move. Moves of one partition add up; a move back home cancels them."""
        earlier = self._forget(partition)
        if earlier is None:
            self._remember(partition, (source, target))
        elif earlier[0] != target:
            self._remember(partition, (earlier[0], target))

    def _remember(self, partition: int, pair: _Pair) -> None:
        self._moved[partition] = pair
        pairs = self._by_topic.setdefault(self._index.topic_of[partition], {})
        if pair not in pairs:
            pairs[pair] = JavaHashMap(self._java_hash)
        pairs[pair].put(partition, None)

    def _forget(self, partition: int) -> _Pair | None:
        pair = self._moved.pop(partition, None)
        if pair is None:
            return None
        topic = self._index.topic_of[partition]
        pairs = self._by_topic[topic]
        moved = pairs[pair]
        moved.remove(partition)
        if not moved:
            del pairs[pair]
            if not pairs:
                del self._by_topic[topic]
        return pair
