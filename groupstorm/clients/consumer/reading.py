"""What was fetched and has not been given out yet, and how far the application has come. Sans-IO.

A record that was given out counts as processed when the application asks for the next one: `Positions`
holds what is processed, and so what auto-commit commits; what is merely given out is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.consumer.records import ConsumerRecord, FetchedRecords
from groupstorm.clients.wire.positions import Position, Positions


class Reading:
    """The owned partitions of one consumer as its application reads them.

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
        """Of the next record to give out; None: not owned, or not known yet."""
        given_out = self._given_out.get(partition)
        return given_out if given_out is not None else self._positions.position(partition)

    def processed(self) -> None:
        """The application asks for more: it is done with what it has."""
        if self._given_out:
            for partition, position in self._given_out.items():
                self._positions.processed(partition, position)
            self._given_out.clear()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on there; what was fetched of the partition is forgotten."""
        self._given_out.pop(partition, None)
        self._fetched.pop(partition, None)
        self._positions.found(partition, Position(offset))
        self._on_drained()

    def reset(self, partition: TopicPartition, refused: int, offset: int) -> None:
        """There is nothing at ``refused``: go on at ``offset``, unless it is elsewhere meanwhile."""
        position = self.position(partition)
        if position is not None and position.offset == refused:
            self.seek(partition, offset)

    # -- which partitions ------------------------------------------------------------------------

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self._paused)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Give out nothing of these; what is fetched of them is kept."""
        self._paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(partitions)
        self._on_drained()

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions whose listener has not returned from onPartitionsAssigned, none after that."""
        self._held = frozenset(partitions)
        self._on_drained()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Given up or lost."""
        for partition in partitions:
            self._given_out.pop(partition, None)
            self._fetched.pop(partition, None)
            self._paused.discard(partition)

    def to_fetch(self) -> list[tuple[TopicPartition, Position]]:
        """The partitions of which nothing is left to give out, and where to go on."""
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
        """A fetch has brought these; they are of no use if the partition is elsewhere meanwhile."""
        if self._is_next(partition, records):
            self._fetched[partition] = records

    def next(self, only: Collection[TopicPartition] = ()) -> ConsumerRecord | None:
        """The next record (of ``only`` these partitions), None where none is there.

        Partition after partition, each until what was fetched of it has been read. Raises RecordCorrupt.
        """
        for partition in self._ready(only):
            record = self._next_of(partition)
            if record is not None:
                return record
        return None

    def next_batch(
        self, most: int, only: Collection[TopicPartition] = ()
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """At most so many records. Raises RecordCorrupt where the first one cannot be read."""
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
            # those before it are given out; it is fetched and met again
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
