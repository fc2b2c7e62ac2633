"""The logs of a broker, as share groups read them.

`groupstorm.share_records` knows a topic by its id, as text: a topic that is made again under its name is
another one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import overload
from uuid import UUID

from groupstorm.broker.changes import ShareStateKept
from groupstorm.broker.log.batches import Batch
from groupstorm.broker.log.partition import LEADER_EPOCH, NO_OFFSET, PartitionLog
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, Topic, Topics
from groupstorm.coordinator.errors import Error
from groupstorm.javahash import topic_partition_hash, uuid_hash
from groupstorm.protocol.codec.shape import ZERO_UUID
from groupstorm.share_records.coordinator import ShareState
from groupstorm.share_records.ports import (
    ComputedBatches,
    KafkaError,
    LogPosition,
    LogRead,
    RecordBatch,
    SharePartitionKey,
    TopicPartition,
)

#: A group has at most 10,000 records of a partition in flight (`group.share.partition.max.record.locks`), and
#: each batch has one offset at least: what a longer read would find could not be acquired.
_MOST_BATCHES = 10_001


@lru_cache(1 << 12)
def key_of(topic_id: UUID | None) -> str:
    """The key of a topic; a request's id of zeros is None."""
    return str(topic_id or ZERO_UUID)


@lru_cache(1 << 12)
def id_of(key: str) -> UUID:
    return UUID(key)


def topic_of(topics: Topics, key: str) -> Topic | None:
    return topics.get_by_id(id_of(key))


def share_key(group: str, topic_id: UUID, partition: int) -> SharePartitionKey:
    return SharePartitionKey(group, TopicPartition(key_of(topic_id), partition))


def kept(key: SharePartitionKey, state: ShareState) -> ShareStateKept:
    """The change that makes this state."""
    group, (topic, partition) = key
    return ShareStateKept(group, id_of(topic), partition, *state)


class _Batches(ComputedBatches):
    """Batches of a log, each read when it is asked for: most fetches end long before the last of them."""

    def __init__(self, log: PartitionLog, start: int, end: int, *, with_producers: bool) -> None:
        self._columns = log.batches.columns
        self._data = log.batches.data
        self._range = range(start, end)
        self._with_producers = with_producers

    def __len__(self) -> int:
        return len(self._range)

    def up_to(self, offset: int) -> int:
        start, end = self._range.start, self._range.stop
        return bisect_right(self._columns.base_offsets, offset, start, end) - start

    @overload
    def __getitem__(self, index: int) -> RecordBatch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordBatch]: ...
    def __getitem__(self, index: int | slice) -> RecordBatch | Sequence[RecordBatch]:
        if isinstance(index, int):
            return self._batch(self._range[index])
        wanted = self._range[index]
        if self._with_producers:
            return [self._batch(at) for at in wanted]
        chosen, columns = slice(wanted.start, wanted.stop, wanted.step), self._columns
        where = columns.base_offsets[chosen], columns.last_offsets[chosen], columns.sizes[chosen]
        return [*map(RecordBatch, *where)]

    def _batch(self, at: int) -> RecordBatch:
        columns = self._columns
        where = columns.base_offsets[at], columns.last_offsets[at], columns.sizes[at]
        if not self._with_producers:
            return RecordBatch(*where)
        batch = Batch.read(self._data(at))
        if not batch.is_transactional:
            return RecordBatch(*where)
        is_abort = batch.is_control and not batch.is_commit_marker
        return RecordBatch(*where, batch.producer_id, is_abort)


class BrokersLog:
    """A partition's log on one of the brokers, which serves it while it leads the partition."""

    def __init__(self, topic: Topic, partition: int, node: int) -> None:
        self._topic = topic
        self._partition = partition
        self._node = node

    @property
    def log(self) -> PartitionLog:
        """Raises KafkaError if the broker does not lead the partition."""
        log = self._topic.partitions[self._partition]
        if log.is_gone:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        if self._topic.replicas[self._partition][0] != self._node:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
        return log

    def leader_epoch(self) -> int:
        _ = self.log
        return LEADER_EPOCH

    def end(self, *, is_committed: bool) -> LogPosition:
        log = self.log
        return _position(log, log.last_stable_offset if is_committed else log.end_offset)

    def bytes_between(self, start: LogPosition, end: LogPosition, most: int) -> int:
        return self.log.readable_bytes(start.offset, most, end.offset)

    def earliest_offset(self) -> int:
        return self.log.start_offset

    def latest_offset(self) -> int:
        return self.log.end_offset

    def offset_at(self, timestamp_ms: int) -> int:
        try:
            found = self.log.at_timestamp(timestamp_ms).offset
        except OSError:
            raise KafkaError(Error.KAFKA_STORAGE_ERROR) from None
        if found == NO_OFFSET:
            raise KafkaError(Error.OFFSET_NOT_AVAILABLE)
        return found

    def read(self, offset: int, max_bytes: int, *, one_at_least: bool, is_committed: bool) -> LogRead:
        log = self.log
        if not log.has_offset(offset):
            return LogRead(Error.OFFSET_OUT_OF_RANGE)
        upper = log.last_stable_offset if is_committed else log.end_offset
        position = _position(log, offset)
        if offset >= upper:
            return LogRead(Error.NONE, position)
        start = end = position.byte
        last = min(log.batches.from_base(upper), start + _MOST_BATCHES)
        size, sizes = log.batches.size_of(start, last), log.batches.columns.sizes
        if size <= max_bytes:
            end = last
        else:
            size = 0
            while size + sizes[end] <= max_bytes or (one_at_least and end == start):
                size += sizes[end]
                end += 1
        aborted = log.transactions.aborted_between(offset, upper) if is_committed and end > start else ()
        batches = _Batches(log, start, end, with_producers=bool(aborted))
        return LogRead(
            Error.NONE, position, batches, size, [(one.producer_id, one.first_offset) for one in aborted]
        )


def _position(log: PartitionLog, offset: int) -> LogPosition:
    """The log counts batches, not bytes; `BrokersLog.bytes_between` looks at offsets only."""
    return LogPosition(offset, log.batches.holding(offset))


class BrokersCluster:
    """The topics of the metadata, and the logs of one broker."""

    def __init__(self, topics: Topics, node: int) -> None:
        self._topics = topics
        self._node = node
        self._logs: dict[TopicPartition, BrokersLog] = {}
        #: The partitions of the logs that share groups read.
        self.read: dict[PartitionLog, TopicPartition] = {}

    def has_topic(self, topic: str) -> bool:
        return topic_of(self._topics, topic) is not None

    def has_partition(self, partition: TopicPartition) -> bool:
        topic = topic_of(self._topics, partition.topic)
        return topic is not None and topic.partition(partition.partition) is not None

    def log(self, partition: TopicPartition) -> BrokersLog:
        found = self._logs.get(partition)
        if found is None:
            topic = topic_of(self._topics, partition.topic)
            log = None if topic is None else topic.partition(partition.partition)
            if topic is None or log is None or topic.name in COORDINATORS_TOPICS:
                raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
            found = self._logs[partition] = BrokersLog(topic, partition.partition, self._node)
            self.read[log] = partition
        return found

    def leads(self, partition: TopicPartition) -> bool:
        try:
            return self.log(partition).leader_epoch() == LEADER_EPOCH
        except KafkaError:
            return False

    def forget_deleted(self) -> None:
        """Topics are gone, and their logs with them."""
        gone = [log for log in self.read if log.is_gone]
        for log in gone:
            del self._logs[self.read.pop(log)]

    def partition_hash(self, partition: TopicPartition) -> int:
        topic = topic_of(self._topics, partition.topic)
        name = "" if topic is None else topic.name  # an unknown id has no name, whose hash is that of ""
        own = topic_partition_hash((name, partition.partition))
        return (31 * (31 + uuid_hash(id_of(partition.topic))) + own) & 0xFFFFFFFF
