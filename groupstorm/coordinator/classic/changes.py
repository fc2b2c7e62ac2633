"""The changes of a group that several operations make: it begins, ends, changes its state; a member's session
begins again, a member is removed. Each emits its event."""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.replies import answer_parked_join, answer_parked_sync
from groupstorm.coordinator.classic.states import next_state
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import JoinGroupResponse
from groupstorm.coordinator.pending_writes import Unwritten
from groupstorm.coordinator.records import group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import JOIN, SESSION, SYNC
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def create_group(shard: Shard, name: str, cause: str) -> ClassicGroup:
    """A new empty group; it is gone again if the next write fails."""
    group = ClassicGroup(name)
    group.state_since_ms = shard.now_ms
    shard.groups.put(name, group)
    exists_if_written(shard, group)
    shard.emit(events.GroupCreated(name, cause))
    return group


def exists_if_written(shard: Shard, group: ClassicGroup) -> None:
    """The group exists only if the next write succeeds."""

    def keep() -> None:
        group.committed = True

    shard.writes.created.append(Unwritten(lambda error: _forget_group(shard, group, error), keep))


def _forget_group(shard: Shard, group: ClassicGroup, error: Error) -> None:
    """The group's first record could not be written: the group was never there.

    Members that joined while that write was under way are answered with the error. Kafka 4.3.1 never
    answers them.
    """
    if not shard.exists(group):
        return
    if not shard.config.compatibility.is_to_the_letter:
        answer_all_parked(shard, group, group_append_error(error))
    shard.groups.remove(group.name)
    shard.emit(events.GroupDeleted(group.name, Cause.APPEND_FAILED))


def delete_group(shard: Shard, group: Group, cause: Cause) -> None:
    """The group ends, and its timers with it."""
    if not shard.exists(group):
        return
    shard.groups.remove(group.name)
    if isinstance(group, ClassicGroup):
        cancel_timers(shard, group)
    shard.emit(events.GroupDeleted(group.name, cause))


def cancel_timers(shard: Shard, group: ClassicGroup) -> None:
    """Cancel the timers of the group, its members and its pending ids."""
    shard.timers.cancel(JOIN, group.name)
    shard.timers.cancel(SYNC, group.name)
    for member_id in (*group.members.keys(), *group.pending_members):
        shard.timers.cancel(SESSION, group.name, member_id)


def answer_all_parked(shard: Shard, group: ClassicGroup, error: Error) -> None:
    """Answer every parked JoinGroup and SyncGroup with the error."""
    for member in group.members.values():
        answer_parked_join(shard, group, member, JoinGroupResponse(error, member_id=member.member_id))
        answer_parked_sync(shard, group, member, error)


def transition(shard: Shard, group: ClassicGroup, cause: Cause, member_id: str | None) -> None:
    """The one place where a group's state changes."""
    state = next_state(group.name, group.state, cause)
    group.previous_state, group.state = group.state, state
    group.state_since_ms = shard.now_ms
    shard.emit(
        events.GroupStateChanged(
            group.name,
            group.previous_state,
            state,
            group.generation,
            cause,
            member_id,
            group.protocol,
            group.leader,
            len(group.members),
        )
    )


def restart_session(shard: Shard, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
    """The member has sent a request: its session begins again
    (GMM.rescheduleClassicGroupMemberHeartbeat)."""
    duration_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    shard.timers.set(SESSION, group.name, member.member_id, shard.now_ms + duration_ms)


def emit_member_removed(shard: Shard, group: ClassicGroup, member: Member, cause: Cause) -> None:
    """Emit the event of a member that has been removed."""
    shard.emit(
        events.MemberRemoved(
            group.name,
            member.client_id,
            member.member_id,
            member.group_instance_id,
            group.generation,
            cause,
        )
    )
