"""The transaction coordinator: the producer of each transactional id, and the partitions of its transaction.

It decides as the group coordinator does: requests and `now` in, decisions out. The end of a transaction names
the partitions that get a marker. The caller writes them, and then completes the transaction: in between
clients meet CONCURRENT_TRANSACTIONS, as in Kafka.

Kafka: TransactionCoordinator, TransactionMetadata (KIP-98, KIP-360, KIP-447, KIP-890). "Version 2" below is
transaction.version=2: the producer's epoch grows by one at the end of every transaction, and a producer adds
a partition by writing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from groupstorm.coordinator.errors import Error

#: Kafka's NO_PRODUCER_ID and NO_PRODUCER_EPOCH.
NONE = -1
#: The last epoch that a producer may have; the one above is kept for fencing it (Short.MAX_VALUE - 1).
_LAST_EPOCH = 2**15 - 2

#: Topic and partition number.
Partition = tuple[str, int]


class TransactionState(StrEnum):
    """As DescribeTransactions names them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


#: From the end of a transaction until its last marker is written -> behind that.
_COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


@dataclass(slots=True)
class Transaction:
    """One transactional id and its transaction."""

    transactional_id: str
    producer_id: int
    epoch: int = NONE
    last_epoch: int = NONE
    """The epoch before: repeated requests may still name it."""
    previous_producer_id: int = NONE
    """The producer id before, if its epochs had run out."""
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    #: In the order in which they were added, which is nearly the sorted one: sorting takes little time.
    partitions: dict[Partition, None] = field(default_factory=dict)
    started_ms: int = NONE
    ending: tuple[int, int] | None = None
    """Producer id and epoch of the markers that are being written."""


class Producer(NamedTuple):
    """Error, producer id and epoch, for InitProducerId and EndTxn 5."""

    error: Error
    producer_id: int = NONE
    epoch: int = NONE


class Marker(NamedTuple):
    """The marker for the partitions of a transaction that has ended."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_commit: bool
    partitions: tuple[Partition, ...]


class Transactions:
    """Transactional ids and their transactions. ``markers`` and ``changed`` collect what the caller writes
    after every call."""

    def __init__(
        self,
        new_producer_id: Callable[[], int],
        max_timeout_ms: int = 900_000,
        check_interval_ms: int = 10_000,
    ) -> None:
        """``check_interval_ms``: how often timeouts of transactions are checked
        (transaction.abort.timed.out.transaction.cleanup.interval.ms)."""
        self.markers: list[Marker] = []
        self.changed: dict[str, Transaction] = {}
        self._new_producer_id = new_producer_id
        self._max_timeout_ms = max_timeout_ms
        self._check_interval_ms = check_interval_ms
        self._by_id: dict[str, Transaction] = {}
        self._ongoing: set[str] = set()
        self._check_at_ms: int | None = None

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._by_id.values())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._by_id.get(transactional_id)

    def restore(self, transaction: Transaction, now_ms: int) -> None:
        """Take a transaction of the journal. All its markers are written if not all of them were, as Kafka's
        coordinator writes them again."""
        name = transaction.transactional_id
        self._by_id[name] = transaction
        self.markers = [one for one in self.markers if one.transactional_id != name]
        if transaction.ending is not None:
            self.markers.append(_marker(transaction, transaction.ending))
        if transaction.state is TransactionState.ONGOING:
            self._note_ongoing(transaction, now_ms)
        else:
            self._ongoing.discard(transaction.transactional_id)

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int], now_ms: int
    ) -> Producer:
        """Assign a producer id and an epoch; an earlier producer of the transactional id is fenced.

        ``expected``: producer id and epoch of a producer that recovers from an error, else -1 and -1. An open
        transaction is aborted, and the producer asks again (CONCURRENT_TRANSACTIONS).
        """
        if not transactional_id:
            return Producer(Error.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return Producer(Error.INVALID_TRANSACTION_TIMEOUT)
        known = self._by_id.get(transactional_id)
        transaction = known or Transaction(transactional_id, self._new_producer_id())
        if not _may_init(transaction, *expected):
            return Producer(Error.PRODUCER_FENCED)
        is_ongoing = transaction.state is TransactionState.ONGOING
        if is_ongoing:
            self._end(transaction, is_commit=False, bump=True)
        if is_ongoing or transaction.ending is not None:
            return Producer(Error.CONCURRENT_TRANSACTIONS)
        error = self._next_epoch(transaction, expected[1])
        if error is not Error.NONE:
            return Producer(error)
        transaction.timeout_ms = timeout_ms
        transaction.state = TransactionState.EMPTY
        self._by_id[transactional_id] = transaction
        self._note(transaction)
        return Producer(Error.NONE, transaction.producer_id, transaction.epoch)

    def _next_epoch(self, transaction: Transaction, expected_epoch: int) -> Error:
        """TransactionMetadata.prepareIncrementProducerEpoch, prepareProducerIdRotation."""
        if expected_epoch not in (NONE, transaction.epoch) and transaction.epoch != NONE:
            # a repeated request gets the same answer
            return Error.NONE if expected_epoch == transaction.last_epoch else Error.PRODUCER_FENCED
        self._bump(transaction)
        if expected_epoch == NONE:
            transaction.last_epoch = NONE
        return Error.NONE

    def _bump(self, transaction: Transaction) -> None:
        transaction.last_epoch = transaction.epoch
        if transaction.epoch >= _LAST_EPOCH:
            transaction.previous_producer_id = transaction.producer_id
            transaction.producer_id, transaction.epoch = self._new_producer_id(), 0
        else:
            transaction.epoch += 1

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[Partition],
        now_ms: int,
    ) -> Error:
        """Add partitions to the transaction; the first ones begin it."""
        transaction, error = self._checked(transactional_id, producer_id, epoch)
        if transaction is None or error is not Error.NONE:
            return error
        new = dict.fromkeys(one for one in partitions if one not in transaction.partitions)
        is_ongoing = transaction.state is TransactionState.ONGOING
        if is_ongoing and not new:
            return Error.NONE
        if not is_ongoing:
            transaction.partitions.clear()
            transaction.state, transaction.started_ms = TransactionState.ONGOING, now_ms
            self._note_ongoing(transaction, now_ms)
        transaction.partitions |= new
        self._note(transaction)
        return Error.NONE

    def verify(self, transactional_id: str, producer_id: int, epoch: int, partition: Partition) -> Error:
        """NONE if a partition is part of the producer's open transaction, else INVALID_TXN_STATE (KIP-890,
        part 1); INVALID_PRODUCER_EPOCH for a producer that another one has fenced."""
        transaction, error = self._checked(transactional_id, producer_id, epoch)
        if error is Error.PRODUCER_FENCED:
            return Error.INVALID_PRODUCER_EPOCH
        if transaction is None or error is not Error.NONE:
            return error
        is_open = transaction.state is TransactionState.ONGOING and partition in transaction.partitions
        return Error.NONE if is_open else Error.INVALID_TXN_STATE

    def _checked(
        self, transactional_id: str, producer_id: int, epoch: int
    ) -> tuple[Transaction | None, Error]:
        if not transactional_id:
            return None, Error.INVALID_REQUEST
        transaction = self._by_id.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return None, Error.INVALID_PRODUCER_ID_MAPPING
        if transaction.epoch != epoch:
            return transaction, Error.PRODUCER_FENCED
        return transaction, Error.NONE if transaction.ending is None else Error.CONCURRENT_TRANSACTIONS

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, is_commit: bool, version_2: bool
    ) -> Producer:
        """Commit or abort. With version 2 the result has the epoch of the next transaction, and an abort
        needs no transaction."""
        transaction, error = self._checked(transactional_id, producer_id, epoch)
        known = self._by_id.get(transactional_id)
        complete = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        if version_2 and known is not None and _is_repeated(known, producer_id, epoch):
            transaction, is_repeated = known, True
            error = Error.NONE if known.ending is None else Error.CONCURRENT_TRANSACTIONS
        else:
            # before version 2 a repeated request looks like the first one
            is_repeated = not version_2 and known is not None and known.state is not TransactionState.ONGOING
        if error is Error.CONCURRENT_TRANSACTIONS and known is not None:
            return Producer(error if _COMPLETE[known.state] is complete else Error.INVALID_TXN_STATE)
        if transaction is None or error is not Error.NONE:
            return Producer(error)
        if is_repeated:
            same = transaction.state is complete
            return _answer(transaction) if same else Producer(Error.INVALID_TXN_STATE)
        if transaction.state is not TransactionState.ONGOING and not (version_2 and not is_commit):
            return Producer(Error.INVALID_TXN_STATE)
        self._end(transaction, is_commit, bump=version_2)
        return _answer(transaction)

    def _end(self, transaction: Transaction, is_commit: bool, bump: bool) -> None:
        """The marker carries the new epoch, so that every partition refuses the old one."""
        producer_id = transaction.producer_id
        if bump:
            self._bump(transaction)
        epoch = transaction.epoch if transaction.producer_id == producer_id else _LAST_EPOCH + 1
        transaction.state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        transaction.ending = producer_id, epoch
        self._ongoing.discard(transaction.transactional_id)
        if transaction.partitions:
            self._note(transaction)
            self.markers.append(_marker(transaction, transaction.ending))
        else:
            self.complete(transaction.transactional_id)

    def complete(self, transactional_id: str) -> None:
        """End a transaction whose markers have all been written."""
        transaction = self._by_id[transactional_id]
        transaction.state, transaction.ending = _COMPLETE[transaction.state], None
        transaction.partitions, transaction.started_ms = {}, NONE
        self._note(transaction)

    def forget(self, partitions: Collection[Partition]) -> None:
        """Remove the partitions of a deleted topic from all transactions: they get no marker."""
        for transactional_id in self._ongoing:
            added = self._by_id[transactional_id].partitions
            for partition in partitions:
                added.pop(partition, None)

    def next_deadline(self) -> int | None:
        """When to call `fire`, in ms."""
        return self._check_at_ms if self._ongoing else None

    def fire(self, now_ms: int) -> None:
        """Abort the transactions that have taken longer than their timeout, and fence their producers."""
        if self._check_at_ms is None or now_ms < self._check_at_ms:
            return
        for transactional_id in sorted(self._ongoing):
            transaction = self._by_id[transactional_id]
            if transaction.started_ms + transaction.timeout_ms < now_ms:
                self._end(transaction, is_commit=False, bump=True)
        self._check_at_ms = now_ms + self._check_interval_ms if self._ongoing else None

    def _note_ongoing(self, transaction: Transaction, now_ms: int) -> None:
        self._ongoing.add(transaction.transactional_id)
        if self._check_at_ms is None:
            self._check_at_ms = now_ms + self._check_interval_ms

    def _note(self, transaction: Transaction) -> None:
        self.changed[transaction.transactional_id] = transaction


def _may_init(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether the producer that names this id and epoch has not been fenced by another one
    (TransactionCoordinator.prepareInitProducerIdTransit)."""
    if NONE in (producer_id, transaction.epoch):
        return True
    if producer_id == transaction.producer_id:
        return True
    return producer_id == transaction.previous_producer_id and epoch >= _LAST_EPOCH


def _is_repeated(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether an EndTxn is a repetition: it names the epoch before the one that the first EndTxn has made."""
    ended = transaction.state not in (TransactionState.EMPTY, TransactionState.ONGOING)
    if not ended or transaction.last_epoch == NONE or epoch != transaction.last_epoch:
        return False
    return producer_id in (transaction.producer_id, transaction.previous_producer_id)


def _marker(transaction: Transaction, ending: tuple[int, int]) -> Marker:
    is_commit = transaction.state is TransactionState.PREPARE_COMMIT
    return Marker(transaction.transactional_id, *ending, is_commit, tuple(sorted(transaction.partitions)))


def _answer(transaction: Transaction) -> Producer:
    return Producer(Error.NONE, transaction.producer_id, transaction.epoch)
