"""Writes records of consumer and streams groups: a group changes at once, and goes back if they fail.

Kafka: CoordinatorRuntime replays the records of an operation before it appends them, and reverts to the last
snapshot if the append fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from groupstorm.coordinator.change_events import ChangeEvents, is_of_member
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import GroupRequest, Response
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.modern.member import UNREVOKED, ModernMember
from groupstorm.coordinator.modern.records import EntryRecord
from groupstorm.coordinator.pending_writes import Completion, Write
from groupstorm.coordinator.records import AppendCause, GroupTombstone, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_JOIN, MEMBER_REBALANCE, MEMBER_SESSION, MEMBER_SYNC
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import Turns, at_once

MEMBER_TIMERS = (MEMBER_SESSION, MEMBER_REBALANCE, MEMBER_JOIN, MEMBER_SYNC)


def replay(shard: Shard, record: EntryRecord) -> ModernGroup[Any, Any] | None:
    """Take one record in; the group that it changed or deleted, None if there was nothing to delete.

    `CoordinatorFault` if the group is of another kind, or the record does not fit it.
    """
    kind = shard.wings.of_record[type(record)]
    group = shard.groups.get(record.group)
    if group is None or group.is_simple:
        if record.value is None:
            return None
        group = kind.new(record.group, shard.config.compatibility)
        shard.groups.put(record.group, group)
    if not isinstance(group, kind):
        raise CoordinatorFault(f"group {record.group!r} is not a {kind.kind} group")
    group.take(record, shard.now_ms)
    if record.value is None and type(record) is kind.types.group:
        shard.groups.remove(group.name)
    return group


class _Replay:
    """Records that a group has taken in, and the way back."""

    def __init__(self, shard: Shard, name: str) -> None:
        self._shard = shard
        self._name = name
        self._before = shard.groups.get(name)
        self._groups: list[ModernGroup[Any, Any]] = []
        self._undo: list[Callable[[], None]] = []

    def take(self, record: Record) -> None:
        """Take one record in; `CoordinatorFault` if it does not fit."""
        if isinstance(record, GroupTombstone):
            self._shard.groups.remove(record.group)
        elif type(record) in self._shard.wings.of_record:
            group = replay(self._shard, cast("EntryRecord", record))
            if group is not None:
                self._undo += group.take_undo()
                if group not in self._groups:
                    self._groups.append(group)

    def revert(self) -> None:
        """Take everything back."""
        for back in reversed(self._undo):
            back()
        restore(self._shard, self._name, self._before)

    def commit(self) -> None:
        """Reads see the groups from now on."""
        for group in self._groups:
            group.committed = True


def write_records(
    shard: Shard,
    name: str,
    records: Sequence[Record],
    cause: AppendCause,
    on_written: Completion | None = None,
    why: Cause = Cause.HEARTBEAT,
) -> Write:
    """Take the records into the group, and return their write. ``why``: the cause in its events.

    `CoordinatorFault` if they do not fit; the group is as before then.
    """
    return at_once(_write_in_turns(shard, name, records, cause, on_written, why, 0))


def _write_in_turns(
    shard: Shard,
    name: str,
    records: Sequence[Record],
    cause: AppendCause,
    on_written: Completion | None,
    why: Cause,
    work: int,
) -> Turns[Write]:
    taken, changes = _Replay(shard, name), ChangeEvents(shard, name, records, why)
    try:
        for record in records:
            taken.take(record)
            if work and is_of_member(shard, record):
                yield work
    except CoordinatorFault:
        taken.revert()
        raise
    changes.emit()
    write = Write(name, records, cause, on_written, taken.commit)
    write.revert = taken.revert
    return write


def restore(shard: Shard, name: str, group: Group | None) -> None:
    """Put back the group that had this name, or nothing."""
    if shard.groups.get(name) is group:
        return
    shard.groups.remove(name)
    if group is not None:
        shard.groups.put(name, group)


def when_written(
    shard: Shard, name: str, records: Sequence[Record], cause: AppendCause, on_written: Completion
) -> Write | None:
    """Like `write_records`; without records, call ``on_written`` after the group's writes so far."""
    if records:
        return write_records(shard, name, records, cause, on_written)
    if name in shard.writes:
        return Write(name, (), cause, on_written)
    on_written(None)
    return None


def respond(
    shard: Shard,
    request: GroupRequest,
    reply: PendingReply,
    records: Sequence[Record],
    cause: AppendCause,
    response: Response,
    work: int = 0,
) -> Turns[Write | None]:
    """Write the records, and answer when they are written. ``work``: of taking in a member."""
    if not records:
        answer_in_turn(shard, request, reply, response)
        return None
    answer = answering(shard, reply, response)
    name, why = request.group, Cause.HEARTBEAT
    return (yield from _write_in_turns(shard, name, records, cause, answer, why, work))


def restart_session(shard: Shard, group: str, member: ModernMember, timeout_ms: int | None = None) -> None:
    """The member has sent a request: its session begins again."""
    duration_ms = shard.group_options.consumer(group).session_timeout_ms if timeout_ms is None else timeout_ms
    shard.timers.set(MEMBER_SESSION, group, member.member_id, shard.now_ms + duration_ms)


def watch_revocation(shard: Shard, group: str, member: ModernMember) -> None:
    """While the member has something to give up, its rebalance timeout runs."""
    if member.state in UNREVOKED:
        deadline_ms = shard.now_ms + member.rebalance_timeout_ms
        shard.timers.set(MEMBER_REBALANCE, group, member.member_id, deadline_ms, member.epoch)
    else:
        shard.timers.cancel(MEMBER_REBALANCE, group, member.member_id)


def cancel_member_timers(shard: Shard, group: str, member_id: str) -> None:
    """The member is gone: nothing can expire any more."""
    for kind in MEMBER_TIMERS:
        shard.timers.cancel(kind, group, member_id)
