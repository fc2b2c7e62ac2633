"""Records of a fetch: aiokafka's compiled `aiokafka.record` decodes the batches, and a buffer keeps the
records that the application has not received yet. Sans-IO.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.wire.positions import Position, Positions
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.problems import InputError

#: The beginning of a batch: base offset, length of the rest, leader epoch, magic.
_BATCH_START = struct.Struct(">qiib")
_BEFORE_LENGTH_COUNTS = 12
_ABORT_MARKER = b"\0\0\0\0"


class ConsumerRecord(NamedTuple):
    """One record. ``timestamp``: milliseconds; ``timestamp_type`` 0: the producer's, 1: the broker's.

    ``delivery_count``: how often a share group has given it out, this time included; else None.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int = -1
    delivery_count: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class AbortedRecords(NamedTuple):
    """The records of ``producer_id`` from ``first_offset`` to its abort marker: not to be read."""

    producer_id: int
    first_offset: int


class Decoding(NamedTuple):
    """The way to read batches. ``memory_records``: aiokafka's class."""

    memory_records: Callable[[bytes], Any]
    corrupt: type[Exception]
    check_crcs: bool = True
    read_committed: bool = False


def decoding(check_crcs: bool, read_committed: bool) -> Decoding:
    """Raises InputError if aiokafka is not installed."""
    try:
        from aiokafka.errors import KafkaError
        from aiokafka.record.memory_records import MemoryRecords
    except ImportError as missing:
        raise InputError(
            "records are decoded with aiokafka, which is not installed: pip install groupstorm[kafka]"
        ) from missing
    return Decoding(MemoryRecords, KafkaError, check_crcs, read_committed)


class FetchedRecords:
    """The records of one partition in one fetch, decoded batch by batch.

    ``position``: the one after the last record that was read, or after a batch without records to read.
    ``batch_end``: the offset after the batch of the last record.
    """

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        data: bytes,
        aborted: Collection[AbortedRecords],
        how: Decoding,
    ) -> None:
        self.position = Position(offset)
        self.batch_end = offset
        self._partition = partition
        self._data = data
        self._how = how
        self._aborted = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborted_producers: set[int] = set()
        self._records = self._read()

    def next(self) -> ConsumerRecord | None:
        """The next record; None at the end. Raises RecordCorrupt, after which the rest cannot be read."""
        try:
            return next(self._records, None)
        except (self._how.corrupt, ValueError, IndexError, struct.error) as problem:
            raise RecordCorrupt(self._partition, self.position.offset, str(problem)) from problem

    def _read(self) -> Iterator[ConsumerRecord]:
        for batch, epoch in self._batches():
            self.batch_end = batch.next_offset
            if self._how.check_crcs and not batch.validate_crc():
                raise ValueError("wrong checksum")
            if not self._is_left_out(batch):
                yield from self._records_of(batch, epoch)
            # if compaction has removed a batch's last records, the next fetch still begins after the batch
            self.position = Position(max(self.position.offset, batch.next_offset), epoch)

    def _records_of(self, batch: Any, epoch: int) -> Iterator[ConsumerRecord]:
        topic, number = self._partition
        for record in batch:
            if record.offset < self.position.offset:
                continue  # a fetch from the middle of a batch returns the whole batch
            self.position = Position(record.offset + 1, epoch)
            yield ConsumerRecord(
                topic,
                number,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                record.key,
                record.value,
                tuple(record.headers),
                epoch,
            )

    def _batches(self) -> Iterator[tuple[Any, int]]:
        """The whole batches, with their leader epochs; a fetch may end in the middle of one."""
        data, start = self._data, 0
        while start + _BATCH_START.size <= len(data):
            _, length, epoch, magic = _BATCH_START.unpack_from(data, start)
            end = start + _BEFORE_LENGTH_COUNTS + length
            if length < _BATCH_START.size - _BEFORE_LENGTH_COUNTS:
                raise ValueError(f"a batch of {length} bytes")
            if end > len(data):
                return
            yield self._how.memory_records(data[start:end]).next_batch(), epoch if magic >= 2 else -1
            start = end

    def _is_left_out(self, batch: Any) -> bool:
        """Whether to skip a batch: control batches, with read_committed those of aborted transactions too."""
        if self._how.read_committed and batch.producer_id is not None:
            while self._aborted and self._aborted[-1].first_offset <= batch.base_offset:
                self._aborted_producers.add(self._aborted.pop().producer_id)
            if batch.is_control_batch:
                marker = next(batch, None)
                if marker is not None and marker.key == _ABORT_MARKER:
                    self._aborted_producers.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in self._aborted_producers:
                return True
        return bool(batch.is_control_batch)


class FetchBuffer:
    """The fetched records of one consumer's partitions, in the order in which the application reads them.

    A record counts as processed when the application asks for the next one. `Positions` has the processed
    positions, which auto-commit commits; this buffer has the positions after the records given out.
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

    def failed(self) -> None:
        """The application has failed, and has not processed the records that it received last."""
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
