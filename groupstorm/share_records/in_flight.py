"""The batches that a share partition has in flight (Kafka: InFlightBatch, SharePartition.cachedState).

A batch keeps one state for all its records until something needs a part of it. Then it is split for good,
into a state for each record. Records are found by their distance from the batch's first offset, and batches
by bisection, so a request with many ranges looks at each record once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from groupstorm.share_records.states import InFlightState, RecordState
from groupstorm.share_records.timers import Timer

#: Locks the records between two offsets for a time: (first, last, ms).
SetLock = Callable[[int, int, int], Timer]


class InFlightBatch:
    """Records from ``first_offset`` to ``last_offset``: ``whole`` is their state, or else ``offsets``."""

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlightState | None = state
        self.offsets: list[InFlightState] = []

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    def within(self, first_offset: int, last_offset: int) -> bool:
        """Whether all records lie between the two offsets."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def states(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlightState]]:
        """The records of a split batch between two offsets, with their states."""
        for offset in range(max(first_offset, self.first_offset), min(last_offset, self.last_offset) + 1):
            yield offset, self.offsets[offset - self.first_offset]

    def parts(self, first_offset: int, last_offset: int) -> Iterable[tuple[int, int, InFlightState]]:
        """The states that the batch keeps for records between two offsets, each with the first and the last
        record that it is of. A state of all records is given with all of them."""
        if self.whole is not None:
            return ((self.first_offset, self.last_offset, self.whole),)
        return ((offset, offset, state) for offset, state in self.states(first_offset, last_offset))

    def split(self, set_lock: SetLock, now_ms: int) -> None:
        """Give each record a state of its own, with what is left of the batch's lock."""
        whole = self.whole
        if whole is None:
            return
        lock = whole.lock
        for offset in range(self.first_offset, self.last_offset + 1):
            own = lock and set_lock(offset, offset, lock.deadline_ms - now_ms)
            self.offsets.append(InFlightState(whole.state, whole.delivery_count, whole.member_id, own))
        whole.unlock()
        self.whole = None

    def split_new(self, last_acquired: int, set_lock: Callable[[int, int], Timer]) -> None:
        """Split a batch that is being acquired: the records behind ``last_acquired`` stay AVAILABLE."""
        whole = self.whole
        assert whole is not None
        for offset in range(self.first_offset, self.last_offset + 1):
            if offset <= last_acquired:
                lock = set_lock(offset, offset)
                state = InFlightState(whole.state, whole.delivery_count, whole.member_id, lock)
            else:
                state = InFlightState(RecordState.AVAILABLE, whole.delivery_count - 1)
            self.offsets.append(state)
        self.whole = None


class InFlightBatches:
    """Batches by their first offsets, ascending."""

    def __init__(self) -> None:
        self._first_offsets: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __bool__(self) -> bool:
        return bool(self._first_offsets)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return map(self._batches.__getitem__, self._first_offsets)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._first_offsets[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._first_offsets[-1]]

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch; one with the same first offset is replaced."""
        if batch.first_offset not in self._batches:
            self._first_offsets.insert(
                bisect_left(self._first_offsets, batch.first_offset), batch.first_offset
            )
        self._batches[batch.first_offset] = batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before the offset."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[self._first_offsets[index - 1]] if index else None

    def after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins behind the offset."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[self._first_offsets[index]] if index < len(self._first_offsets) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin between two offsets, both included."""
        start, end = bisect_left(self._first_offsets, first), bisect_right(self._first_offsets, last)
        return [self._batches[offset] for offset in self._first_offsets[start:end]]

    def drop_before(self, offset: int) -> None:
        """Forget the batches that begin before the offset."""
        index = bisect_left(self._first_offsets, offset)
        for first_offset in self._first_offsets[:index]:
            del self._batches[first_offset]
        del self._first_offsets[:index]

    def clear(self) -> None:
        self._first_offsets.clear()
        self._batches.clear()
