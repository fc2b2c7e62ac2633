"""Committed offsets: OffsetCommit stores them, OffsetFetch reads them.

Kafka: OffsetMetadataManager's tables. Offsets of open transactions wait apart from them, by
producer (`PendingOffsets`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.javahash import TimelineHashMap, integer_hash


class StoredOffset(NamedTuple):
    """A committed position and when it was committed; ``number`` orders all commits, as the offsets of
    their records do in Kafka. ``expires_at_ms``: only of commits that say so themselves (versions 2-4)."""

    committed: CommittedOffset
    committed_at_ms: int
    expires_at_ms: int | None
    number: int


_Partitions = TimelineHashMap[int, StoredOffset]
_Topics = TimelineHashMap[str, _Partitions]


class Offsets:
    """group -> topic -> partition -> offset, iterated in Kafka's order."""

    def __init__(self) -> None:
        self._groups: dict[str, _Topics] = {}
        #: (group, topic) -> partition -> the offset that a failed write had replaced, until a write succeeds
        #: (`take_back`).
        self._overwritten: dict[tuple[str, str], dict[int, StoredOffset]] = {}

    def put(self, group: str, topic: str, partition: int, stored: StoredOffset) -> None:
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = TimelineHashMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = TimelineHashMap(integer_hash)
            topics.put(topic, partitions)
        partitions.put(partition, stored)

    def get(self, group: str, topic: str, partition: int) -> StoredOffset | None:
        topics = self._groups.get(group)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def __contains__(self, group: str) -> bool:
        """Whether the group has committed anything."""
        return bool(self._groups.get(group))

    def of_group(self, group: str) -> Iterator[tuple[str, int, StoredOffset]]:
        """Everything that the group has committed."""
        topics = self._groups.get(group)
        for topic, partitions in topics.items() if topics is not None else ():
            for partition, stored in partitions.items():
                yield topic, partition, stored

    def read_group(self, group: str) -> Iterator[tuple[str, int, StoredOffset]]:
        """Everything that the group has committed, as a read at the last committed offset finds it.

        After `take_back` replaced offsets come twice, until a write succeeds: in Kafka 4.3.1 the
        snapshot keeps it in its delta although the revert has put it back into the table
        (SnapshottableHashTable.executeRevert, HistoricalIterator).
        """
        topics = self._groups.get(group)
        for topic, partitions in topics.items() if topics is not None else ():
            for partition, stored in partitions.items_with(self._overwritten.get((group, topic), {})):
                yield topic, partition, stored

    def take_back(self, group: str, written: Sequence[tuple[str, int, StoredOffset]]) -> None:
        """The write of these offsets failed: revert the tables as Kafka 4.3.1 does.

        The new offsets are removed. The offsets that they replaced return, but behind the other keys of their
        slots. A table that has grown stays grown (SnapshottableHashTable.executeRevert).
        """
        topics = self._groups.get(group)
        if topics is None:
            return  # the group's tables were new and are dropped
        put: dict[str, dict[int, None]] = {}
        for topic, partition, stored in written:
            partitions = topics.get(topic)
            if partitions is None:
                partitions = TimelineHashMap(integer_hash)
                topics.put(topic, partitions)
            before = partitions.get(partition)
            if before is not None and partition not in put.get(topic, ()):
                self._overwritten.setdefault((group, topic), {})[partition] = before
            partitions.put(partition, stored)
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
        """A write succeeded: the snapshot with the marks of the last reverts is gone."""
        self._overwritten.clear()

    def groups_with(self, topic: str) -> list[str]:
        """The groups that have committed offsets of this topic."""
        return [group for group, topics in self._groups.items() if topic in topics]

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Delete one offset, if it exists, and the tables that are empty then."""
        topics = self._groups.get(group)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None:
            return
        partitions.remove(partition)
        if not partitions:
            topics.remove(topic)
        if not topics:
            del self._groups[group]


class PendingOffsets:
    """Offsets of transactions that are neither committed nor aborted (OffsetMetadataManager's
    pendingTransactionalOffsets and OpenTransactions)."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[tuple[str, str, int], StoredOffset]] = {}
        #: group -> partitions with an offset that waits -> the producers that sent one
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    def put(self, producer_id: int, group: str, topic: str, partition: int, stored: StoredOffset) -> None:
        self._by_producer.setdefault(producer_id, {})[group, topic, partition] = stored
        self._open.setdefault(group, {}).setdefault((topic, partition), set()).add(producer_id)

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._open.get(group, ())

    def of_group(self, group: str) -> list[tuple[str, int]]:
        """The partitions for which offsets of this group wait."""
        return list(self._open.get(group, ()))

    def groups_with(self, topic: str) -> list[str]:
        """The groups for which offsets of this topic wait."""
        return [
            group for group, partitions in self._open.items() if any(name == topic for name, _ in partitions)
        ]

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Remove the offsets that wait for a transaction: a tombstone was written."""
        for producer_id in list(self._open.get(group, {}).get((topic, partition), ())):
            self._drop(producer_id, group, topic, partition)

    def take(self, producer_id: int) -> list[tuple[str, str, int, StoredOffset]]:
        """Remove and return the offsets that waited for the producer's transaction."""
        rows = [(*key, stored) for key, stored in self._by_producer.get(producer_id, {}).items()]
        for group, topic, partition, _ in rows:
            self._drop(producer_id, group, topic, partition)
        return rows

    def rows(self) -> Iterator[tuple[int, str, str, int, StoredOffset]]:
        """Producer id, group, topic, partition and offset of every waiting offset."""
        for producer_id, rows in self._by_producer.items():
            for key, stored in rows.items():
                yield producer_id, *key, stored

    def _drop(self, producer_id: int, group: str, topic: str, partition: int) -> None:
        rows = self._by_producer[producer_id]
        del rows[group, topic, partition]
        if not rows:
            del self._by_producer[producer_id]
        producers = self._open[group][topic, partition]
        producers.discard(producer_id)
        if not producers:
            del self._open[group][topic, partition]
        if not self._open[group]:
            del self._open[group]
