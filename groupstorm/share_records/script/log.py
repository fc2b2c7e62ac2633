"""The logs of a script's cluster: record batches with exact sizes, transactions, and who leads."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.clients import topic_uuid
from groupstorm.javahash import string_hash, topic_partition_hash, uuid_hash
from groupstorm.share_records.ports import (
    KafkaError,
    LogPosition,
    LogRead,
    PartitionLog,
    RecordBatch,
    TopicPartition,
)

CONTROL_BATCH_BYTES = 78


class ScriptLog:
    """The log of one partition. ``error``: reads are answered with it."""

    def __init__(self) -> None:
        self.start = 0
        self.error = Error.NONE
        self.is_leader = True
        self.current_epoch = 0
        self._end = 0
        self._batches: list[RecordBatch] = []
        self._times: list[int] = []
        #: The end of each batch in bytes; a batch that is compacted away has none.
        self._bytes: list[int] = []
        #: producer -> first offset of its open transaction
        self._open: dict[int, int] = {}
        #: Aborted transactions: (producer, first offset, offset of the marker).
        self._aborted: list[tuple[int, int, int]] = []

    @property
    def offsets(self) -> tuple[int, int, int, int]:
        """Log start, log end, last stable offset, and the leader epoch or -1."""
        epoch = self.current_epoch if self.is_leader else -1
        return self.start, self._end, self._last_stable, epoch

    @property
    def _last_stable(self) -> int:
        return min(self._open.values(), default=self._end)

    # changes

    def append(self, records: int, size: int, producer_id: int | None, now_ms: int) -> None:
        """Append a batch; one of a producer is transactional."""
        if producer_id is not None:
            self._open.setdefault(producer_id, self._end)
        self._append(RecordBatch(self._end, self._end + records - 1, size, producer_id), now_ms)

    def end_transaction(self, producer_id: int, *, is_commit: bool, now_ms: int) -> None:
        """Append the control batch that ends a producer's transaction, open or not."""
        first = self._open.pop(producer_id, None)
        if first is not None and not is_commit:
            self._aborted.append((producer_id, first, self._end))
        batch = RecordBatch(self._end, self._end, CONTROL_BATCH_BYTES, producer_id, not is_commit)
        self._append(batch, now_ms)

    def _append(self, batch: RecordBatch, now_ms: int) -> None:
        self._batches.append(batch)
        self._times.append(now_ms)
        self._bytes.append(batch.size + (self._bytes[-1] if self._bytes else 0))
        self._end = batch.last_offset + 1

    def delete_records(self, to: int) -> None:
        self.start = max(self.start, min(to, self._end))

    def compact(self, first: int, last: int) -> None:
        """Take out the batches that lie wholly between two offsets; the last one of the log stays."""
        kept = [
            (batch, time)
            for batch, time in zip(self._batches, self._times, strict=True)
            if not first <= batch.base_offset <= batch.last_offset <= last or batch is self._batches[-1]
        ]
        self._batches = [batch for batch, _ in kept]
        self._times = [time for _, time in kept]
        self._bytes = list(accumulate(batch.size for batch in self._batches))

    # the broker's view

    def leader_epoch(self) -> int:
        if not self.is_leader:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
        return self.current_epoch

    def end(self, *, is_committed: bool) -> LogPosition:
        self.leader_epoch()
        offset = self._last_stable if is_committed else self._end
        return self._position(offset)

    def bytes_between(self, start: LogPosition, end: LogPosition, most: int) -> int:
        return min(end.byte - start.byte, most)

    def earliest_offset(self) -> int:
        self.leader_epoch()
        return self.start

    def latest_offset(self) -> int:
        self.leader_epoch()
        return self._end

    def offset_at(self, timestamp_ms: int) -> int:
        self.leader_epoch()
        for batch, time in zip(self._batches, self._times, strict=True):
            if time >= timestamp_ms and batch.last_offset >= self.start:
                return max(batch.base_offset, self.start)
        raise KafkaError(Error.OFFSET_NOT_AVAILABLE)

    def read(self, offset: int, max_bytes: int, *, one_at_least: bool, is_committed: bool) -> LogRead:
        self.leader_epoch()
        if self.error is not Error.NONE:
            return LogRead(self.error)
        if not self.start <= offset <= self._end:
            return LogRead(Error.OFFSET_OUT_OF_RANGE)
        position = self._position(offset)
        upper = self._position(self._last_stable if is_committed else self._end)
        index = self._index(offset)
        if offset >= upper.offset or index == len(self._batches):
            return LogRead(Error.NONE, position)
        size = max(max_bytes, self._batches[index].size) if one_at_least else max_bytes
        if size < self._batches[index].size:
            return LogRead(Error.NONE, position)
        size = min(size, upper.byte - position.byte)
        batches = self._batches[index : self._index_of_byte(position.byte + size)]
        aborted = [one[:2] for one in self._aborted if one[2] >= offset] if is_committed else ()
        return LogRead(Error.NONE, position, batches, size, aborted)

    def _index(self, offset: int) -> int:
        """The index of the batch that holds the offset or follows it."""
        return bisect_left(self._batches, offset, key=lambda batch: batch.last_offset)

    def _index_of_byte(self, byte: int) -> int:
        """The number of batches that end at or before a byte."""
        index = bisect_left(self._bytes, byte)
        return index + 1 if index < len(self._bytes) and self._bytes[index] == byte else index

    def _position(self, offset: int) -> LogPosition:
        index = self._index(offset)
        return LogPosition(offset, self._bytes[index - 1] if index else 0)


class ScriptCluster:
    """The logs by partition. A topic that is deleted is gone from the metadata."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.logs = {
            TopicPartition(topic, number): ScriptLog()
            for topic, count in sorted(topics.items())
            for number in range(count)
        }
        self._counts = dict(topics)
        self._hashes: dict[TopicPartition, int] = {}

    def has_topic(self, topic: str) -> bool:
        return topic in self._counts

    def has_partition(self, partition: TopicPartition) -> bool:
        return partition.partition < self._counts.get(partition.topic, 0)

    def log(self, partition: TopicPartition) -> PartitionLog:
        try:
            return self.logs[partition]
        except KeyError:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION) from None

    def delete_topic(self, topic: str) -> list[TopicPartition]:
        """Take a topic out of the metadata; the result: its partitions."""
        self._counts.pop(topic, None)
        gone = [one for one in self.logs if one.topic == topic]
        for one in gone:
            self.logs.pop(one).is_leader = False
        return gone

    def partition_hash(self, partition: TopicPartition) -> int:
        if partition not in self._hashes:
            own = topic_partition_hash(partition)
            if not self.has_topic(partition.topic):
                own -= string_hash(partition.topic)  # the name of an unknown id is null
            found = 31 * (31 + uuid_hash(topic_uuid(partition.topic))) + own
            self._hashes[partition] = found & 0xFFFFFFFF
        return self._hashes[partition]
