"""A consumer's position in each of its partitions (SubscriptionState). Sans-IO.

Partitions are listed in the order of Kafka's hash tables, because requests have that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.javahash import hash_order, topic_partition_hash

NO_POSITION = -1
"""The offset of a partition whose position is not known yet, and of one without committed offset."""


class Position(NamedTuple):
    """The next offset to process, and the ``leader_epoch`` of the record before it (-1: not known)."""

    offset: int
    leader_epoch: int = -1


class PartitionOffsets(NamedTuple):
    """Positions and committed offsets of partitions, in their order; `NO_POSITION` for a missing one."""

    positions: tuple[int, ...]
    committed: tuple[int, ...]


class Positions:
    """The owned partitions: some have a position, some wait for one, some are stopped.

    ``catch_up`` is called before positions are read: an application that computes them reports `processed`.
    """

    def __init__(self, catch_up: Callable[[Positions], None] = lambda _: None) -> None:
        self._catch_up = catch_up
        self._positions: dict[TopicPartition, Position | None] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._stopped: set[TopicPartition] = set()

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """Own exactly these partitions; known positions stay."""
        self._positions = {partition: self._positions.get(partition) for partition in partitions}
        self._stopped &= self._positions.keys()

    def drop(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Forget these partitions, which were given up or lost. Returns their last offsets."""
        dropped = tuple(partitions)
        offsets = self.offsets_of(dropped)
        for partition in dropped:
            self._positions.pop(partition, None)
            self._committed.pop(partition, None)
            self._stopped.discard(partition)
        return offsets

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Process nothing more of these partitions (markPendingRevocation)."""
        self._catch_up(self)
        self._stopped.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Process these again."""
        self._stopped.difference_update(partitions)

    def move_to(self, partition: TopicPartition, position: Position) -> None:
        """Continue at ``position``, if the partition is still owned."""
        if partition in self._positions:
            self._positions[partition] = position

    def begin_at(self, partition: TopicPartition, position: Position) -> None:
        """Begin at ``position``, unless the partition has a position meanwhile."""
        if self.position(partition) is None:
            self.move_to(partition, position)

    def position(self, partition: TopicPartition) -> Position | None:
        """The position; None if the partition is not owned or the position is not known yet."""
        return self._positions.get(partition)

    def readable(self) -> list[TopicPartition]:
        """The partitions that have a position and are not stopped."""
        return [
            partition
            for partition, position in self._positions.items()
            if position is not None and partition not in self._stopped
        ]

    def is_stopped(self, partition: TopicPartition) -> bool:
        return partition in self._stopped

    def committed(self, partition: TopicPartition, offset: int) -> None:
        if partition in self._positions:
            self._committed[partition] = offset

    def offsets_of(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        self._catch_up(self)
        asked = tuple(partitions)
        positions = (self._positions.get(partition) for partition in asked)
        return PartitionOffsets(
            tuple(NO_POSITION if position is None else position.offset for position in positions),
            tuple(self._committed.get(partition, NO_POSITION) for partition in asked),
        )

    def missing(self) -> list[TopicPartition]:
        """Partitions without a position, in the order of a HashSet (initializingPartitions)."""
        return _hash_order(partition for partition, position in self._positions.items() if position is None)

    def processed(self, partition: TopicPartition, position: Position) -> bool:
        """The application has processed up to ``position``. False if it may not process the partition."""
        if self._positions.get(partition) is None or partition in self._stopped:
            return False
        self._positions[partition] = position
        return True

    def to_commit(self) -> dict[str, dict[int, CommittedOffset]]:
        """All known positions (allConsumed): topic -> partition -> offset."""
        self._catch_up(self)
        offsets: dict[str, dict[int, CommittedOffset]] = {}
        for partition in _hash_order(self._positions):
            position = self._positions[partition]
            if position is not None:
                committed = CommittedOffset(position.offset, position.leader_epoch)
                offsets.setdefault(partition.topic, {})[partition.partition] = committed
        return {topic: offsets[topic] for topic in hash_order(offsets)}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Topic -> partitions, topics in the order of a HashMap (Collectors.groupingBy)."""
    grouped: dict[str, tuple[int, ...]] = {}
    for topic, partition in partitions:
        grouped[topic] = (*grouped.get(topic, ()), partition)
    return {topic: grouped[topic] for topic in hash_order(grouped)}


def _hash_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return hash_order(partitions, topic_partition_hash)
