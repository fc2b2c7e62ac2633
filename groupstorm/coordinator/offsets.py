"""Committed offsets: what OffsetCommit stores and OffsetFetch reads.

Kafka: OffsetMetadataManager, and the checks of ClassicGroup.validateOffsetCommit. Offsets do not
expire here (offsets.retention.minutes), and there are no transactional ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.javahash import TimelineHashMap, integer_hash

_Partitions = TimelineHashMap[int, CommittedOffset]
_Topics = TimelineHashMap[str, _Partitions]


class Offsets:
    """group -> topic -> partition -> offset, iterated in Kafka's order."""

    __slots__ = ("_groups", "_overwritten")

    def __init__(self) -> None:
        self._groups: dict[str, _Topics] = {}
        #: (group, topic) -> partition -> the offset that a failed write had replaced, until a write succeeds
        #: (`take_back`).
        self._overwritten: dict[tuple[str, str], dict[int, CommittedOffset]] = {}

    def put(self, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = TimelineHashMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = TimelineHashMap(integer_hash)
            topics.put(topic, partitions)
        partitions.put(partition, committed)

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self._groups.get(group)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def of_group(self, group: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Everything that the group has committed."""
        topics = self._groups.get(group)
        for topic, partitions in topics.items() if topics is not None else ():
            for partition, committed in partitions.items():
                yield topic, partition, committed

    def read_group(self, group: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Everything that the group has committed, as a read at the last committed offset finds it.

        After `take_back` what had been replaced comes twice, until a write succeeds: in Kafka 4.3.1 the
        snapshot keeps it in its delta although the revert has put it back into the table
        (SnapshottableHashTable.executeRevert, HistoricalIterator).
        """
        topics = self._groups.get(group)
        for topic, partitions in topics.items() if topics is not None else ():
            for partition, committed in partitions.items_with(self._overwritten.get((group, topic), {})):
                yield topic, partition, committed

    def take_back(self, group: str, written: Sequence[tuple[str, int, CommittedOffset]]) -> None:
        """These offsets were put, their write failed, and the tables are reverted as Kafka 4.3.1 does it.

        What was put goes; what it had replaced comes back, but behind the other keys of its slot; a table
        that has grown stays grown (SnapshottableHashTable.executeRevert).
        """
        topics = self._groups.get(group)
        if topics is None:
            return  # the group's tables were new and are dropped
        put: dict[str, dict[int, None]] = {}
        for topic, partition, committed in written:
            partitions = topics.get(topic)
            if partitions is None:
                partitions = TimelineHashMap(integer_hash)
                topics.put(topic, partitions)
            before = partitions.get(partition)
            if before is not None and partition not in put.get(topic, ()):
                self._overwritten.setdefault((group, topic), {})[partition] = before
            partitions.put(partition, committed)
            put.setdefault(topic, {})[partition] = None
        for topic, numbers in put.items():
            partitions = topics[topic]
            for partition in numbers:
                partitions.remove(partition)
            for partition, before in self._overwritten.get((group, topic), {}).items():
                partitions.put(partition, before)
            if not partitions:
                topics.remove(topic)

    def written(self) -> None:
        """A write succeeded: the snapshot that the last reverts have left their marks in is gone."""
        self._overwritten.clear()

    def groups_with(self, topic: str) -> list[str]:
        """The groups that have committed offsets of this topic."""
        return [group for group, topics in self._groups.items() if topic in topics]

    def remove_topic(self, group: str, topic: str) -> None:
        topics = self._groups[group]
        topics.remove(topic)
        if not topics:
            del self._groups[group]
