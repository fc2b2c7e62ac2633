"""Fetched records that the application has not received yet, and the application's progress. Sans-IO.

A record counts as processed when the application asks for the next one. `Positions` has the processed
positions, which auto-commit commits; this buffer has the positions after the records given out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.consumer.records import ConsumerRecord, FetchedRecords
from groupstorm.clients.wire.positions import Position, Positions
from groupstorm.coordinator.messages import CommittedOffset


class FetchBuffer:
    """The fetched records of one consumer's partitions, in the order in which the application reads them.

    ``on_drained`` is called when more of a partition may be fetched.
    """

    def __init__(self, positions: Positions, on_drained: Callable[[], None]) -> None:
        self._positions = positions
        self._on_drained = on_drained
        self._given_out: dict[TopicPartition, Position] = {}
        self._fetched: dict[TopicPartition, FetchedRecords] = {}
        self._paused: set[TopicPartition] = set()
        self._held: frozenset[TopicPartition] = frozenset()

    # -- positions -------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> Position | None:
        """The position of the next record to give out; None: not owned, or not known yet."""
        given_out = self._given_out.get(partition)
        return given_out if given_out is not None else self._positions.position(partition)

    def processed(self) -> None:
        """The application asks for more records: it has processed those that it received."""
        if self._given_out:
            for partition, position in self._given_out.items():
                self._positions.processed(partition, position)
            self._given_out.clear()

    def to_commit(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets behind all records that were given out of these partitions."""
        positions = {partition: self.position(partition) for partition in partitions}
        return {
            partition: CommittedOffset(position.offset, position.leader_epoch)
            for partition, position in positions.items()
            if position is not None
        }

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at ``offset``; fetched records of the partition are dropped."""
        self._given_out.pop(partition, None)
        self._fetched.pop(partition, None)
        self._positions.move_to(partition, Position(offset))
        self._on_drained()

    def reset(self, partition: TopicPartition, refused: int, offset: int) -> None:
        """The log has no ``refused`` offset: continue at ``offset``, unless the position has changed."""
        position = self.position(partition)
        if position is not None and position.offset == refused:
            self.seek(partition, offset)

    # -- which partitions ------------------------------------------------------------------------

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self._paused)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Give out no records of these; fetched records stay in the buffer."""
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(partitions)
        self._on_drained()

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Do not give out records of these while onPartitionsAssigned runs; () ends that."""
        self._held = frozenset(partitions)
        self._on_drained()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop all state of these partitions, which were given up or lost."""
        for partition in partitions:
            self._given_out.pop(partition, None)
            self._fetched.pop(partition, None)
            self._paused.discard(partition)

    def to_fetch(self) -> list[tuple[TopicPartition, Position]]:
        """The partitions without fetched records, and the position of the next fetch."""
        found = []
        for partition in self._positions.readable():
            if partition in self._paused or partition in self._held or partition in self._fetched:
                continue
            position = self.position(partition)
            if position is not None:
                found.append((partition, position))
        return found

    # -- records ---------------------------------------------------------------------------------

    def fetched(self, partition: TopicPartition, records: FetchedRecords) -> None:
        """Take the records of a fetch; drop them if the position of the partition has changed."""
        if self._is_next(partition, records):
            self._fetched[partition] = records

    def next(self, only: Collection[TopicPartition] = ()) -> ConsumerRecord | None:
        """The next record (of ``only`` these partitions); None if there is none.

        All fetched records of a partition come before those of the next one. Raises RecordCorrupt.
        """
        for partition in self._ready(only):
            record = self._next_of(partition)
            if record is not None:
                return record
        return None

    def next_batch(
        self, most: int, only: Collection[TopicPartition] = ()
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """At most this number of records. Raises RecordCorrupt if the first one cannot be read."""
        batch: dict[TopicPartition, list[ConsumerRecord]] = {}
        left = most
        try:
            for partition in self._ready(only):
                while left and (record := self._next_of(partition)) is not None:
                    batch.setdefault(partition, []).append(record)
                    left -= 1
        except RecordCorrupt:
            if not batch:
                raise
            # the records before it are given out; the next fetch meets it again
        return batch

    def _ready(self, only: Collection[TopicPartition]) -> list[TopicPartition]:
        return [
            partition
            for partition in self._fetched
            if (not only or partition in only)
            and partition not in self._paused
            and partition not in self._held
        ]

    def _next_of(self, partition: TopicPartition) -> ConsumerRecord | None:
        records = self._fetched.get(partition)
        if records is None:
            return None
        record = None
        try:
            if self._is_next(partition, records):
                record = records.next()
                self._given_out[partition] = records.position
        finally:
            if record is None:
                del self._fetched[partition]
                self._on_drained()
        return record

    def _is_next(self, partition: TopicPartition, records: FetchedRecords) -> bool:
        if self._positions.is_stopped(partition):
            return False
        position = self.position(partition)
        return position is not None and position.offset == records.position.offset
