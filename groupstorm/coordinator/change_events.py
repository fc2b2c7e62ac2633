"""The events of a consumer or streams group: what a write changes, each change once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.modern.member import ModernMember
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause

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
                emit_removed(self._shard, group, before, self._cause)
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


def emit_removed(shard: Shard, group: _Group, member: ModernMember, cause: Cause) -> None:
    """Emit the event of a member that has been removed."""
    who = (group.name, member.client_id, member.member_id, member.instance)
    shard.emit(events.MemberRemoved(*who, group.epoch, cause))


def emit_replaced(shard: Shard, group: _Group, before: ModernMember, after: ModernMember) -> None:
    """Emit the event of a static member that has taken the place of its predecessor."""
    if after.instance is not None:
        who = (group.name, after.client_id, after.member_id)
        shard.emit(events.MemberReplaced(*who, before.member_id, after.instance, group.epoch))


def emit_downgraded(shard: Shard, group: _Group, removed: Iterable[ModernMember], cause: Cause) -> None:
    """A consumer group becomes a classic one, without these members."""
    for member in removed:
        emit_removed(shard, group, member, cause)
    shard.emit(events.GroupConverted(group.name, group.epoch, Cause.DOWNGRADED))
