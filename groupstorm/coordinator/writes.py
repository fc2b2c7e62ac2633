"""Writes to the offsets topic and the answers that wait for them.

As in Kafka's CoordinatorRuntime, a write takes effect on reads when it is committed, its request
is answered then, and what needs no write is answered only when the writes before it are done
(joins and syncs are not held back: they answer when the group's state says so). Kafka keeps one
such queue per partition of the offsets topic; here every group has its own, as if each lived in
a partition to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from groupstorm.coordinator import events
from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.error_responses import GroupRequest, error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.records import AppendCause, Record, operation_error
from groupstorm.coordinator.timers import TimerKind

if TYPE_CHECKING:
    from groupstorm.coordinator.group import ClassicGroup
    from groupstorm.coordinator.shard import Shard

#: Called once: with None when the records are committed, else with the error that was the end of it.
Completion = Callable[[Error | None], None]


class Write:
    """Records of one operation. ``apply``: what reads see once they are committed."""

    __slots__ = (
        "apply",
        "cause",
        "complete",
        "created",
        "deferred",
        "due_ms",
        "error",
        "group",
        "name",
        "records",
        "refuse",
    )

    def __init__(
        self,
        group: str,
        records: Sequence[Record],
        cause: AppendCause,
        complete: Completion | None = None,
        apply: Callable[[], None] | None = None,
    ) -> None:
        self.group = group
        self.records = records
        self.cause = cause
        self.complete = complete
        self.apply = apply
        #: Answers the request behind this with an error, if nothing has answered it yet.
        self.refuse: Callable[[Error], None] | None = None
        #: Groups that exist only if this succeeds.
        self.created: list[ClassicGroup] = []
        #: Answers of operations without records that came after this one.
        self.deferred: list[tuple[GroupRequest, Answer, Response]] = []
        self.error: Error | None = None
        self.due_ms = 0
        self.name = ""

    def then(self, completion: Completion) -> None:
        """Also call this on completion, after what is there already."""
        first = self.complete

        def both(error: Error | None) -> None:
            if first is not None:
                first(error)
            completion(error)

        self.complete = both


class Writes:
    """The writes in flight, by group."""

    __slots__ = ("_numbers", "_pending", "_sequence", "_shard", "created")

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._pending: dict[str, list[Write]] = {}
        self._sequence = 0
        self._numbers = 0
        #: Groups that no write covers yet: the next one takes them along, and away if it fails.
        self.created: list[ClassicGroup] = []

    def next_number(self) -> int:
        """Counts what is written, as the offsets of the offsets topic do."""
        self._numbers += 1
        return self._numbers

    def submit(self, write: Write) -> None:
        """Append the records as the policy says: now, or through a timer."""
        shard = self._shard
        shard.records.extend(write.records)
        write.created, self.created = self.created, []
        delay_ms, write.error = shard.append(write.records, write.cause)
        pending = self._pending.get(write.group)
        write.due_ms = shard.now_ms + max(delay_ms, 0)
        if pending:
            write.due_ms = max(write.due_ms, pending[-1].due_ms)
        elif write.due_ms == shard.now_ms:
            self._finish(write)
            return
        self._pending.setdefault(write.group, []).append(write)
        self._sequence += 1
        write.name = str(self._sequence)
        self._arm(write)

    def _arm(self, write: Write) -> None:
        timeout_ms = self._shard.now_ms + self._shard.config.commit_timeout_ms
        awaited = write.complete is not None or write.refuse is not None
        due_ms = min(write.due_ms, timeout_ms) if awaited else write.due_ms
        self._shard.timers.set(TimerKind.APPEND, write.group, write.name, due_ms, write)

    def on_timer(self, write: Write) -> None:
        """The append is done, or offsets.commit.timeout.ms is over first: then only its request fails."""
        shard = self._shard
        if write.due_ms > shard.now_ms:
            self._complete(write, Error.REQUEST_TIMED_OUT)
            self._arm(write)
            return
        pending = self._pending[write.group]
        pending.remove(write)
        if not pending:
            del self._pending[write.group]
        self._finish(write)

    def _finish(self, write: Write) -> None:
        shard, error = self._shard, write.error
        if error is None:
            for group in write.created:
                group.committed = True
            shard.offsets.written()
            if shard.whole_records:
                shard.note_written(write.records)
            if write.apply is not None:
                write.apply()
        else:
            shard.emit(events.AppendFailed(write.group, error.name, write.cause))
        self._complete(write, error)
        if error is not None:
            for group in write.created:
                shard.forget(group, error)
        for request, answer, response in write.deferred:
            failed = None if error is None else error_response(request, operation_error(error))
            shard.answer(answer, failed or response)

    def _complete(self, write: Write, error: Error | None) -> None:
        complete, write.complete = write.complete, None
        refuse, write.refuse = write.refuse, None
        if complete is not None:
            try:
                complete(error)
            except CoordinatorFault as fault:
                self._shard.fault(write.group, None, fault)
        if refuse is not None and error is not None:
            refuse(error)

    def holds_answers(self, group: str) -> bool:
        """Whether an answer of this group would have to wait for a write."""
        return group in self._pending

    def answer_in_turn(self, request: GroupRequest, answer: Answer, response: Response) -> None:
        """Answer when the group's writes so far are done; if the last one fails, so does this request."""
        pending = self._pending.get(request.group)
        if pending:
            pending[-1].deferred.append((request, answer, response))
        else:
            self._shard.answer(answer, response)
