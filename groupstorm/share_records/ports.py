"""The interfaces that a share broker needs: logs, the share coordinator, the dead letter queue.

Calls to the last two are answered through a callback, inside the call or at any later time.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from groupstorm.assignors.userdata import TopicPartition as NamedPartition
from groupstorm.coordinator.errors import Error
from groupstorm.share_records.states import RecordState


class KafkaError(Exception):
    """A call that Kafka ends with an exception, as the error of an answer. ``sentence``: the exception's."""

    def __init__(self, error: Error, sentence: str | None = None) -> None:
        super().__init__(error.name)
        self.error = error
        self.sentence = sentence


class NullPointer(Exception):
    """A place at which Kafka follows a null reference; the repaired broker never does."""


class Outcome:
    """The error that a call ends with, for whom waits for it (Kafka: a CompletableFuture).

    A call that ends before it returns tells so once it has returned: `attach`.
    """

    def __init__(self, done: Callable[[Error], None]) -> None:
        self._done = done
        self._error: Error | None = None
        self._is_attached = False

    def complete(self, error: Error) -> None:
        if self._is_attached:
            self._done(error)
        else:
            self._error = error

    def attach(self) -> None:
        """The call has returned."""
        self._is_attached = True
        if self._error is not None:
            self._done(self._error)


TopicPartition = NamedPartition
_base_offset = attrgetter("base_offset")


class SharePartitionKey(NamedTuple):
    group: str
    topic_partition: TopicPartition


class RecordBatch(NamedTuple):
    """A batch of the log. ``is_abort``: a control batch that aborts its producer's transaction."""

    base_offset: int
    last_offset: int
    size: int
    producer_id: int | None = None
    is_abort: bool = False


class ComputedBatches(Sequence[RecordBatch]):
    """Batches that are made when somebody looks at them: to search among them would make most of them."""

    @abstractmethod
    def up_to(self, offset: int) -> int:
        """See `batches_up_to`."""


def batches_up_to(batches: Sequence[RecordBatch], offset: int) -> int:
    """The number of batches that begin at or before the offset. Each holds a record at least."""
    if isinstance(batches, ComputedBatches):
        return batches.up_to(offset)
    most = offset - batches[0].base_offset + 1
    return bisect_right(batches, offset, 0, max(0, min(most, len(batches))), key=_base_offset)


class LogPosition(NamedTuple):
    """An offset, and the byte at which the batch begins that holds it or follows it."""

    offset: int
    byte: int


class LogRead(NamedTuple):
    """The result of a read. ``size`` is in bytes; ``aborted``: (producer, first offset) of transactions."""

    error: Error
    position: LogPosition | None = None
    batches: Sequence[RecordBatch] = ()
    size: int = 0
    aborted: Sequence[tuple[int, int]] = ()


class PartitionLog(Protocol):
    """The log of a partition on this broker. Methods but `read` raise KafkaError if it cannot be served."""

    def leader_epoch(self) -> int: ...

    def end(self, *, is_committed: bool) -> LogPosition:
        """The high watermark, or the last stable offset."""

    def bytes_between(self, start: LogPosition, end: LogPosition, most: int) -> int:
        """The bytes of the batches between two positions, counted up to a number."""

    def earliest_offset(self) -> int: ...

    def latest_offset(self) -> int: ...

    def offset_at(self, timestamp_ms: int) -> int:
        """The offset of the first record that is not older."""

    def read(self, offset: int, max_bytes: int, *, one_at_least: bool, is_committed: bool) -> LogRead:
        """Whole batches from the one that holds the offset, up to a size. Errors are in the result."""


class Cluster(Protocol):
    """The topics of the metadata, and the partitions that this broker hosts."""

    def has_topic(self, topic: str) -> bool: ...

    def has_partition(self, partition: TopicPartition) -> bool: ...

    def log(self, partition: TopicPartition) -> PartitionLog:
        """The partition's log; KafkaError if the broker does not host the partition."""

    def partition_hash(self, partition: TopicPartition) -> int:
        """``TopicIdPartition.hashCode`` as an unsigned number: the order of partitions depends on it."""


class StateBatch(NamedTuple):
    """Records of one state, as the share coordinator stores them."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class WriteState(NamedTuple):
    """WriteShareGroupState of one share partition. ``complete``: the terminal records from ``start`` on."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start: int
    complete: int
    batches: Sequence[StateBatch]


class ReadAnswer(NamedTuple):
    """ReadShareGroupState's answer; the fields behind the error count only without one."""

    error: Error
    start: int = -1
    state_epoch: int = 0
    batches: Sequence[StateBatch] = ()


class Persister(Protocol):
    """The way to the share coordinator. None instead of an answer: the call failed."""

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadAnswer | None], None]
    ) -> None: ...

    def write(self, request: WriteState, done: Callable[[Error | None], None]) -> None: ...


class DeadLetter(NamedTuple):
    """Records that go to the dead letter queue, and why (Kafka: ShareGroupDLQRecordParameter)."""

    key: SharePartitionKey
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: str


#: Causes of dead letters (ShareGroupDLQManager).
CLIENT_REJECT = "CLIENT_REJECT"
DELIVERY_COUNT_EXCEEDED = "DELIVERY_COUNT_EXCEEDED"


class DeadLetterQueue(Protocol):
    def enqueue(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        """Take records over; ``done`` is called whether the queue could write them or not."""


#: The errors of the share coordinator that members see under another name (SharePartition).
_SHOWN: Mapping[Error, Error] = {
    Error.NOT_COORDINATOR: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_NOT_AVAILABLE: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.GROUP_ID_NOT_FOUND: Error.GROUP_ID_NOT_FOUND,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.NONE: Error.NONE,
}


def shown_error(error: Error | None) -> Error:
    """The error that a member sees for an answer of the share coordinator; None: the call failed."""
    return Error.UNKNOWN_SERVER_ERROR if error is None else _SHOWN.get(error, Error.UNKNOWN_SERVER_ERROR)
