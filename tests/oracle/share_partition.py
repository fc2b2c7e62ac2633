"""Our share partition as the oracle asks it, with a share coordinator that answers as it is told."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acknowledgement import AcknowledgementBatch, acknowledge
from groupstorm.share_records.acquisition import AcquireRequest, acquire
from groupstorm.share_records.config import GroupOptions
from groupstorm.share_records.coordinator import ShareCoordinator, ShareState
from groupstorm.share_records.in_flight import InFlightBatch
from groupstorm.share_records.partition import SharePartition, Surroundings
from groupstorm.share_records.ports import KafkaError, LogRead, NullPointer, RecordBatch, SharePartitionKey
from groupstorm.share_records.script.clients import read_batch
from groupstorm.share_records.script.log import ScriptLog
from groupstorm.share_records.script.persister import ScriptPersister
from groupstorm.share_records.states import DeliveryRule, InFlightState
from groupstorm.share_records.timers import Timers
from groupstorm.turns import at_once
from tests.oracle.running import Case

#: A name, and what it is about.
Operation = list[Any]
_NO_SNAPSHOTS = 1 << 30


class AskedPartition:
    """The partition of a case, its share coordinator and its dead letter queue."""

    def __init__(self, case: Case) -> None:
        self._done: list[list[Any]] = []
        self._asked: list[list[Any]] = []
        self._timers = Timers()
        key, stored = SharePartitionKey("g", TopicPartition("foo", 0)), case["stored"]
        coordinator = ShareCoordinator(_NO_SNAPSHOTS, lambda _: True)
        coordinator.restore(
            key, ShareState(stored["start"], batches=tuple(map(read_batch, stored["batches"])))
        )
        self._persister = ScriptPersister(coordinator, self._timers, 0, self._note)
        rule = DeliveryRule(case["limit"], case["dead_letters"])
        options = GroupOptions(case["lock_ms"], rule, case["locks"], True, False, "latest", 0)
        persister = self._persister
        around = Surroundings(
            self._timers, persister, persister, lambda _: options, lambda _: None, keeps_defects=True
        )
        self._partition = SharePartition(key, ScriptLog(), around)
        self._partition.initialize(lambda _: None)

    def _note(self, kind: str, _key: SharePartitionKey, **fields: Any) -> None:
        """Keep what the share coordinator and the dead letter queue are asked."""
        if kind == "write":
            self._asked.append([kind, fields["start"], fields["complete"], *fields["batches"]])
        elif kind == "dlq":
            self._asked.append([kind, *(fields[name] for name in ("first", "last", "count", "cause"))])

    def work(self, index: int, operation: Operation) -> str:
        """Return what the operation gives at once; "thrown" where Kafka throws."""
        kind, what, *more = operation
        partition = self._partition
        try:
            match kind:
                case "acquire":
                    return self._acquire(what, *more)
                case "acknowledge":
                    batches = [AcknowledgementBatch(*one) for one in more[0]]
                    at_once(acknowledge(partition, what, batches, partial(self._follow, index)))
                case "release":
                    partition.release_all(what, partial(self._follow, index))
                case "advance":
                    self._advance(what)
                case "log_start":
                    partition.follow_log_start(what)
                case "persister":
                    self._persister.ways["write"].set(what, None)
                case "answer":
                    self._persister.release(1, Error[what])
        except (KafkaError, NullPointer):
            return "thrown"
        return ""

    def _acquire(
        self,
        member: str,
        has_limit: bool,
        batch_size: int,
        most: int,
        batches: list[list[Any]],
        aborted: list[list[int]],
    ) -> str:
        transactions = [(producer, first) for producer, first in aborted]
        read = LogRead(Error.NONE, batches=[_read_batch(*one) for one in batches], aborted=transactions)
        request = AcquireRequest(member, has_limit, batch_size, is_committed=True)
        acquired, count = acquire(self._partition, request, most, self.next_fetch_offset, read)
        return f"{json.dumps(acquired, separators=(',', ':'))} {count}"

    def _follow(self, index: int, error: Error) -> None:
        self._done.append([index, error.name])

    def _advance(self, ms: int) -> None:
        until_ms = self._timers.now_ms + ms
        while (deadline_ms := self._timers.next_deadline()) is not None and deadline_ms <= until_ms:
            self._timers.now_ms = deadline_ms
            self._timers.fire_one()
        self._timers.now_ms = until_ms

    @property
    def next_fetch_offset(self) -> int:
        return self._partition.next_fetch_offset()

    def held_by(self, member: str) -> list[tuple[int, int]]:
        """The ranges that a member has."""
        return [
            (first, last)
            for batch in self._partition.batches
            for first, last, state in batch.parts(batch.first_offset, batch.last_offset)
            if state.is_held(member)
        ]

    def state(self, result: str) -> dict[str, Any]:
        """The partition, and what it has asked and answered since the last call."""
        one, done, asked = self._partition, self._done, self._asked
        self._done, self._asked = [], []
        return {
            "result": result,
            "done": done,
            "asked": asked,
            "next": one.next_fetch_offset(),
            "can": one.acquirable_from() is not None,
            "start": one.start_offset,
            "end": one.end_offset,
            "complete": one.complete_count,
            "gap": "" if one.gap is None else f"{one.gap.start_offset}-{one.gap.end_offset}",
            "batches": [_printed(batch) for batch in one.batches],
        }


def _printed(batch: InFlightBatch) -> list[Any]:
    states = batch.parts(batch.first_offset, batch.last_offset)
    return [batch.first_offset, batch.last_offset, *(_state(state) for _, _, state in states)]


def _state(state: InFlightState) -> str:
    ends_ms = -1 if state.lock is None else state.lock.deadline_ms
    is_changing = str(state.is_changing).lower()
    return f"{state.state.name} {state.delivery_count} {state.member_id} {ends_ms} {is_changing}"


def _read_batch(first: int, last: int, producer: int | None = None, marker: str = "") -> RecordBatch:
    return RecordBatch(first, last, 0, producer, is_abort=marker == "ABORT")
