"""The records of a partition that a group has in flight: where they begin and end, and what may be next.

Kafka: the part of SharePartition that neither waits nor writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.in_flight import InFlightBatch, InFlightBatches
from groupstorm.share_records.ports import KafkaError, NullPointer, StateBatch
from groupstorm.share_records.states import InFlightState, RecordState


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
