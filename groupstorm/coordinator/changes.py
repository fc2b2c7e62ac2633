"""Writes records of groups of the newer protocols, with the events of what they change: a group changes at
once, and goes back if they fail.

Kafka: CoordinatorRuntime replays the records of an operation before it appends them, and reverts to the last
snapshot if the append fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from groupstorm.coordinator.effects import Completion, PendingReply, Write
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import GroupRequest, Response
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.modern.member import UNREVOKED, ModernMember
from groupstorm.coordinator.records import AppendCause, EntryRecord, GroupTombstone, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_JOIN, MEMBER_REBALANCE, MEMBER_SESSION, MEMBER_SYNC
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events import coordinator as events
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


def remove_members(
    shard: Shard,
    group: ModernGroup[M, Any],
    members: Sequence[M],
    cause: Cause,
    on_written: Completion | None = None,
) -> Write:
    """Write that these members are gone, and that the group epoch counts up."""
    records: list[Record] = [record for one in members for record in group.removal(one.member_id)]
    records += group.bump_without(members, shard.topics)
    records += group.up_to_date_without(members, group.epoch + 1, shard.config.compatibility)
    for member in members:
        cancel_member_timers(shard, group.name, member.member_id)
    return write_records(shard, group.name, records, AppendCause.MEMBERS_REMOVED, on_written, cause)


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


_Group = ModernGroup[Any, Any]


def is_of_member(shard: Shard, record: Any) -> bool:
    """Whether the record holds a member's subscription, or how far the member has come."""
    kind = shard.wings.of_record.get(type(record))
    return kind is not None and type(record) in (kind.types.member, kind.types.current)


class ChangeEvents:
    """Emits the events of one write: made before the group takes the records in, used after it."""

    def __init__(self, shard: Shard, name: str, records: Sequence[Any], cause: Cause) -> None:
        self._shard = shard
        self._name = name
        self._cause = cause
        before = shard.groups.get(name)
        self._is_new = not isinstance(before, ModernGroup)
        self._state = "Empty" if before is None else before.state.value
        self._was_classic = self._is_new and self._state != "Empty"
        self._epoch = -1 if before is None else before.generation
        self._target_epoch = before.assignment_epoch if isinstance(before, ModernGroup) else self._epoch
        ids: dict[str, None] = {}
        self._targets: set[str] = set()
        for one in records:
            kind = shard.wings.of_record.get(type(one))
            if is_of_member(shard, one):
                ids[one[1]] = None
            elif kind is not None and type(one) is kind.types.target:
                self._targets.add(one[1])
        self._ids = tuple(ids)
        self._before = {} if before is None else before.former(self._ids)

    def emit(self) -> None:
        """Emit the events, if the group is still there: a downgrade has its own."""
        group = self._shard.groups.get(self._name)
        if not isinstance(group, ModernGroup):
            return
        if self._was_classic:
            self._shard.emit(events.GroupConverted(self._name, self._epoch, Cause.UPGRADED))
        elif self._is_new:
            self._shard.emit(events.GroupCreated(self._name, "join"))
        for member_id in self._ids:
            self._emit_membership(group, member_id)
        if group.epoch > self._epoch and not (self._is_new and not self._targets):
            self._shard.emit(events.GroupEpochBumped(self._name, group.epoch))
        if group.assignment_epoch > self._target_epoch and self._targets:
            count = sum(member_id in group.members for member_id in self._targets)
            self._shard.emit(events.TargetAssigned(self._name, group.assignment_epoch, count))
        for member_id in self._ids:
            self._emit_progress(group, member_id)
        state = group.state.value
        if state != self._state:
            rest = (group.epoch, self._cause, None, None, None, len(group.members))
            self._shard.emit(events.GroupStateChanged(self._name, self._state, state, *rest))

    def _emit_membership(self, group: _Group, member_id: str) -> None:
        before, member = self._before.get(member_id), group.members.get(member_id)
        if member is None:
            if before is not None and before.instance not in group.static_members:
                emit_removed(self._shard, group, before, before.instance, self._cause)
            return
        who = (self._name, member.client_id, member_id)
        predecessor = self._predecessor(member)
        if before is not None:
            if not self._was_classic and before.subscription != member.subscription:
                self._shard.emit(events.MemberUpdated(*who, group.epoch))
        elif predecessor is not None and member.instance is not None:
            instance = member.instance
            self._shard.emit(events.MemberReplaced(*who, predecessor.member_id, instance, group.epoch))
        else:
            cause = Cause.NEW_MEMBER if member.instance is None else Cause.STATIC_MEMBER
            self._shard.emit(events.MemberAdded(*who, member.instance, group.epoch, cause))

    def _predecessor(self, member: ModernMember) -> ModernMember | None:
        """The member that had this one's instance id before."""
        if member.instance is None:
            return None
        known = [one for one in self._before.values() if one.instance == member.instance]
        return known[0] if known else None

    def _emit_progress(self, group: _Group, member_id: str) -> None:
        before, member = self._before.get(member_id), group.members.get(member_id)
        if member is None or (self._was_classic and before is not None):
            return  # an upgraded member goes on with what it had
        if before is not None and _progress(before) == _progress(member):
            return
        self._shard.emit(
            events.MemberReconciled(
                self._name,
                member.client_id,
                member.member_id,
                member.epoch,
                member.state,
                group.names_of(member.assigned, self._shard.topics),
                group.names_of(member.revoking, self._shard.topics),
            )
        )


def _progress(member: ModernMember) -> tuple[object, ...]:
    return member.epoch, member.state, member.assigned, member.revoking


def emit_removed(shard: Shard, group: Group, member: Any, instance: str | None, cause: Cause) -> None:
    """Emit the event of a member of any kind of group that has been removed."""
    who = (group.name, member.client_id, member.member_id, instance)
    shard.emit(events.MemberRemoved(*who, group.generation, cause))


def emit_replaced(shard: Shard, group: _Group, before: ModernMember, after: ModernMember) -> None:
    """Emit the event of a static member that has taken the place of its predecessor."""
    if after.instance is not None:
        who = (group.name, after.client_id, after.member_id)
        shard.emit(events.MemberReplaced(*who, before.member_id, after.instance, group.epoch))


def emit_downgraded(shard: Shard, group: _Group, removed: Iterable[ModernMember], cause: Cause) -> None:
    """A consumer group becomes a classic one, without these members."""
    for member in removed:
        emit_removed(shard, group, member, member.instance, cause)
    shard.emit(events.GroupConverted(group.name, group.epoch, Cause.DOWNGRADED))
