"""Records of a fetch: aiokafka's compiled `aiokafka.record` decodes the batches."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.wire.positions import Position
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
