"""Fetches that wait for records (Kafka: DelayedShareFetch, ShareFetchUtils, DelayedOperationPurgatory).

A fetch works on the share partitions that it could lock. A partition whose next fetch offset is not the one
that was looked up last is looked up in the log; its records count if the fetch can then be answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acquisition import Acquired, AcquireRequest, acquire
from groupstorm.share_records.messages import Fetched, FetchedPartition, ShareFetch
from groupstorm.share_records.partition import SharePartition
from groupstorm.share_records.ports import (
    Cluster,
    KafkaError,
    LogRead,
    RecordBatch,
    SharePartitionKey,
    TopicPartition,
    batches_up_to,
)
from groupstorm.share_records.timers import Timer, Timers
from groupstorm.turns import Turns, at_once

#: A fetch waits for a change of a share partition, or for records of a partition.
WatchKey = SharePartitionKey | TopicPartition
#: Nothing happens between two steps of a fetch of so few partitions.
_FEW = 30
#: A fetch of more partitions is tried in turns whenever something happens.
_AT_ONCE = 300


class FetchSurroundings:
    """The parts that all fetches of a broker use.

    ``drop``: a share partition may have to go after an error. ``carry_out``: carries out long work in turns.
    """

    def __init__(
        self,
        timers: Timers,
        cluster: Cluster,
        drop: Callable[[SharePartitionKey, Error], None],
        carry_out: Callable[[Turns[Any]], object],
    ) -> None:
        self.timers = timers
        self.cluster = cluster
        self.drop = drop
        self._carry_out = carry_out
        #: Actions that wait until the request is worked on (ActionQueue).
        self.deferred: list[Callable[[], None]] = []
        self._watchers: dict[WatchKey, list[DelayedShareFetch]] = defaultdict(list)
        #: Fetches that have locked partitions and go on later, and what has happened meanwhile.
        self._paused = 0
        self._missed: dict[WatchKey, None] = {}

    def watch(self, fetch: DelayedShareFetch) -> Turns[None]:
        """Answer the fetch now if possible, otherwise as it gets possible, or at the end of its wait."""
        if (yield from self._in_turns(fetch, fetch.attempt())):
            return
        for partition, share_partition in fetch.share_partitions.items():
            self._watchers[share_partition.key].append(fetch)
            self._watchers[partition].append(fetch)
        # nobody told a fetch that did not wait yet; in one step nothing happened
        happened = fetch.errors or not fetch.is_short
        if not happened or not (yield from self._in_turns(fetch, fetch.attempt())):
            fetch.timer = self.timers.schedule(fetch.request.max_wait_ms, partial(self._expire, fetch))

    def _expire(self, fetch: DelayedShareFetch) -> None:
        self._work(self._in_turns(fetch, fetch.force_complete()), (fetch,))

    def _work(self, turns: Turns[Any], fetches: Iterable[DelayedShareFetch]) -> None:
        _ = self._carry_out(turns) if any(fetch.is_long for fetch in fetches) else at_once(turns)

    def _in_turns(self, fetch: DelayedShareFetch, turns: Turns[bool]) -> Turns[bool]:
        """Try to answer the fetch. What happens between the turns is looked at again behind them."""
        is_answered = None
        while is_answered is None:
            try:
                work = next(turns)
            except StopIteration as end:
                is_answered = bool(end.value)
            else:
                self._paused += 1
                yield work
                self._paused -= 1
        if self._missed and not self._paused:
            missed, self._missed = self._missed, {}
            self.retry(*missed)
        return is_answered or fetch.is_completed

    def retry(self, *keys: WatchKey) -> None:
        """Something has happened to what fetches wait for. Long fetches are tried one after the other."""
        waiting = dict.fromkeys([fetch for key in keys for fetch in self._watchers.get(key, ())])
        if self._paused:
            self._missed.update(dict.fromkeys(keys))
            waiting = {fetch: None for fetch in waiting if not fetch.is_long}
        if waiting:
            self._work(self._retry(keys, waiting), waiting)

    def _retry(self, keys: Iterable[WatchKey], waiting: Iterable[DelayedShareFetch]) -> Turns[None]:
        failed: object = None
        for fetch in waiting:
            if fetch.is_completed or (fetch.needs == failed and not fetch.errors):
                continue
            is_answered = yield from self._in_turns(fetch, fetch.attempt())
            failed = None if is_answered or fetch.errors else fetch.needs
        for key in keys:
            before = self._watchers.pop(key, ())
            if before and (still := [fetch for fetch in before if not fetch.is_completed]):
                self._watchers[key] = still


class DelayedShareFetch:
    """A fetch until its answer, which ``done`` gets. ``max_bytes``: within the broker's limit."""

    def __init__(
        self,
        request: ShareFetch,
        max_bytes: int,
        is_committed: bool,
        around: FetchSurroundings,
        done: Callable[[Fetched], None],
    ) -> None:
        self.request = request
        #: The partitions that are loaded, or will be, in the order of work.
        self.share_partitions: dict[TopicPartition, SharePartition] = {}
        #: The partitions that are answered with an error alone.
        self.errors: dict[TopicPartition, Error] = {}
        self.is_completed = False
        self.timer: Timer | None = None
        self._max_bytes = max_bytes
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._acquires = AcquireRequest(
            request.member_id, request.has_record_limit, request.batch_size, is_committed
        )
        self._around = around
        self._done = done
        self._needs: Hashable = None

    @property
    def needs(self) -> Hashable:
        """A fetch with the same needs as one that cannot be answered cannot be answered either."""
        if self._needs is None:  # from now on its partitions stay the same
            read = self._min_bytes, self._max_bytes, self._acquires.is_committed
            self._needs = frozenset(self.share_partitions.values()), *read
        return self._needs

    def answer(self, found: Fetched) -> None:
        self._done({**found, **{key: FetchedPartition(error) for key, error in self.errors.items()}})

    @property
    def is_long(self) -> bool:
        return len(self.share_partitions) > _AT_ONCE

    @property
    def is_short(self) -> bool:
        return len(self.share_partitions) <= _FEW

    def attempt(self) -> Turns[bool]:
        """Answer if the records are there, or if a log cannot be read. Partitions are locked meanwhile."""
        offsets = self._lock_acquirable()
        if not offsets:
            return False
        has_turns = not self.is_short
        if has_turns:
            yield len(offsets)
        try:
            reads = self._look_up(offsets)
            if has_turns:
                yield len(offsets)
            has_error = any(read.error is not Error.NONE for read in reads.values())
            is_ready = has_error or self._has_min_bytes(offsets)
        except KafkaError:
            self._unlock(offsets)
            return (yield from self._complete({}, {}))
        if has_turns:
            yield len(offsets)
        if is_ready:
            return (yield from self._complete(offsets, reads))
        self._unlock(offsets)
        return False

    def force_complete(self) -> Turns[bool]:
        """Answer with what there is, at the end of the wait."""
        return self._complete({}, {})

    def _complete(
        self, offsets: dict[TopicPartition, int], reads: dict[TopicPartition, LogRead]
    ) -> Turns[bool]:
        if self.is_completed:  # its wait has ended between the turns
            self._unlock(offsets)
            return False
        self.is_completed = True
        if self.timer is not None:
            self.timer.cancel()
        has_turns = not self.is_short
        if not offsets:
            offsets = self._lock_acquirable()
            if has_turns:
                yield len(offsets)
        if not offsets:
            self.answer({})
            return True
        try:
            missing = {key: offset for key, offset in offsets.items() if key not in reads}
            if missing:
                reads = {**self._read(missing, len(offsets)), **reads}
            if has_turns:
                yield len(missing)
            found = self._process(offsets, reads)
            if has_turns:
                yield len(offsets)
            self.answer(found)
        except KafkaError as problem:
            for key in offsets:
                self._around.drop(self._key(key), problem.error)
            self.errors |= dict.fromkeys(offsets, problem.error)
            self.answer({})
        self._unlock(offsets)
        with_data = [key for key, read in reads.items() if read.batches]
        if with_data:
            self._around.deferred.append(partial(self._retry_others, with_data))
        return True

    def _retry_others(self, partitions: Iterable[TopicPartition]) -> None:
        self._around.retry(*[one for key in partitions for one in (self._key(key), key)])

    def _key(self, partition: TopicPartition) -> SharePartitionKey:
        return self.share_partitions[partition].key

    def _lock_acquirable(self) -> dict[TopicPartition, int]:
        """Lock the share partitions that may have records; the result: their next fetch offsets."""
        offsets = {}
        for key, share_partition in self.share_partitions.items():
            if share_partition.lock_for(self):
                offset = share_partition.acquirable_from()
                if offset is not None:
                    offsets[key] = offset
                else:
                    share_partition.fetch_lock = None
        return offsets

    def _unlock(self, partitions: Iterable[TopicPartition]) -> None:
        for key in partitions:
            self.share_partitions[key].fetch_lock = None

    def _look_up(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, LogRead]:
        """Read the partitions whose next fetch offset is not the remembered one, and remember it."""
        unknown = {}
        for key, offset in offsets.items():
            known = self.share_partitions[key].fetch_position
            if known is None or known[0] != offset:
                unknown[key] = offset
        reads = self._read(unknown, len(offsets)) if unknown else {}
        for key, read in reads.items():
            if read.error is Error.NONE and read.position is not None:
                self.share_partitions[key].fetch_position = (offsets[key], read.position)
        return reads

    def _has_min_bytes(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether the logs hold enough bytes behind the next fetch offsets, whoever has acquired them."""
        sizes = _divide(self._max_bytes, len(offsets), len(offsets))
        total = 0
        for (key, offset), size in zip(offsets.items(), sizes, strict=True):
            try:
                log = self._around.cluster.log(key)
                end = log.end(is_committed=self._acquires.is_committed)
            except KafkaError as problem:
                self.errors[key] = problem.error
                self._around.drop(self._key(key), problem.error)
                continue
            known = self.share_partitions[key].fetch_position
            if known is None or known[0] != offset:
                continue
            start = known[1]
            if start.offset > end.offset:
                return True
            if start.offset < end.offset:
                missing = max(self._min_bytes - total, 0)
                total += log.bytes_between(start, end, min(size, missing))
        return total >= self._min_bytes

    def _read(self, offsets: Mapping[TopicPartition, int], working: int) -> dict[TopicPartition, LogRead]:
        """Read partitions one after the other: the first that has records gives one batch at least."""
        reads: dict[TopicPartition, LogRead] = {}
        sizes = _divide(self._max_bytes, len(offsets), working)
        left, is_first = self._max_bytes, True
        for (key, offset), size in zip(offsets.items(), sizes, strict=True):
            if key in self.errors:
                continue
            is_committed, most = self._acquires.is_committed, min(size, left)
            try:
                log = self._around.cluster.log(key)
                read = log.read(offset, most, one_at_least=is_first, is_committed=is_committed)
            except KafkaError as problem:
                read = LogRead(problem.error)
            reads[key] = read
            left = max(0, left - read.size)
            is_first = is_first and not read.size
        return reads

    def _process(
        self, offsets: Mapping[TopicPartition, int], reads: Mapping[TopicPartition, LogRead]
    ) -> Fetched:
        """Acquire from what was read, in that order, until the member has records enough."""
        found: Fetched = {}
        count = 0
        for key, read in reads.items():
            share_partition = self.share_partitions[key]
            if read.error is Error.OFFSET_OUT_OF_RANGE:
                try:
                    earliest = share_partition.log.earliest_offset()
                except KafkaError as problem:
                    self.errors[key] = problem.error
                    self._around.drop(self._key(key), problem.error)
                    continue
                share_partition.follow_log_start(earliest)
                found[key] = FetchedPartition()
            elif read.error is not Error.NONE:
                found[key] = FetchedPartition(read.error)
            else:
                left = self.request.max_records - count
                acquired, number = acquire(share_partition, self._acquires, left, offsets[key], read)
                count += number if acquired else 0
                batches = _overlapping(read.batches, acquired) if acquired else ()
                found[key] = FetchedPartition(Error.NONE, acquired, batches)
        return found


def _overlapping(batches: Sequence[RecordBatch], acquired: Sequence[Acquired]) -> Sequence[RecordBatch]:
    """The batches from the one that holds the first acquired record to the one that holds the last."""
    if len(batches) == 1:
        return batches
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    start = max(batches_up_to(batches, first) - 1, 0)
    return batches[start : max(batches_up_to(batches, last), start + 1)]


def _divide(size: int, partitions: int, working: int) -> list[int]:
    """The bytes of a request for each of so many partitions (PartitionMaxBytesStrategy).

    Kafka gives what is left over to a partition that it draws. Here it is not given to anybody, and a request
    with fewer bytes than partitions gives one to the first of them.
    """
    if size <= 0:
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
    if size >= partitions:
        return [size // (working if size >= working else partitions)] * partitions
    return [1] * size + [0] * (partitions - size)
