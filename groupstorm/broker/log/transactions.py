"""The transactions of one partition: those that are open, and those that were aborted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupstorm.broker.log.batches import Batch


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
