"""A share partition: the records of one partition that one group has in flight (Kafka: SharePartition).

It lives on the partition's leader, from the group's first fetch until the leader moves. The share coordinator
is told each change but acquisitions, and a change holds once the coordinator has confirmed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.config import GroupOptions
from groupstorm.share_records.in_flight import InFlightBatch, InFlightRecords
from groupstorm.share_records.ports import (
    CLIENT_REJECT,
    DELIVERY_COUNT_EXCEEDED,
    DeadLetter,
    DeadLetterQueue,
    KafkaError,
    LogPosition,
    NullPointer,
    Outcome,
    PartitionLog,
    Persister,
    ReadAnswer,
    SharePartitionKey,
    StateBatch,
    WriteState,
    shown_error,
)
from groupstorm.share_records.states import DeliveryRule, InFlightState, RecordState
from groupstorm.share_records.timers import Timer, Timers

_AVAILABLE, _ARCHIVED = RecordState.AVAILABLE, RecordState.ARCHIVED


class SharePartitionState(StrEnum):
    EMPTY = "EMPTY"
    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    FENCED = "FENCED"


class Change(NamedTuple):
    """A state that changes, the records that it is of, and why they would go to the dead letter queue."""

    state: InFlightState
    batch: StateBatch
    cause: str | None

    @classmethod
    def of(cls, state: InFlightState, first: int, last: int, cause: str | None = None) -> Change:
        """The change to the state that holds now."""
        if cause is None and state.state is RecordState.ARCHIVING:
            cause = DELIVERY_COUNT_EXCEEDED
        return cls(state, StateBatch(first, last, state.state, state.delivery_count), cause)


class Surroundings(NamedTuple):
    """The parts that all share partitions of a broker use.

    ``retry``: try the waiting fetches of a share partition.
    """

    timers: Timers
    persister: Persister
    dead_letters: DeadLetterQueue
    options: Callable[[str], GroupOptions]
    retry: Callable[[SharePartitionKey], None]
    keeps_defects: bool


class SharePartition(InFlightRecords):
    """The records that a group has in flight, with their locks, and their way to the share coordinator."""

    def __init__(self, key: SharePartitionKey, log: PartitionLog, around: Surroundings) -> None:
        super().__init__(keeps_defects=around.keeps_defects)
        self.key = key
        self.log = log
        self.leader_epoch = log.leader_epoch()
        self.state_epoch = 0
        self.state = SharePartitionState.EMPTY
        #: The request that works on the records now.
        self.fetch_lock: object = None
        #: The position that a request looked up in the log last.
        self.fetch_position: tuple[int, LogPosition] | None = None
        self._around = around

    @property
    def options(self) -> GroupOptions:
        return self._around.options(self.key.group)

    @property
    def rule(self) -> DeliveryRule:
        return self.options.rule

    # loading

    def initialize(self, done: Callable[[Error], None]) -> None:
        """Load the state at the first call; later ones are answered at once."""
        if self.state is not SharePartitionState.EMPTY:
            done(_INITIALIZE_AGAIN[self.state])
            return
        self.state = SharePartitionState.INITIALIZING
        self._around.persister.read(self.key, self.leader_epoch, partial(self._loaded, done))

    def _loaded(self, done: Callable[[Error], None], answer: ReadAnswer | None) -> None:
        error = shown_error(answer and answer.error)
        unwritten: list[tuple[InFlightState, StateBatch]] = []
        if answer is not None and error is Error.NONE:
            try:
                start = self._reset_offset() if answer.start == -1 else answer.start
                self.state_epoch = answer.state_epoch
                unwritten = self.load(start, answer.batches)
            except KafkaError as problem:
                error = problem.error
        self.state = SharePartitionState.ACTIVE if error is Error.NONE else SharePartitionState.FAILED
        done(error)
        for state, batch in unwritten if error is Error.NONE else ():
            is_last = batch.delivery_count >= self.rule.limit
            self._bury(Change(state, batch, DELIVERY_COUNT_EXCEEDED if is_last else CLIENT_REJECT))

    def _reset_offset(self) -> int:
        options = self.options
        if options.auto_offset_reset == "latest":
            return self.log.latest_offset()
        if options.auto_offset_reset == "earliest":
            return self.log.earliest_offset()
        return self.log.offset_at(self._around.timers.now_ms - options.reset_ms)

    # fetching

    @property
    def is_active(self) -> bool:
        return self.state is SharePartitionState.ACTIVE

    def acquirable_from(self) -> int | None:
        """The next fetch offset, where a fetch may find records: released ones, or new ones within the limit
        of locks."""
        offset = self.next_fetch_offset()
        is_new = offset == self.end_offset + 1
        if is_new and self.in_flight_count >= self.options.partition_max_record_locks:
            return None
        return offset

    def lock_for(self, fetch: object) -> bool:
        """Let one request at a time work on the records."""
        if not self.is_active or self.fetch_lock is not None:
            return False
        self.fetch_lock = fetch
        return True

    # locks

    def lock_records(self, first: int, last: int, duration_ms: int | None = None) -> Timer:
        """Lock records, for the group's duration unless another is given."""
        if duration_ms is None:
            duration_ms = self.options.record_lock_duration_ms
        return self._around.timers.schedule(duration_ms, partial(self._expire, first, last))

    def split(self, batch: InFlightBatch) -> None:
        """Give each record of the batch a state of its own."""
        batch.split(self.lock_records, self._around.timers.now_ms)

    def unlock_all(self) -> None:
        """End all locks without a word to the coordinator."""
        for batch in self.batches:
            for _, _, state in batch.parts(batch.first_offset, batch.last_offset):
                state.unlock()

    def _expire(self, first: int, last: int) -> None:
        """A lock has ended: its records are AVAILABLE in memory at once, whatever the coordinator says."""
        floor = self.batches.floor(first)
        met = () if floor is None else self.batches.between(floor.first_offset, last)
        changes = self._give_back(met, first, last, None, InFlightState.give_up)
        for change in changes:
            change.state.unlock()
            self.has_released |= change.state.state is _AVAILABLE
        if changes:
            self._write([change.batch for change in changes], partial(self._expiry_written, changes))
            self._around.retry(self.key)

    def release_all(self, member_id: str, done: Callable[[Error], None]) -> None:
        """Release what the member holds, as its session ends."""
        outcome = Outcome(done)
        every = self._give_back(self.batches, 0, self.end_offset, member_id, InFlightState.begin)
        self.commit(every, outcome.complete)
        outcome.attach()

    def _give_back(
        self,
        batches: Iterable[InFlightBatch],
        first: int,
        last: int,
        member_id: str | None,
        give_up: Callable[[InFlightState, RecordState, DeliveryRule], bool],
    ) -> list[Change]:
        """Give locked records up, those of one member or all; those in front of the start are ARCHIVED."""
        changes: list[Change] = []
        rule = self.rule
        for batch in batches:
            is_cut = self.start_within(batch.first_offset, batch.last_offset)
            if is_cut and batch.whole is not None and batch.whole.is_held(member_id):
                self.split(batch)
            for begin, end, state in batch.parts(first, last):
                wanted = _ARCHIVED if end < self.start_offset else _AVAILABLE
                if state.is_held(member_id) and give_up(state, wanted, rule):
                    changes.append(Change.of(state, begin, end))
                    if state.state.is_terminal:
                        self.complete_count += self.count_from_start(begin, end)
        return changes

    def _expiry_written(self, changes: Sequence[Change], _error: Error) -> None:
        try:
            self.move_start()
        except NullPointer:
            return  # and the dead letters are forgotten
        for change in changes:
            if change.batch.state is RecordState.ARCHIVING:
                self._bury(change)

    # changes that the coordinator confirms

    def undo(self, changes: Sequence[Change]) -> None:
        """Take changes back that cannot be made."""
        for change in changes:
            change.state.complete(confirmed=False)
            self.has_released |= change.state.state is _AVAILABLE
            if change.batch.state.is_terminal and not change.state.state.is_terminal:
                self.complete_count -= self.count_from_start(
                    change.batch.first_offset, change.batch.last_offset
                )

    def commit(self, changes: Sequence[Change], done: Callable[[Error], None]) -> None:
        """Write changes, and complete them as the coordinator answers."""
        if changes:
            self._write([change.batch for change in changes], partial(self._committed, changes, done))
        else:
            done(Error.NONE)

    def _committed(self, changes: Sequence[Change], done: Callable[[Error], None], error: Error) -> None:
        if error is not Error.NONE:
            self.undo(changes)
            done(error)
            return
        for change in changes:
            change.state.complete(confirmed=True)
            self.has_released |= change.state.state is _AVAILABLE
        buried = [change for change in changes if change.state.state is RecordState.ARCHIVING]
        try:
            moved = self.move_start()
        except NullPointer:
            done(error)  # and the dead letters are forgotten
            return
        done(error)
        if moved:
            self._around.retry(self.key)
        for change in buried:
            self._bury(change)

    def _write(self, batches: Sequence[StateBatch], done: Callable[[Error], None]) -> None:
        request = WriteState(
            self.key, self.state_epoch, self.leader_epoch, self.start_offset, self.complete_count, batches
        )
        self._around.persister.write(request, lambda answer: done(shown_error(answer)))

    def _bury(self, change: Change) -> None:
        """Hand records to the dead letter queue; they are ARCHIVED afterwards, whatever it answers."""
        first, last, _, count = change.batch
        letter = DeadLetter(self.key, first, last, count, change.cause or DELIVERY_COUNT_EXCEEDED)
        self._around.dead_letters.enqueue(letter, partial(self._buried, change))

    def _buried(self, change: Change) -> None:
        change.state.archive()
        first, last, _, count = change.batch
        self.complete_count += self.count_from_start(first, last)
        self._write([StateBatch(first, last, _ARCHIVED, count)], self._burial_written)

    def _burial_written(self, _error: Error) -> None:
        has_moved = False
        with suppress(NullPointer):  # Kafka does not notice it here
            has_moved = self.move_start()
        if has_moved:
            self._around.retry(self.key)


_INITIALIZE_AGAIN = {
    SharePartitionState.ACTIVE: Error.NONE,
    SharePartitionState.INITIALIZING: Error.LEADER_NOT_AVAILABLE,
    SharePartitionState.FENCED: Error.LEADER_NOT_AVAILABLE,
    SharePartitionState.FAILED: Error.UNKNOWN_SERVER_ERROR,
}
