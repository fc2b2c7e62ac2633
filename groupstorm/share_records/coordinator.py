"""The share coordinator: the state of share partitions that outlives their leaders (ShareCoordinatorShard,
PersisterStateBatchCombiner).

A write appends an update record, and after so many updates a snapshot record. Epochs fence the writes of a
leader that is no longer one, and of a state that was initialized again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.ports import (
    ReadAnswer,
    SharePartitionKey,
    StateBatch,
    TopicPartition,
    WriteState,
)
from groupstorm.share_records.states import RecordState


class StateRecord(StrEnum):
    """The record that a request appends."""

    SNAPSHOT = "snapshot"
    UPDATE = "update"
    TOMBSTONE = "tombstone"


class ShareState(NamedTuple):
    """The state of a share partition (ShareGroupOffset). ``complete``: terminal records from ``start`` on."""

    start: int = -1
    complete: int = -1
    leader_epoch: int = 0
    state_epoch: int = 0
    snapshot_epoch: int = 0
    batches: tuple[StateBatch, ...] = ()


@dataclass(slots=True)
class _Entry:
    """``leader_epoch`` and ``state_epoch``: the highest ever stored; older requests are refused."""

    state: ShareState
    leader_epoch: int = 0
    state_epoch: int = 0
    updates: int = 0


class ShareCoordinator:
    """The states by share partition. ``has_partition``: whether the metadata has the topic's partition."""

    def __init__(self, updates_per_snapshot: int, has_partition: Callable[[TopicPartition], bool]) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self._has_partition = has_partition
        self._entries: dict[SharePartitionKey, _Entry] = {}

    @property
    def states(self) -> dict[SharePartitionKey, ShareState]:
        return {key: entry.state for key, entry in self._entries.items()}

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start: int
    ) -> tuple[Error, StateRecord | None]:
        """Make the state, or make it again without state batches."""
        entry = self._entries.get(key)
        error = self._check_existence(key)
        if state_epoch < 0:
            error = Error.INVALID_REQUEST
        elif entry is not None and entry.state_epoch > state_epoch:
            error = Error.FENCED_STATE_EPOCH
        if error is not Error.NONE:
            return error, None
        snapshot_epoch = 0 if entry is None else entry.state.snapshot_epoch + 1
        state = ShareState(start, -1 if start == -1 else 0, 0, state_epoch, snapshot_epoch)
        self._snapshot(key, state)
        return Error.NONE, StateRecord.SNAPSHOT

    def read(self, key: SharePartitionKey, leader_epoch: int) -> tuple[ReadAnswer, StateRecord | None]:
        """The state for a new leader, whose epoch is stored."""
        error = self._check(key, leader_epoch)
        if error is not Error.NONE:
            return ReadAnswer(error), None
        entry = self._entries[key]
        state = entry.state
        record = None
        if entry.leader_epoch != leader_epoch:
            request = WriteState(key, state.state_epoch, leader_epoch, state.start, state.complete, ())
            record = self._store(entry, request, leader_epoch)
        return ReadAnswer(Error.NONE, state.start, state.state_epoch, state.batches), record

    def write(self, request: WriteState) -> tuple[Error, StateRecord | None]:
        """Take over changes. Newer epochs are accepted and not stored."""
        error = self._check(request.key, request.leader_epoch, request.state_epoch)
        if error is not Error.NONE:
            return error, None
        entry = self._entries[request.key]
        return Error.NONE, self._store(entry, request, entry.state.leader_epoch)

    def summary(self, key: SharePartitionKey) -> tuple[Error, ShareState]:
        """The state without what it says of records; one that was never made is like a new one."""
        entry = self._entries.get(key)
        return self._check_existence(key), ShareState() if entry is None else entry.state

    def delete(self, key: SharePartitionKey) -> tuple[Error, StateRecord | None]:
        error = self._check_existence(key)
        if error is not Error.NONE or self._entries.pop(key, None) is None:
            return error, None
        return Error.NONE, StateRecord.TOMBSTONE

    def forget_unknown(self) -> list[SharePartitionKey]:
        """Forget the states of partitions that are not in the metadata any more; the result: which."""
        gone = [key for key in self._entries if not self._has_partition(key.topic_partition)]
        for key in gone:
            del self._entries[key]
        return gone

    def restore(self, key: SharePartitionKey, state: ShareState | None) -> None:
        """Take over a snapshot, or a tombstone, of an earlier coordinator."""
        if state is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = _Entry(state, state.leader_epoch, state.state_epoch)

    def restore_update(self, request: WriteState) -> None:
        """Take over an update of an earlier coordinator. Raises LookupError without a snapshot before it."""
        self._store(self._entries[request.key], request, request.leader_epoch)

    def _check(self, key: SharePartitionKey, leader_epoch: int, state_epoch: int | None = None) -> Error:
        entry = self._entries.get(key)
        if leader_epoch < 0 or (state_epoch is not None and state_epoch < 0) or entry is None:
            return Error.INVALID_REQUEST
        if entry.leader_epoch > leader_epoch:
            return Error.FENCED_LEADER_EPOCH
        if state_epoch is not None and entry.state_epoch > state_epoch:
            return Error.FENCED_STATE_EPOCH
        return self._check_existence(key)

    def _check_existence(self, key: SharePartitionKey) -> Error:
        is_known = self._has_partition(key.topic_partition)
        return Error.NONE if is_known else Error.UNKNOWN_TOPIC_OR_PARTITION

    def _store(self, entry: _Entry, request: WriteState, leader_epoch: int) -> StateRecord:
        """The larger start holds, with its number of terminal records; batches are merged."""
        state = entry.state
        complete = request.complete
        if request.start <= state.start:
            complete = max(complete, state.complete) if request.start == state.start else state.complete
        start = max(request.start, state.start)
        merged = tuple(merge(state.batches, request.batches, start))
        stored = ShareState(start, complete, leader_epoch, state.state_epoch, state.snapshot_epoch, merged)
        if entry.updates >= self._updates_per_snapshot:
            self._snapshot(request.key, stored._replace(snapshot_epoch=state.snapshot_epoch + 1))
            return StateRecord.SNAPSHOT
        entry.state = stored
        entry.leader_epoch = max(entry.leader_epoch, leader_epoch)
        entry.updates += 1
        return StateRecord.UPDATE

    def _snapshot(self, key: SharePartitionKey, state: ShareState) -> None:
        entry = self._entries.setdefault(key, _Entry(state))
        entry.state = state
        entry.leader_epoch = max(entry.leader_epoch, state.leader_epoch)
        entry.state_epoch = max(entry.state_epoch, state.state_epoch)
        if entry.updates >= self._updates_per_snapshot:
            entry.updates = 0


def merge(stored: Sequence[StateBatch], new: Sequence[StateBatch], start: int) -> list[StateBatch]:
    """State batches without overlaps, from the start offset on; equal neighbours are joined.

    Of several states of a record the one with the highest delivery count holds, and of these the highest
    state. A write that comes late therefore undoes nothing.
    """
    batches = [
        one if start <= one.first_offset else one._replace(first_offset=start)
        for one in (*stored, *new)
        if one.last_offset >= start
    ]
    if len(batches) < 2:
        return batches
    # at each offset, priorities begin and end: the batches sorted by count, then by state, both descending
    changes = sorted(
        change
        for first, last, state, count in batches
        for change in ((first, 1, -count, -state), (last + 1, 0, -count, -state))
    )
    merged: list[StateBatch] = []
    active: Counter[tuple[int, int]] = Counter()
    queue: list[tuple[int, int]] = []
    opened = changes[0][0]
    for offset, begins, *priority in changes:
        if offset > opened:
            while queue and not active[queue[0]]:
                heappop(queue)
            if queue:
                _append(merged, opened, offset - 1, *queue[0])
            opened = offset
        one = (priority[0], priority[1])
        active[one] += 1 if begins else -1
        if begins:
            heappush(queue, one)
    return merged


def _append(merged: list[StateBatch], first: int, last: int, count: int, state: int) -> None:
    one = StateBatch(first, last, RecordState(-state), -count)
    if merged:
        before = merged[-1]
        if before.last_offset + 1 == first and before[2:] == one[2:]:
            merged[-1] = one._replace(first_offset=before.first_offset)
            return
    merged.append(one)
