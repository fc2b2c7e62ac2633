"""Acknowledgements of a member for its records.

Kafka: KafkaApis.validateAcknowledgementBatches, SharePartition.acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.in_flight import InFlightBatch
from groupstorm.share_records.partition import Change, SharePartition
from groupstorm.share_records.ports import CLIENT_REJECT, KafkaError, NullPointer, Outcome
from groupstorm.share_records.states import (
    ACKNOWLEDGED_AS,
    AcknowledgeType,
    DeliveryRule,
    InFlightState,
    RecordState,
)
from groupstorm.turns import Turns

_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
_BATCH_IS_FREE = "The batch cannot be acknowledged. The batch is not in the acquired state."
_IS_CHANGING = "The record state is invalid. The acknowledgement of delivery could not be completed."


def _state_error(sentence: str) -> KafkaError:
    return KafkaError(Error.INVALID_RECORD_STATE, sentence)


class AcknowledgementBatch(NamedTuple):
    """A range of offsets, with one type for all of them or one type for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def type_of(self, offset: int) -> int:
        return self.types[offset - self.first_offset] if len(self.types) > 1 else self.types[0]


def is_valid(batch: AcknowledgementBatch, before: int, *, knows_renewal: bool, is_renewal: bool) -> bool:
    """Whether a range is well-formed that follows one with ``before`` as its last offset, which it may
    share."""
    first, last, types = batch
    if first > last or first < before or len(types) not in (1, last - first + 1):
        return False
    highest = AcknowledgeType.RENEW if knows_renewal else AcknowledgeType.REJECT
    if min(types) < AcknowledgeType.GAP or max(types) > highest:
        return False
    return is_renewal or AcknowledgeType.RENEW not in types


def acknowledge(
    partition: SharePartition,
    member_id: str,
    batches: Iterable[AcknowledgementBatch],
    done: Callable[[Error], None],
) -> Turns[str | None]:
    """Work on the ranges in order. The first that fails ends it and undoes the others; the result: why.

    A unit of work is a record of a split batch, or a whole batch. Between the turns nobody else can change
    the records whose changes have begun. Raises NullPointer where Kafka follows one.
    """
    why = None
    work = _Acknowledgement(partition, member_id)
    outcome = Outcome(done)
    try:
        for batch in batches:
            if batch.last_offset >= partition.start_offset:
                yield from work.acknowledge(batch)
    except KafkaError as problem:
        partition.undo(work.changes)
        outcome.complete(problem.error)
        why = problem.sentence
    else:
        partition.commit(work.changes, outcome.complete)
    outcome.attach()
    return why


class _Acknowledgement:
    """The acknowledgements of one member in one request; ``changes`` have begun."""

    def __init__(self, partition: SharePartition, member_id: str) -> None:
        self.changes: list[Change] = []
        self._partition = partition
        self._member_id = member_id
        self._rule: DeliveryRule = partition.rule

    def acknowledge(self, batch: AcknowledgementBatch) -> Turns[None]:
        """Begin the changes of one range. Raises KafkaError."""
        partition = self._partition
        for met in self._met(batch):
            if met.last_offset < partition.start_offset:
                continue
            whole = met.whole
            if whole is not None:
                self._check(whole)
                is_whole = met.within(batch.first_offset, batch.last_offset) and len(batch.types) == 1
                if is_whole and not partition.start_within(met.first_offset, met.last_offset):
                    self._answer(whole, met.first_offset, met.last_offset, batch.types[0])
                    yield 1
                    continue
                partition.split(met)
            first = max(batch.first_offset, partition.start_offset)
            for offset, state in met.states(first, batch.last_offset):
                self._check_offset(state)
                self._answer(state, offset, offset, batch.type_of(offset))
                yield 1

    def _check(self, whole: InFlightState) -> None:
        if whole.member_id not in ("", self._member_id):
            raise _state_error("Member is not the owner of batch record")
        if whole.member_id and whole.is_changing:
            raise _state_error(_IS_CHANGING)
        if whole.state is not RecordState.ACQUIRED:
            raise _state_error(_BATCH_IS_FREE)

    def _check_offset(self, state: InFlightState) -> None:
        if state.state is not RecordState.ACQUIRED:
            raise _state_error("The offset cannot be acknowledged. The offset is not acquired.")
        if state.is_changing:
            raise _state_error(_IS_CHANGING)
        if state.member_id != self._member_id:
            raise _state_error("Member is not the owner of offset")

    def _met(self, batch: AcknowledgementBatch) -> list[InFlightBatch]:
        """The batches in flight that the range meets. Raises KafkaError if they do not cover it."""
        partition = self._partition
        floor = partition.batches.floor(batch.first_offset)
        if floor is None:
            if not partition.start_within(batch.first_offset, batch.last_offset):
                raise _state_error(_NOT_FOUND)
            floor = partition.batches.floor(partition.start_offset)
            if floor is None:
                if partition.keeps_defects:
                    raise NullPointer
                raise _state_error(_NOT_FOUND)
        met = partition.batches.between(floor.first_offset, batch.last_offset)
        if batch.last_offset > met[-1].last_offset:
            which = "first" if batch.first_offset > met[-1].last_offset else "last"
            why = f"Batch record not found. The {which} offset in request is past acquired records."
            raise KafkaError(Error.INVALID_REQUEST, why)
        return met

    def _answer(self, state: InFlightState, first: int, last: int, kind: int) -> None:
        partition = self._partition
        if kind == AcknowledgeType.RENEW:
            if not partition.options.is_renew_enabled:
                raise _state_error("Renewing acquisition locks is not enabled for the group.")
            state.unlock()
            state.lock = partition.lock_records(first, last)
            return
        wanted, cause = ACKNOWLEDGED_AS[AcknowledgeType(kind)], None
        if kind == AcknowledgeType.REJECT and self._rule.has_dead_letters:
            wanted, cause = RecordState.ARCHIVING, CLIENT_REJECT
        state.begin(wanted, self._rule)
        self.changes.append(Change.of(state, first, last, cause))
        if state.state.is_terminal:
            self._partition.complete_count += last - first + 1
