"""The events of a consumer or streams group: what a write changes, each change once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import EMPTY
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, Partitions
from groupstorm.coordinator.consumer.records import (
    ConsumerCurrentRecord,
    ConsumerMemberRecord,
    ConsumerTargetRecord,
)
from groupstorm.coordinator.groups import AnyGroup, ModernGroup
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.member import HeldTasks, StreamsMember
from groupstorm.coordinator.streams.records import (
    StreamsCurrentRecord,
    StreamsMemberRecord,
    StreamsTargetRecord,
)
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause

_Member = ConsumerMember | StreamsMember


class ChangeEvents:
    """Emits the events of one write: made before the group takes the records in, used after it."""

    def __init__(self, shard: Shard, name: str, records: Sequence[Record], cause: Cause) -> None:
        self._shard = shard
        self._name = name
        self._cause = cause
        before = shard.groups.get(name)
        self._was_classic = isinstance(before, ClassicGroup) and before.state is not EMPTY
        self._is_new = not isinstance(before, ModernGroup)
        self._state = "Empty" if before is None else before.state.value
        self._epoch = -1 if before is None else before.generation
        self._target_epoch = before.assignment_epoch if isinstance(before, ModernGroup) else self._epoch
        kinds = (ConsumerMemberRecord, ConsumerCurrentRecord, StreamsMemberRecord, StreamsCurrentRecord)
        self._ids = tuple(dict.fromkeys(one.member_id for one in records if isinstance(one, kinds)))
        targets = (ConsumerTargetRecord, StreamsTargetRecord)
        self._targets = {one.member_id for one in records if isinstance(one, targets)}
        self._before = _members(before, self._ids)

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

    def _emit_membership(self, group: ModernGroup, member_id: str) -> None:
        before, member = self._before.get(member_id), group.members.get(member_id)
        if member is None:
            if before is not None and before.instance not in group.static_members:
                emit_removed(self._shard, group, before, self._cause)
            return
        who = (self._name, member.client_id, member_id)
        predecessor = self._predecessor(member)
        if before is not None:
            changed = _subscription(before) != _subscription(member)
            if changed and not self._was_classic:
                self._shard.emit(events.MemberUpdated(*who, group.epoch))
        elif predecessor is not None and member.instance is not None:
            instance = member.instance
            self._shard.emit(events.MemberReplaced(*who, predecessor.member_id, instance, group.epoch))
        else:
            cause = Cause.NEW_MEMBER if member.instance is None else Cause.STATIC_MEMBER
            self._shard.emit(events.MemberAdded(*who, member.instance, group.epoch, cause))

    def _predecessor(self, member: _Member) -> _Member | None:
        """The member that had this one's instance id before."""
        if member.instance is None:
            return None
        known = [one for one in self._before.values() if one.instance == member.instance]
        return known[0] if known else None

    def _emit_progress(self, group: ModernGroup, member_id: str) -> None:
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
                self._listed(member.assigned),
                self._listed(member.revoking),
            )
        )

    def _listed(self, partitions: Partitions | HeldTasks) -> tuple[str, ...]:
        """As Kafka prints them; topics that no longer exist, and tasks that do not run, are left out."""
        if isinstance(partitions, HeldTasks):
            return tuple([f"{subtopology}_{number}" for subtopology, number in sorted(partitions.active)])
        named = [
            (name, number)
            for topic, numbers in partitions.items()
            if (name := self._shard.topics.name(topic)) is not None
            for number in numbers
        ]
        return tuple([f"{name}-{number}" for name, number in sorted(named)])


def _subscription(member: _Member) -> tuple[object, ...]:
    """The facts that the member tells of itself and that may change the targets."""
    if isinstance(member, StreamsMember):
        return member.topology_epoch, member.process, member.endpoint, member.tags, member.rack
    return member.topics, member.regex


def _progress(member: _Member) -> tuple[object, ...]:
    return member.epoch, member.state, member.assigned, member.revoking


def _members(group: AnyGroup | None, ids: Iterable[str]) -> dict[str, _Member]:
    """The members that the records are about, as they were."""
    if group is None:
        return {}
    if isinstance(group, ModernGroup):
        return {one: member for one in ids if (member := group.members.get(one)) is not None}
    return {
        one.member_id: ConsumerMember(one.member_id, instance=one.group_instance_id, client_id=one.client_id)
        for one in group.members.values()
    }


def emit_removed(shard: Shard, group: ModernGroup, member: _Member, cause: Cause) -> None:
    """Emit the event of a member that has been removed."""
    who = (group.name, member.client_id, member.member_id, member.instance)
    shard.emit(events.MemberRemoved(*who, group.epoch, cause))


def emit_replaced(shard: Shard, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> None:
    """Emit the event of a static member that has taken the place of its predecessor."""
    if after.instance is not None:
        who = (group.name, after.client_id, after.member_id)
        shard.emit(events.MemberReplaced(*who, before.member_id, after.instance, group.epoch))


def emit_downgraded(
    shard: Shard, group: ConsumerGroup, removed: Iterable[ConsumerMember], cause: Cause
) -> None:
    """A consumer group becomes a classic one, without these members."""
    for member in removed:
        emit_removed(shard, group, member, cause)
    shard.emit(events.GroupConverted(group.name, group.epoch, Cause.DOWNGRADED))
