"""Acquires the records that a fetch has read, for its member (Kafka: SharePartition.acquire)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.in_flight import InFlightBatch
from groupstorm.share_records.partition import SharePartition
from groupstorm.share_records.ports import KafkaError, LogRead, RecordBatch, batches_up_to
from groupstorm.share_records.states import InFlightState, RecordState
from groupstorm.share_records.timers import Timer

#: First and last offset.
Range = tuple[int, int]
_last = itemgetter(1)


class AcquireRequest(NamedTuple):
    """The request of a fetch. ``has_record_limit``: exactly so many records, not whole batches."""

    member_id: str
    has_record_limit: bool
    batch_size: int
    is_committed: bool


class Acquired(NamedTuple):
    """Records that a member has been given, and the how-manieth delivery it is."""

    first_offset: int
    last_offset: int
    delivery_count: int


def acquire(
    partition: SharePartition, request: AcquireRequest, max_records: int, fetch_offset: int, read: LogRead
) -> tuple[list[Acquired], int]:
    """The records that the member gets, and how many count as got.

    Raises KafkaError where Kafka throws: an aborted batch that begins before all records in flight.
    """
    batches = read.batches
    if not partition.is_active or max_records <= 0 or not batches:
        return [], 0
    last = batches[-1].last_offset
    if last < partition.start_offset:
        return [], 0
    wanted = min(max_records, partition.options.partition_max_record_locks - partition.in_flight_count)
    if wanted <= 0 and fetch_offset <= partition.end_offset:
        # no new locks, but released records before the end
        wanted = min(max_records, partition.end_offset - fetch_offset + 1)
        last = min(last, partition.end_offset)
    if wanted <= 0:
        return [], 0
    partition.archive_stale(fetch_offset, batches[0].base_offset)
    work = _Acquisition(partition, request, batches, last, wanted)
    work.run()
    if request.is_committed and read.aborted and work.acquired:
        aborted = _aborted_batches(batches, read.aborted)
        _archive_aborted(partition, aborted)
        acquired = _without(work.acquired, aborted)
        return acquired, sum(one.last_offset - one.first_offset + 1 for one in acquired)
    return work.acquired, work.count


class _Acquisition:
    """One acquisition: ``acquired`` are the ranges so far, ``count`` is their number of records."""

    def __init__(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        batches: Sequence[RecordBatch],
        last: int,
        wanted: int,
    ) -> None:
        self.acquired: list[Acquired] = []
        self.count = 0
        self._partition = partition
        self._request = request
        self._batches = batches
        self._last = last
        self._wanted = wanted

    def run(self) -> None:
        partition = self._partition
        first = base = self._batches[0].base_offset
        floor = partition.batches.floor(base)
        if floor is None:
            base = max(base, partition.start_offset)
        elif floor.last_offset >= base:
            base = floor.first_offset
        if min(first, base) > self._last and partition.keeps_defects:
            raise KafkaError(Error.UNKNOWN_SERVER_ERROR)  # a range of offsets that ends before it begins
        met = partition.batches.between(min(first, base), self._last)
        if not met:
            if base <= self._last:
                self._acquire_new(base, self._last)
            return
        self._acquire_met(met, base)
        if self.count < self._wanted and met[-1].last_offset < self._last:
            self._acquire_new(met[-1].last_offset + 1, self._last)
        if self.acquired:
            partition.move_gap(self.acquired[-1].last_offset + 1)

    def _acquire_met(self, met: Sequence[InFlightBatch], gap_start: int) -> None:
        """Go through the batches in flight. After a throttled one nothing more is wanted."""
        partition = self._partition
        first = self._batches[0].base_offset
        for batch in met:
            if self.count >= self._wanted:
                return
            if partition.open_gap is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self.count >= self._wanted:
                    return
            throttles = self._throttles(batch, first)
            if throttles and self.count:
                self._wanted = 0
                return
            remaining = self._wanted - self.count
            whole = batch.whole
            if whole is not None and not whole.is_acquirable:
                continue
            is_part = self._request.has_record_limit and len(batch) > remaining
            if whole is not None and batch.within(first, self._last) and not is_part and not throttles:
                self._acquire_whole(batch, whole)
                continue
            partition.split(batch)
            if self._acquire_offsets(batch, first, remaining) and throttles:
                self._wanted = 0
                return

    def _throttles(self, batch: InFlightBatch, first: int) -> bool:
        """Whether an acquirable record has been delivered so often that its batch is delivered alone."""
        limit = self._partition.rule.throttled_from
        if batch.whole is not None:
            return batch.whole.is_acquirable and batch.whole.delivery_count >= limit
        states = batch.states(first, self._last)
        return any(state.is_acquirable and state.delivery_count >= limit for _, state in states)

    def _acquire_whole(self, batch: InFlightBatch, state: InFlightState) -> None:
        self._take(state, batch.first_offset, batch.last_offset)
        self.acquired.append(Acquired(batch.first_offset, batch.last_offset, state.delivery_count))
        self.count += len(batch)

    def _take(self, state: InFlightState, first: int, last: int) -> None:
        state.acquire(self._request.member_id)
        lock = self._partition.lock_records(first, last)
        if state.lock is not None:
            # the log's start split a batch whose release was under way: its records kept the lock
            if self._partition.keeps_defects:
                raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
            state.unlock()
        state.lock = lock

    def _acquire_offsets(self, batch: InFlightBatch, first: int, remaining: int) -> int:
        """Acquire records one by one; the result: how many."""
        partition = self._partition
        rule = partition.rule
        taken: list[Acquired] = []
        count = 0
        most = None
        for offset, state in batch.states(first, self._last):
            if not state.is_acquirable:
                continue
            delivered = state.delivery_count
            is_last_delivery = rule.limit > 2 and delivered == rule.limit - 1
            if is_last_delivery and count:
                break
            if delivered >= rule.throttled_from and most is None:
                most = max(1, len(batch) >> (delivered - rule.throttled_from + 1))
            self._take(state, offset, offset)
            count += 1
            if taken and taken[-1].last_offset == offset - 1 and taken[-1].delivery_count == delivered + 1:
                taken[-1] = taken[-1]._replace(last_offset=offset)
            else:
                taken.append(Acquired(offset, offset, delivered + 1))
            is_enough = self._request.has_record_limit and count == remaining
            if is_last_delivery or is_enough or count == most:
                break
        self.acquired += taken
        self.count += count
        return count

    def _acquire_new(self, first: int, last: int) -> None:
        """Acquire records without a state, in whole batches of the log."""
        partition = self._partition
        wanted = self._wanted - self.count
        if not partition.batches and partition.end_offset > first:
            first = partition.end_offset
        if wanted < last - first + 1:
            end = self._end_of_batch(first + wanted - 1)
            last = min(end, last) if partition.open_gap is not None else end
        if self._request.has_record_limit:
            new = [self._acquire_limited(first, last, wanted)]
        else:
            new = self._cut(first, last)
            for one in new:
                self._put(one, partition.lock_records(one.first_offset, one.last_offset))
        if partition.batches.first.first_offset == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        got = new[-1].last_offset
        partition.move_gap(got + 1)
        self.acquired += new
        self.count += got - first + 1

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the log's batch that holds the offset; the offset itself between batches."""
        index = batches_up_to(self._batches, offset)
        return max(offset, self._batches[index - 1].last_offset) if index else offset

    def _cut(self, first: int, last: int) -> list[Acquired]:
        """Cut at the first boundary of the log's batches behind each ``batch_size`` records."""
        size = self._request.batch_size
        cut = []
        if last - first + 1 > size:
            for batch in self._batches:
                if batch.base_offset > last:
                    break
                if batch.base_offset - first >= size:
                    cut.append(Acquired(first, batch.base_offset - 1, 1))
                    first = batch.base_offset
        return [*cut, Acquired(first, last, 1)]

    def _put(self, one: Acquired, lock: Timer | None) -> InFlightBatch:
        state = InFlightState(RecordState.ACQUIRED, 1, self._request.member_id, lock)
        batch = InFlightBatch(one.first_offset, one.last_offset, state)
        self._partition.batches.put(batch)
        return batch

    def _acquire_limited(self, first: int, last: int, wanted: int) -> Acquired:
        """Acquire so many records. The rest of the batch is in flight, too, and was never delivered."""
        partition = self._partition
        got = Acquired(first, min(last, first + wanted - 1), 1)
        if got.last_offset == last:
            self._put(got, partition.lock_records(first, last))
        else:
            batch = self._put(Acquired(first, last, 1), None)
            batch.split_new(got.last_offset, partition.lock_records)
            partition.has_released = True
        return got


def _aborted_batches(batches: Sequence[RecordBatch], aborted: Sequence[tuple[int, int]]) -> list[RecordBatch]:
    """The batches of transactions that were aborted, as a consumer with read_committed finds them."""
    begun = deque(sorted(aborted, key=lambda one: one[1]))
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id is None:
            continue
        while begun and begun[0][1] <= batch.last_offset:
            producers.add(begun.popleft()[0])
        if batch.is_abort:
            producers.discard(batch.producer_id)
        elif batch.producer_id in producers:
            found.append(batch)
    return found


def _archive_aborted(partition: SharePartition, aborted: Sequence[RecordBatch]) -> None:
    for batch in aborted:
        floor = partition.batches.floor(batch.base_offset)
        if floor is None and partition.keeps_defects:
            raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
        first = batch.base_offset if floor is None else floor.first_offset
        met = partition.batches.between(first, batch.last_offset)
        partition.complete_count += partition.archive(
            RecordState.ACQUIRED, batch.base_offset, batch.last_offset, met
        )


def _without(acquired: Sequence[Acquired], aborted: Sequence[RecordBatch]) -> list[Acquired]:
    """The ranges without the records of these batches, which ascend."""
    gone = [(batch.base_offset, batch.last_offset) for batch in aborted]
    return [
        Acquired(first, last, one.delivery_count)
        for one in acquired
        for first, last in rest_of(one.first_offset, one.last_offset, gone)
    ]


def rest_of(first: int, last: int, gone: Sequence[Range]) -> Iterator[Range]:
    """The parts of a range that lie in none of the others, which ascend and do not overlap."""
    for index in range(bisect_left(gone, first, key=_last), len(gone)):
        if gone[index][0] > last:
            break
        if first < gone[index][0]:
            yield first, gone[index][0] - 1
        first = gone[index][1] + 1
    if first <= last:
        yield first, last
