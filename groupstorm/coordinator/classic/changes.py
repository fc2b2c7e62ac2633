"""The changes of a group that several operations make: it begins, ends, fails, changes its state; a join or
sync is answered, a member's session begins again, a member is removed. Each emits its event."""

from __future__ import annotations

from groupstorm.coordinator.changes import emit_removed
from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, next_state
from groupstorm.coordinator.classic.subscriptions import assigned_partitions
from groupstorm.coordinator.effects import PendingReply, Unwritten, Write
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import JoinGroupMember, JoinGroupResponse, SyncGroupResponse
from groupstorm.coordinator.records import AppendCause, group_append_error
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


def answer_parked_join(
    shard: Shard, group: ClassicGroup, member: Member, response: JoinGroupResponse
) -> None:
    """Answer the member's join, if one is parked (ClassicGroup.completeJoinFuture)."""
    parked = member.join
    if parked is None:
        return
    member.join = None
    member_id = member.member_id
    if group.members.get(member_id) is member:
        group.awaiting_join -= 1
    answer_join(shard, parked, group.name, member.client_id, member_id, response)


def of_generation(
    group: ClassicGroup, member_id: str, leader: str, members: tuple[JoinGroupMember, ...] = ()
) -> JoinGroupResponse:
    """The answer to a join that gives the member the present generation."""
    return JoinGroupResponse(
        NO_ERROR, group.generation, member_id, leader, group.protocol_type, group.protocol, False, members
    )


def answer_join(
    shard: Shard,
    reply: PendingReply,
    group: str,
    client_id: str,
    member_id: str,
    response: JoinGroupResponse,
) -> None:
    """Answer a join and emit its event; ``member_id``: the id that sent the request."""
    if reply.done:
        return
    shard.answer(reply, response)
    error = response.error.name if response.error else None
    shard.emit(events.JoinAnswered(group, client_id, member_id, response.generation, error))


def answer_parked_sync(shard: Shard, group: ClassicGroup, member: Member, error: Error) -> bool:
    """Answer the member's parked sync with the error or its assignment; False if none is parked
    (ClassicGroup.completeSyncFuture)."""
    parked = member.sync
    if parked is None:
        return False
    member.sync = None
    if error:
        response = SyncGroupResponse(error)
    else:
        response = SyncGroupResponse(error, group.protocol_type, group.protocol, member.assignment)
    who = (group.name, member.client_id, member.member_id)
    answer_sync(shard, parked, *who, group.generation, response)
    return True


def answer_sync(
    shard: Shard,
    reply: PendingReply,
    group: str,
    client_id: str,
    member_id: str,
    generation: int,
    response: SyncGroupResponse,
) -> None:
    """Answer a sync and emit its event; ``member_id``: the id that sent the request."""
    if reply.done:
        return
    shard.answer(reply, response)
    error = response.error.name if response.error else None
    partitions = None if error else assigned_partitions(response.assignment)
    shard.emit(events.SyncAnswered(group, client_id, member_id, generation, error, partitions))


def _is_stalled(shard: Shard, group: ClassicGroup) -> bool:
    """Whether the group waits for something that neither a timer nor a write will bring about."""
    if group.state is PREPARING_REBALANCE:
        return shard.timers.deadline_of(JOIN, group.name) is None
    if group.state is COMPLETING_REBALANCE:
        pending = shard.writes.of_group(group.name)
        plan_is_written = any(write.cause is AppendCause.GENERATION for write in pending)
        return not plan_is_written and shard.timers.deadline_of(SYNC, group.name) is None
    return False


def rescue(shard: Shard, name: str, only_if_stalled: bool) -> Write | None:
    """Put an empty group in the place of this one, which an operation has broken. Returns the write of its
    record, None without a group.

    The new group keeps generation, protocol type and offsets. Parked requests get COORDINATOR_NOT_AVAILABLE:
    clients look for the coordinator again and join with the id that they have; it is unknown now
    (UNKNOWN_MEMBER_ID), so they join as new members. UNKNOWN_SERVER_ERROR would be fatal for Java's consumer:
    `poll` throws it. Writes under way find that their group is gone, and change nothing.
    """
    group = shard.group_as(name, ClassicGroup)
    if group is None or (only_if_stalled and not _is_stalled(shard, group)):
        return None
    cancel_timers(shard, group)
    answer_all_parked(shard, group, Error.COORDINATOR_NOT_AVAILABLE)
    for member in group.members.values():
        emit_removed(shard, group, member, member.group_instance_id, Cause.FAILED)
    for member_id in group.pending_members:
        shard.emit(events.PendingMemberRemoved(name, member_id, Cause.FAILED))
    empty = _emptied(group)
    shard.groups.put(name, empty)
    if empty.state is not EMPTY:
        transition(shard, empty, Cause.FAILED, None)
    if not group.committed:
        exists_if_written(shard, empty)
    return Write(name, [group_record(shard, empty)], AppendCause.EMPTY_GROUP)


def _emptied(group: ClassicGroup) -> ClassicGroup:
    empty = ClassicGroup(group.name)
    empty.state, empty.state_since_ms = group.state, group.state_since_ms
    empty.generation, empty.protocol_type = group.generation, group.protocol_type
    empty.committed = group.committed
    return empty
