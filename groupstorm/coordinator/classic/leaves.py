"""LeaveGroup: members leave, one by one or in a batch (KIP-345: version 3), by id or by instance.

Kafka: GroupMetadataManager.classicGroupLeaveToClassicGroup, GroupCoordinatorService.leaveGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import emit_member_removed
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.rebalances import rebalance_or_complete
from groupstorm.coordinator.classic.replies import answer_parked_join
from groupstorm.coordinator.classic.states import EMPTY
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    NO_MEMBER_ID,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
)
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import SESSION
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


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
    emit_member_removed(shard, group, member, Cause.LEFT)
    return Error.NONE, member_id
