"""Heartbeats keep members in the group; LeaveGroup and the ends of sessions remove them, and pending ids.

LeaveGroup names members by id or by instance, since version 3 several of them (KIP-345).

Kafka: GroupMetadataManager.classicGroupHeartbeatToClassicGroup, classicGroupLeaveToClassicGroup,
expireClassicGroupMemberHeartbeat and what it calls; GroupCoordinatorService.leaveGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.changes import emit_removed
from groupstorm.coordinator.classic.changes import answer_parked_join, restart_session
from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.rebalances import complete_join, prepare_rebalance, rebalance_or_complete
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import (
    NO_MEMBER_ID,
    Heartbeat,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import SESSION
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def on_session_timer(shard: Shard, group: ClassicGroup, member_id: str) -> Write | None:
    """Remove the member or the pending id, unless the member is parked or gone."""
    if member_id in group.pending_members:
        group.remove(member_id)
        shard.emit(events.PendingMemberRemoved(group.name, member_id, Cause.SESSION_EXPIRED))
        return _complete_if_all_joined(shard, group, None)
    member = group.members.get(member_id)
    return None if member is None or member.satisfies_heartbeat() else _expire(shard, group, member)


def _expire(shard: Shard, group: ClassicGroup, member: Member) -> Write | None:
    """Remove the member. A new one may be parked: its join is answered UNKNOWN_MEMBER_ID."""
    cause = Cause.NEW_MEMBER_TIMEOUT if member.is_new else Cause.SESSION_EXPIRED
    answer_parked_join(shard, group, member, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    emit_removed(shard, group, member, member.group_instance_id, cause)
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return prepare_rebalance(shard, group, cause, member.member_id)
    return _complete_if_all_joined(shard, group, member.member_id)


def _complete_if_all_joined(shard: Shard, group: ClassicGroup, member_id: str | None) -> Write | None:
    """The last missing member may have gone. Unlike elsewhere Kafka does not wait for the initial delay."""
    if group.state is PREPARING_REBALANCE and group.all_joined():
        return complete_join(shard, group, Cause.ALL_JOINED, member_id)
    return None


_FINE = HeartbeatResponse(NO_ERROR)
_ROUND_IS_OPEN = HeartbeatResponse(REBALANCE_IN_PROGRESS)


def handle_heartbeat(shard: Shard, request: Heartbeat, reply: PendingReply) -> None:
    """Answer a refused heartbeat at once, others after the writes that came before them."""
    error = heartbeat(shard, request.group, request.member_id, request.group_instance_id, request.generation)
    if error is NO_ERROR:
        answer_in_turn(shard, request, reply, _FINE)
    elif error is REBALANCE_IN_PROGRESS:
        answer_in_turn(shard, request, reply, _ROUND_IS_OPEN)
    else:
        shard.answer(reply, HeartbeatResponse(error))


def heartbeat(
    shard: Shard, group_name: str, member_id: str, group_instance_id: str | None, generation: int
) -> Error:
    """The error of a heartbeat: REBALANCE_IN_PROGRESS in PreparingRebalance. Unless it is refused, the
    member's session starts again."""
    if not group_name:
        return Error.INVALID_GROUP_ID
    group = shard.group_as(group_name, ClassicGroup)
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(member_id, group_instance_id)
    if error is not NO_ERROR:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    restart_session(shard, group, group.members[member_id])
    return REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NO_ERROR


def handle_leave(shard: Shard, request: LeaveGroup, reply: PendingReply) -> Write | None:
    """Remove the members that the request names; one rebalance follows for all of them."""
    if not request.group:
        shard.answer(reply, LeaveGroupResponse(Error.INVALID_GROUP_ID))
        return None
    group = shard.group_as(request.group, ClassicGroup)
    if group is None:
        shard.answer(reply, error_response(request, Error.UNKNOWN_MEMBER_ID))
        return None
    left: list[LeftMember] = []
    first: str | None = None
    for who in request.members:
        error, member_id = _remove(shard, group, who)
        left.append(LeftMember(who.member_id, who.group_instance_id, error))
        if not error and first is None:
            first = member_id
    response = LeaveGroupResponse(Error.NONE, tuple(left))
    write = None
    if first is not None and group.state is not EMPTY:
        # A pending id that leaves counts: also out of a stable group it brings a rebalance.
        write = rebalance_or_complete(shard, group, Cause.LEFT, first)
    if write is None:
        answer_in_turn(shard, request, reply, response)
    else:
        write.then(answering(shard, reply, response))
    return write


def _remove(shard: Shard, group: ClassicGroup, who: LeavingMember) -> tuple[Error, str]:
    """Remove one member or pending id. Returns its id, also if the request named the instance alone."""
    member_id, instance = who.member_id, who.group_instance_id
    if member_id == NO_MEMBER_ID:
        # An administrator removes a static member by its instance alone.
        known = group.static_members.get(instance) if instance is not None else None
        if known is None:
            return Error.UNKNOWN_MEMBER_ID, member_id
        member_id = known
    elif member_id in group.pending_members:
        group.remove(member_id)
        shard.timers.cancel(SESSION, group.name, member_id)
        shard.emit(events.PendingMemberRemoved(group.name, member_id, Cause.LEFT))
        return Error.NONE, member_id
    else:
        error = group.validate(member_id, instance)
        if error:
            return error, member_id
    member = group.members[member_id]
    shard.timers.cancel(SESSION, group.name, member_id)
    answer_parked_join(shard, group, member, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    emit_removed(shard, group, member, member.group_instance_id, Cause.LEFT)
    return Error.NONE, member_id
