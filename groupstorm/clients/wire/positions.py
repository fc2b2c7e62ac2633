"""Where a consumer stands on each of its partitions (SubscriptionState). Sans-IO.

Its answers are in the order of Kafka's hash tables, because requests carry them in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.javahash import hash_order, topic_partition_hash

NO_POSITION = -1
"""Said of a partition whose position has not been looked up yet, and of one without committed offset."""


class Position(NamedTuple):
    """The next offset to process; ``leader_epoch`` of the record before it, -1 where not known."""

    offset: int
    leader_epoch: int = -1


class Stood(NamedTuple):
    """Positions and committed offsets of partitions, in their order; `NO_POSITION` where there is none."""

    positions: tuple[int, ...]
    committed: tuple[int, ...]


class Positions:
    """The owned partitions: some with a position, some waiting for one, some stopped.

    ``catch_up`` is called before positions are asked for: whoever computes them says then what was
    `processed`.
    """

    def __init__(self, catch_up: Callable[[Positions], None] = lambda _: None) -> None:
        self._catch_up = catch_up
        self._positions: dict[TopicPartition, Position | None] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._stopped: set[TopicPartition] = set()

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """These and no others are owned from now on; positions that are known stay."""
        self._positions = {partition: self._positions.get(partition) for partition in partitions}
        self._stopped &= self._positions.keys()

    def drop(self, partitions: Iterable[TopicPartition]) -> Stood:
        """Given up or lost: where they stood."""
        dropped = tuple(partitions)
        stood = self.stood(dropped)
        for partition in dropped:
            self._positions.pop(partition, None)
            self._committed.pop(partition, None)
            self._stopped.discard(partition)
        return stood

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Nothing more of these is processed (markPendingRevocation)."""
        self._catch_up(self)
        self._stopped.update(partitions)

    def found(self, partition: TopicPartition, position: Position) -> None:
        """Where to begin, or go on; of no consequence if the partition is owned no more."""
        if partition in self._positions:
            self._positions[partition] = position

    def begin(self, partition: TopicPartition, position: Position) -> None:
        """Where to begin, as it was looked up: of no consequence if there is a position meanwhile."""
        if self.position(partition) is None:
            self.found(partition, position)

    def position(self, partition: TopicPartition) -> Position | None:
        """None: not owned, or not known yet."""
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

    def stood(self, partitions: Iterable[TopicPartition]) -> Stood:
        self._catch_up(self)
        asked = tuple(partitions)
        positions = (self._positions.get(partition) for partition in asked)
        return Stood(
            tuple(NO_POSITION if position is None else position.offset for position in positions),
            tuple(self._committed.get(partition, NO_POSITION) for partition in asked),
        )

    def missing(self) -> list[TopicPartition]:
        """Partitions without a position, in the order of a HashSet (initializingPartitions)."""
        return _hash_order(partition for partition, position in self._positions.items() if position is None)

    def processed(self, partition: TopicPartition, position: Position) -> bool:
        """The application has got so far; False if the partition is not its to process (any more)."""
        if self._positions.get(partition) is None or partition in self._stopped:
            return False
        self._positions[partition] = position
        return True

    def to_commit(self) -> dict[str, dict[int, CommittedOffset]]:
        """Every position that is known (allConsumed): topic -> partition -> offset."""
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
