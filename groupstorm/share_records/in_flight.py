"""The records that a share partition has in flight: their batches (Kafka: InFlightBatch,
SharePartition.cachedState), where they begin and end, and what may be next (the part of SharePartition that
neither waits nor writes).

A batch keeps one state for all its records until something needs a part of it. Then it is split for good,
into a state for each record. Records are found by their distance from the batch's first offset, and batches
by bisection, so a request with many ranges looks at each record once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.ports import KafkaError, NullPointer, StateBatch
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


@dataclass(slots=True)
class GapWindow:
    """The offsets of a loaded partition among which may be records without a state."""

    start_offset: int
    end_offset: int


class InFlightRecords(ABC):
    """In-flight batches between two offsets: all before ``start_offset`` is done, all behind the end is new.

    Once nothing is in flight both are the next offset to come; otherwise the end is the last one in flight.
    """

    def __init__(self, *, keeps_defects: bool) -> None:
        self.start_offset = 0
        self.end_offset = 0
        #: The terminal records from the start offset on.
        self.complete_count = 0
        self.batches = InFlightBatches()
        self.gap: GapWindow | None = None
        #: A record before the end may be acquirable.
        self.has_released = False
        self.keeps_defects = keeps_defects

    @abstractmethod
    def split(self, batch: InFlightBatch) -> None:
        """Give each record of the batch a state of its own."""

    def load(self, start: int, stored: Sequence[StateBatch]) -> list[tuple[InFlightState, StateBatch]]:
        """Take over what the share coordinator has stored; the result: the records that are ARCHIVING."""
        self.start_offset = start
        archiving, gap_start, last = [], -1, start - 1
        for one in stored:
            if one.first_offset < start or one.last_offset < one.first_offset:
                raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
            if gap_start == -1 and one.first_offset > last + 1:
                gap_start = last + 1
            last = one.last_offset
            state = InFlightState(one.state, one.delivery_count)
            self.batches.put(InFlightBatch(one.first_offset, last, state))
            if one.state.is_terminal:
                self.complete_count += last - one.first_offset + 1
            elif one.state is RecordState.ARCHIVING:
                archiving.append((state, one))
        if self.batches:
            self.has_released = True
            self.end_offset = self.batches.last.last_offset
            if gap_start != -1:
                self.gap = GapWindow(gap_start, self.end_offset)
            self.move_start()
        else:
            self.end_offset = start
        return archiving

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def open_gap(self) -> GapWindow | None:
        """The gap window while no new records have moved the end."""
        return self.gap if self.gap is not None and self.gap.end_offset == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """The first offset that can be acquired: of a released record, of the gap window, or a new one."""
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            self.has_released = False
            return self.end_offset
        if self.has_released:
            found = self._first_acquirable()
            if found is not None:
                return found
            self.has_released = False
        return self.end_offset + 1

    def _first_acquirable(self) -> int | None:
        gap = self.open_gap
        gap_start = -1 if gap is None else gap.start_offset
        for batch in self.batches:
            if gap is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            for first, _, state in batch.parts(batch.first_offset, batch.last_offset):
                if state.is_acquirable:
                    return first
        return None

    def move_gap(self, offset: int) -> None:
        """Records before the offset have been acquired: the gap window begins behind them, or closes."""
        gap = self.open_gap
        if gap is not None and offset <= gap.end_offset:
            gap.start_offset = offset
        else:
            self.gap = None

    def start_within(self, first: int, last: int) -> bool:
        """Whether the start offset lies behind the first of these records, and not behind the last."""
        return first < self.start_offset <= last

    # the start offset

    def count_from_start(self, first: int, last: int) -> int:
        return last - max(self.start_offset, first) + 1 if last >= self.start_offset else 0

    def move_start(self) -> bool:
        """Move the start over the terminal records at the front; False if the first one is not terminal."""
        if not self._is_start_done():
            return False
        last, count = self._last_done()
        if last is None:
            return False
        end = self.batches.last.last_offset
        if last == end:
            self.start_offset = self.end_offset = end + 1
            self.batches.clear()
            self.complete_count = 0
            return True
        batch = self.batches.floor(last)
        following = self.batches.after(last)
        assert batch is not None
        if last == batch.last_offset:
            assert following is not None
            self.start_offset = max(self.start_offset, following.first_offset)
            if self.open_gap is not None:
                self.start_offset = min(self.open_gap.start_offset, self.start_offset)
            self.batches.drop_before(following.first_offset)
        else:
            self.start_offset = max(self.start_offset, last + 1)
            self.batches.drop_before(batch.first_offset)
        self.complete_count -= count
        return True

    def _is_start_done(self) -> bool:
        batch = self.batches.floor(self.start_offset) if self.batches else None
        if batch is None:
            return False
        state = batch.whole
        if state is None:
            if batch.last_offset < self.start_offset:
                if self.keeps_defects:
                    raise NullPointer
                return False
            state = batch.offsets[self.start_offset - batch.first_offset]
        return not state.is_changing and state.state.is_terminal

    def _last_done(self) -> tuple[int | None, int]:
        """The last offset of the terminal records at the front, and how many of them are counted."""
        last, count = None, 0
        gap = self.open_gap
        for batch in self.batches:
            if gap is not None and batch.last_offset >= gap.start_offset:
                break
            for first, end, state in batch.parts(batch.first_offset, batch.last_offset):
                if state.is_changing or not state.state.is_terminal:
                    return last, count
                last = end
                count += self.count_from_start(first, end)
        return last, count

    # records that the log lost

    def follow_log_start(self, log_start: int) -> None:
        """Records before the log's start are gone: AVAILABLE ones are ARCHIVED, in memory alone."""
        if log_start <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start
            self.complete_count = 0
            return
        lost = self._terminal_before(log_start)
        if self.archive(RecordState.AVAILABLE, self.start_offset, log_start - 1, self.batches):
            self.has_released = True
        self.start_offset = log_start
        self.complete_count -= lost
        self.end_offset = max(self.end_offset, log_start)

    def _terminal_before(self, log_start: int) -> int:
        return sum(
            self.count_from_start(first, min(log_start - 1, last))
            for batch in self.batches.between(self.batches.first.first_offset, log_start - 1)
            for first, last, state in batch.parts(self.start_offset, log_start - 1)
            if state.state.is_terminal
        )

    def archive_stale(self, fetch_offset: int, base_offset: int) -> None:
        """The log has nothing from the one offset to the other: AVAILABLE records between them are gone."""
        if not self.batches or fetch_offset >= base_offset:
            return
        floor = self.batches.floor(fetch_offset)
        first = floor.first_offset if floor and floor.last_offset >= fetch_offset else fetch_offset
        batches = self.batches.between(first, base_offset - 1)
        count = self.archive(RecordState.AVAILABLE, fetch_offset, base_offset - 1, batches)
        self.complete_count += count
        self.has_released |= count > 0

    def archive(self, of_state: RecordState, first: int, last: int, batches: Iterable[InFlightBatch]) -> int:
        """Archive the records of a state between two offsets; the result: how many."""
        count = 0
        for batch in batches:
            if batch.first_offset > last:
                break
            whole = batch.whole
            if whole is not None:
                if whole.state is not of_state:
                    continue
                if batch.within(first, last):
                    whole.archive()
                    count += len(batch)
                    continue
                self.split(batch)
            for _, state in batch.states(first, last):
                if state.state is of_state:
                    state.archive()
                    count += 1
        return count
