"""Committed offsets: what OffsetCommit stores and OffsetFetch reads.

Kafka: OffsetMetadataManager, and the checks of ClassicGroup.validateOffsetCommit. Offsets do not
expire here (offsets.retention.minutes), and there are no transactional ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.javahash import TimelineHashMap, integer_hash

_Partitions = TimelineHashMap[int, CommittedOffset]
_Topics = TimelineHashMap[str, _Partitions]


class Offsets:
    """group -> topic -> partition -> offset, iterated in Kafka's order."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, _Topics] = {}

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

    def groups_with(self, topic: str) -> list[str]:
        """The groups that have committed offsets of this topic."""
        return [group for group, topics in self._groups.items() if topic in topics]

    def remove_topic(self, group: str, topic: str) -> None:
        topics = self._groups[group]
        topics.remove(topic)
        if not topics:
            del self._groups[group]
