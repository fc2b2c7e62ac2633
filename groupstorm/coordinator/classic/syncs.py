"""SyncGroup: the leader sends the assignments, and every member gets its own.

Version notes
* 3: group.instance.id (KIP-345).
* 5: protocol type and name, checked against the group's (KIP-559).

Kafka: GroupMetadataManager.classicGroupSyncToClassicGroup, validateSyncGroup.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import transition
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.rebalances import hand_out, rebalance_or_complete
from groupstorm.coordinator.classic.replies import answer_sync
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import SyncGroup, SyncGroupResponse
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import SYNC
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def handle_sync(shard: Shard, request: SyncGroup, reply: PendingReply) -> Write | None:
    """Answer at once, or park the request until the leader's assignments are written."""
    group = shard.group_as(request.group, ClassicGroup)
    error = _validate(request, group)
    if error or group is None:
        who = (request.group, request.client_id, request.member_id)
        answer_sync(shard, reply, *who, request.generation, SyncGroupResponse(error))
        return None
    member = group.members[request.member_id]
    if group.state is STABLE:
        _has_synced(shard, group, request.member_id)
        response = SyncGroupResponse(NO_ERROR, group.protocol_type, group.protocol, member.assignment)
        answer_sync(shard, reply, group.name, member.client_id, member.member_id, group.generation, response)
        return None
    member.sync = reply
    _has_synced(shard, group, request.member_id)
    shard.emit(events.SyncParked(group.name, member.client_id, member.member_id, group.generation))
    return _write_plan(shard, request, group) if group.leader == request.member_id else None


def _validate(request: SyncGroup, group: ClassicGroup | None) -> Error:
    if not request.group:
        return Error.INVALID_GROUP_ID
    if group is None or group.state is EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    return _validate_member(request, group)


def _validate_member(request: SyncGroup, group: ClassicGroup) -> Error:
    error = group.validate(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol, group.protocol):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NO_ERROR


def _differ(asked: str | None, chosen: str | None) -> bool:
    """Whether both names are given and not the same."""
    return asked != chosen and asked is not None and chosen is not None


def _has_synced(shard: Shard, group: ClassicGroup, member_id: str) -> None:
    """The member has synced. Once all have, the timer that removes the others is cancelled."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        shard.timers.cancel(SYNC, group.name)


def _write_plan(shard: Shard, request: SyncGroup, group: ClassicGroup) -> Write:
    """Write the leader's assignments. They count once they are written, if the group still waits for them.

    A member that the leader left out gets an empty assignment: no bytes at all.
    """
    plan = dict(request.assignments)

    def on_written(error: Error | None) -> None:
        awaited = shard.exists(group) and group.state is COMPLETING_REBALANCE
        if not awaited or request.generation != group.generation:
            return
        if error is None:
            hand_out(shard, group, plan, NO_ERROR)
            transition(shard, group, Cause.ASSIGNED, request.member_id)
        else:
            hand_out(shard, group, {}, group_append_error(error))
            rebalance_or_complete(shard, group, Cause.APPEND_FAILED, request.member_id)

    return Write(group.name, [group_record(shard, group, plan)], AppendCause.GENERATION, on_written)
