"""Writes to the offsets topic and the answers that wait for them.

As in Kafka's CoordinatorRuntime, reads see a write once it is committed, and its request is answered then.
An operation without records is answered once the writes before it are done. Joins and syncs of classic
groups are the exception: they are answered as soon as the group's state allows it, unless the writes before
them have failed or taken too long by then. Kafka keeps one such queue per partition of the offsets topic;
here every group has its own, as if each lived in a partition to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.coordinator.effects import Completion, PendingReply, Unwritten, Write
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import attempt, error_response
from groupstorm.coordinator.messages import GroupRequest, JoinGroup, Response, SyncGroup
from groupstorm.coordinator.records import operation_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import APPEND
from groupstorm.trace.events import coordinator as events
from groupstorm.turns import Turns


def submit(shard: Shard, write: Write) -> None:
    """Append the records as the policy says: at once, or later by a timer. An operation without records waits
    for the writes before it."""
    writes = shard.writes
    before = writes.last(write.group)
    if before is not None and not write.records:
        write.behind, write.due_ms = before, before.due_ms
    else:
        write.created, writes.created = writes.created, []
        delay_ms, write.error = shard.append(write.records, write.cause)
        shard.records.extend(write.records if write.error is None else ())
        write.due_ms = shard.now_ms + max(delay_ms, 0)
        if before is not None:
            write.due_ms = max(write.due_ms, before.due_ms)
        elif write.due_ms == shard.now_ms:
            _finish(shard, write)
            return
    writes.add(write)
    _set_timer(shard, write)


def _set_timer(shard: Shard, write: Write) -> None:
    """If the request waits for longer than offsets.commit.timeout.ms, it fails alone."""
    due_ms, timeout_ms = write.due_ms, shard.now_ms + shard.config.commit_timeout_ms
    if write.refuse is not None and timeout_ms < due_ms:
        shard.timers.set(APPEND, write.group, write.name, timeout_ms, write)
    elif write.behind is None:
        shard.timers.set(APPEND, write.group, write.name, due_ms, write)


def on_append_timer(shard: Shard, write: Write) -> None:
    """The append is done, and with it what waits for it; or only its request has waited for too long."""
    if write.due_ms > shard.now_ms:
        _complete(shard, write, Error.REQUEST_TIMED_OUT)
        _set_timer(shard, write)
        return
    is_done = False
    for one in tuple(shard.writes.of_group(write.group)):
        if is_done and one.behind is None:
            return
        # also an earlier one, whose timer was set again behind this one's
        shard.timers.cancel(APPEND, one.group, one.name)
        shard.writes.remove(one)
        _finish(shard, one)
        is_done = is_done or one is write


def _finish(shard: Shard, write: Write) -> None:
    if write.behind is not None:
        _complete(shard, write, write.behind.error)
        return
    error = write.error
    if error is None:
        for created in write.created:
            _keep(created)
        shard.offsets.written()
        shard.still_read.clear()
        _end_unwritten(shard, None)
        if shard.whole_records:
            shard.note_written(write.records)
        if write.apply is not None:
            _attempt(shard, write, write.apply, ())
    else:
        shard.emit(events.AppendFailed(write.group, error.name, write.cause))
        _take_back(shard, write, error)
    _complete(shard, write, error)
    if error is not None:
        for created in write.created:
            created.back(error)
        if write.revert is not None:
            write.revert()
        _end_unwritten(shard, error)


def _end_unwritten(shard: Shard, error: Error | None) -> None:
    """A write has succeeded or failed, and with it the changes before it that made no records."""
    while shard.since_written:
        change = shard.since_written.pop(0 if error is None else -1)
        if error is None:
            _keep(change)
        else:
            change.back(error)


def _keep(change: Unwritten) -> None:
    if change.keep is not None:
        change.keep()


def abandon(shard: Shard, group: str) -> None:
    """The coordinator has given the group up. Writes under way have not reached the log that the next one
    reads: they never count, and who waits for one is answered NOT_COORDINATOR (CoordinatorRuntime.unload)."""
    while pending := shard.writes.of_group(group):
        write = pending[0]
        shard.timers.cancel(APPEND, group, write.name)
        shard.writes.remove(write)
        _complete(shard, write, Error.NOT_COORDINATOR)


def _take_back(shard: Shard, write: Write, error: Error) -> None:
    """The write failed: what its records changed goes back. Later writes of the group build on it, so they
    fail with it (Kafka: CoordinatorRuntime reverts to the last snapshot)."""
    if write.revert is None:
        return
    for later in reversed(shard.writes.of_group(write.group)):
        if later.revert is not None:
            later.revert()
            later.revert, later.error = None, later.error or error


def _complete(shard: Shard, write: Write, error: Error | None) -> None:
    complete, write.complete = write.complete, None
    refuse, write.refuse = write.refuse, None
    if complete is not None:
        _attempt(shard, write, complete, (error,))
    if refuse is not None and error is not None:
        refuse(error)


def _attempt(shard: Shard, write: Write, operation: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run a part of the write. If the group fails in it, the answers that wait for the write are given."""
    failed = attempt(shard, write.group, None, operation, arguments)
    if failed is not None:
        submit(shard, failed)


def answering(shard: Shard, reply: PendingReply, response: Response) -> Completion:
    """Answer once the write has succeeded."""
    return lambda error: None if error else shard.answer(reply, response)


def then(shard: Shard, go_on: Callable[[], Write | None]) -> Completion:
    """Go on once the write has succeeded."""

    def on_written(error: Error | None) -> None:
        write = None if error else go_on()
        if write is not None:
            submit(shard, write)

    return on_written


def then_in_turns(shard: Shard, group: str, go_on: Callable[[], Turns[Write | None]]) -> Completion:
    """Go on with long work on the group once the write has succeeded."""
    return lambda error: None if error else shard.carry_out(group, go_on())


def answer_in_turn(shard: Shard, request: GroupRequest, reply: PendingReply, response: Response) -> None:
    """Answer once the group's writes so far are done; if the last of them fails, this request fails too."""
    before = shard.writes.last(request.group)
    if before is None:
        shard.answer(reply, response)
        return
    turn = Write(request.group, (), before.cause, answering(shard, reply, response))
    turn.refuse = lambda error: shard.answer(reply, error_response(request, operation_error(error)))
    submit(shard, turn)


def turn_of_parked(shard: Shard, request: JoinGroup | SyncGroup) -> Write | None:
    """A parked request fails with the writes before it; None if there are none
    (GroupCoordinatorService.joinGroup, syncGroup)."""
    before = shard.writes.last(request.group)
    return None if before is None else Write(request.group, (), before.cause)
