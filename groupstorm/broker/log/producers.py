"""The producers of one partition: repetitions, batches out of order, transactions (KIP-98, KIP-360).

The rules are those of ProducerStateManager, ProducerStateEntry and ProducerAppendInfo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from groupstorm.broker.log.batches import NO_PRODUCER_ID, Batch, BatchError
from groupstorm.coordinator.errors import Error

#: A producer has at most five requests in flight, so that a repeated batch is one of the last five
#: (ProducerStateEntry.NUM_BATCHES_TO_RETAIN).
BATCHES_KEPT = 5
#: Producers kept per partition; Kafka forgets them by time (producer.id.expiration.ms), we by number.
PRODUCERS_KEPT = 10_000


class AppendedBatch(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + ((self.last_sequence - self.base_sequence) & 0x7FFF_FFFF)


class KeptProducer(NamedTuple):
    """A producer as the journal holds it."""

    producer_id: int
    epoch: int
    batches: tuple[AppendedBatch, ...]


class LastRecord(NamedTuple):
    """The place of a producer's state for compaction: the offset of its last record, or None if its epoch is
    that of a marker."""

    offset: int | None
    epoch: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))


class Producers:
    """The producers that wrote to one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def kept(self) -> tuple[KeptProducer, ...]:
        """All producers, the most recent last."""
        return tuple(
            KeptProducer(number, one.epoch, tuple(one.batches)) for number, one in self._producers.items()
        )

    def restore(self, kept: Iterable[KeptProducer]) -> None:
        self._producers = {
            one.producer_id: _Producer(one.epoch, deque(one.batches, maxlen=BATCHES_KEPT)) for one in kept
        }

    def last_records(self) -> dict[int, LastRecord]:
        """The last record of each producer (UnifiedLog.lastRecordsOfActiveProducers)."""
        return {
            number: LastRecord(one.batches[-1].last_offset if one.batches else None, one.epoch)
            for number, one in self._producers.items()
        }

    def repeated(self, batch: Batch) -> int | None:
        """The offset of this batch if it is one of the producer's last batches, or None."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        for appended in producer.batches:
            if appended[:2] == (batch.base_sequence, batch.last_sequence):
                return appended.base_offset
        return None

    def check(self, batch: Batch) -> None:
        """Raises BatchError for an old epoch or a sequence number that does not follow."""
        producer = self._producers.get(batch.producer_id)
        if batch.producer_id == NO_PRODUCER_ID or producer is None:
            return
        if batch.producer_epoch < producer.epoch:
            raise BatchError(
                Error.INVALID_PRODUCER_EPOCH,
                f"epoch {batch.producer_epoch} of producer {batch.producer_id}, which is at {producer.epoch}",
            )
        expected = 0
        if batch.producer_epoch == producer.epoch and producer.batches:
            expected = (producer.batches[-1].last_sequence + 1) & 0x7FFF_FFFF
        if batch.base_sequence != expected:
            raise BatchError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {batch.base_sequence} of producer {batch.producer_id}, expected {expected}",
            )

    def transaction_ended(self, producer_id: int, producer_epoch: int) -> None:
        """Note a marker. With a newer epoch the sequence numbers begin at 0 again (KIP-890)."""
        producer = self._producers.pop(producer_id, None)
        if producer is None or producer.epoch != producer_epoch:
            producer = _Producer(producer_epoch)
        self._producers[producer_id] = producer
        self._forget_the_oldest()

    def appended(self, batch: Batch, base_offset: int) -> None:
        """Note a batch that was checked and appended."""
        if batch.producer_id == NO_PRODUCER_ID:
            return
        producer = self._producers.pop(batch.producer_id, None)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = _Producer(batch.producer_epoch)
        producer.batches.append(AppendedBatch(batch.base_sequence, batch.last_sequence, base_offset))
        self._producers[batch.producer_id] = producer  # most recent last
        self._forget_the_oldest()

    def _forget_the_oldest(self) -> None:
        if len(self._producers) > PRODUCERS_KEPT:
            del self._producers[next(iter(self._producers))]


class AbortedTransaction(NamedTuple):
    """Consumers of committed records drop this producer's records between these offsets; the last one is the
    marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


class PartitionTransactions:
    """``open``: producer -> the first offset of its transaction. ``aborted``: in the order of the markers."""

    __slots__ = ("aborted", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.aborted: list[AbortedTransaction] = []

    def appended(self, batch: Batch, base_offset: int) -> None:
        if batch.is_control:
            first = self.open.pop(batch.producer_id, None)
            if first is not None and not batch.is_commit_marker:
                self.aborted.append(AbortedTransaction(batch.producer_id, first, base_offset))
        elif batch.is_transactional:
            self.open.setdefault(batch.producer_id, base_offset)

    def last_stable_offset(self, end_offset: int) -> int:
        """The end of committed reads: the first offset of the earliest open transaction, or the end
        offset."""
        return min(self.open.values(), default=end_offset)

    def aborted_between(self, offset: int, until: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from ``offset`` to before ``until``
        (LogSegment.collectAbortedTxns)."""
        return [one for one in self.aborted if one.last_offset >= offset and one.first_offset < until]

    def begin_at(self, offset: int) -> None:
        """Forget the aborted transactions in front of the log's beginning."""
        self.aborted = [one for one in self.aborted if one.last_offset >= offset]

    def restore(self, opened: Iterable[tuple[int, int]], aborted: Iterable[AbortedTransaction]) -> None:
        self.open = dict(opened)
        self.aborted = [*aborted]
