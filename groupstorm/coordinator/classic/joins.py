"""JoinGroup: which members the group takes, under which ids, and the round that follows; static members that
come back under a new id (KIP-345).

Version notes
* 0: no rebalance timeout. The broker puts the session timeout in its place.
* 4: a member without an id is sent back with one: MEMBER_ID_REQUIRED (KIP-394).
* 5: group.instance.id (KIP-345); static members need no second join.
* 9: a static leader that comes back is told to skip its assignment (KIP-814).

Kafka: GroupMetadataManager.classicGroupJoin and below, updateStaticMemberThenRebalanceOrCompleteJoin,
GroupCoordinatorService.joinGroup.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.coordinator.changes import emit_removed
from groupstorm.coordinator.classic.changes import (
    answer_join,
    answer_parked_join,
    answer_parked_sync,
    create_group,
    of_generation,
    restart_session,
)
from groupstorm.coordinator.classic.group import ClassicGroup, Member, Protocols
from groupstorm.coordinator.classic.group_records import empty_group_record, group_record
from groupstorm.coordinator.classic.rebalances import (
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete,
)
from groupstorm.coordinator.classic.states import EMPTY, MEMBER_UPDATED, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Error
from groupstorm.coordinator.messages import NO_MEMBER_ID, JoinGroup, JoinGroupResponse
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import SESSION
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState

#: First version of JoinGroup whose leader can be told to skip (JoinGroupRequest.supportsSkippingAssignment).
_SKIP_ASSIGNMENT_SINCE = 9


class _Replacement(NamedTuple):
    """The state before the replacement, which is restored if the new id cannot be written."""

    instance: str
    old_id: str
    new_id: str
    old_leader: str | None
    old_protocols: Protocols
    old_timeouts_ms: tuple[int, int]


def replace_static_member(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup, old_id: str, new_id: str
) -> Write | None:
    """Give the instance its new id, and fence its requests under the old one.

    A stable group stays as it is if the same protocol would be chosen, whatever else the metadata says. In
    the other states the member takes part in the round.
    """
    if group.state is GroupState.EMPTY:
        raise CoordinatorFault(f"group {group.name!r} is empty and has static member {old_id!r}")
    instance = request.group_instance_id or ""
    old_leader = group.leader
    _fence(shard, group, old_id)
    member = group.replace(instance, old_id, new_id)
    shard.emit(
        events.MemberReplaced(group.name, member.client_id, new_id, old_id, instance, group.generation)
    )
    restart_session(shard, group, member)
    before = _Replacement(
        instance,
        old_id,
        new_id,
        old_leader,
        member.protocols,
        (member.session_timeout_ms, member.rebalance_timeout_ms),
    )
    changed = member.protocols != request.protocols
    group.update(member, request.protocols, (request.session_timeout_ms, request.rebalance_timeout_ms), reply)
    if changed:
        shard.emit(events.MemberUpdated(group.name, member.client_id, new_id, group.generation))
    shard.emit(events.JoinParked(group.name, member.client_id, new_id, group.generation))
    if group.state is GroupState.PREPARING_REBALANCE:
        return maybe_complete_join(shard, group, new_id)
    if group.state is GroupState.STABLE and (group.protocol or "") == group.select_protocol():
        return _keep_stable(shard, request, reply, group, member, before)
    # In CompletingRebalance the leader may be assigning to the old id already.
    return prepare_rebalance(shard, group, Cause.STATIC_MEMBER, new_id)


def _fence(shard: Shard, group: ClassicGroup, old_id: str) -> None:
    """Answer the parked requests of the old id: another process has taken its place."""
    old = group.members[old_id]
    fenced = JoinGroupResponse(Error.FENCED_INSTANCE_ID, member_id=old_id, protocol=None)
    answer_parked_join(shard, group, old, fenced)
    answer_parked_sync(shard, group, old, Error.FENCED_INSTANCE_ID)


def _keep_stable(
    shard: Shard,
    request: JoinGroup,
    reply: PendingReply,
    group: ClassicGroup,
    member: Member,
    before: _Replacement,
) -> Write:
    """No rebalance: write the new id, and answer when it is written."""

    def on_written(error: Error | None) -> None:
        if not shard.exists(group):
            return
        if error is None:
            _answer_replaced(shard, request, group, member, before.old_leader)
        else:
            _go_back(shard, reply, group, member, before, error)

    return Write(group.name, [group_record(shard, group)], AppendCause.STATIC_MEMBER, on_written)


def _answer_replaced(
    shard: Shard, request: JoinGroup, group: ClassicGroup, member: Member, old_leader: str | None
) -> None:
    """Answer the member of a group that stays stable.

    From version 9 on a leader gets the members, whose topics it watches, and is told to skip the assignment
    (KIP-814). Before, the answer names the old id as the leader: a leader that knew would assign.
    """
    response = of_generation(group, member.member_id, old_leader or "")
    if request.version >= _SKIP_ASSIGNMENT_SINCE:
        leads = group.leader == member.member_id
        if leads and group.state is GroupState.PREPARING_REBALANCE:
            return  # a round has begun: its end answers the join. Kafka: an exception that nobody sees
        members = group.described_members() if leads else ()
        response = response._replace(leader=group.leader or "", skip_assignment=leads, members=members)
    answer_parked_join(shard, group, member, response)


def _go_back(
    shard: Shard,
    reply: PendingReply,
    group: ClassicGroup,
    member: Member,
    before: _Replacement,
    error: Error,
) -> None:
    """The new id could not be written: put the old one into the group again."""
    if group.members.get(before.new_id) is not member:
        raise CoordinatorFault(f"cannot replace member {before.new_id!r}: there is none")
    group.update(member, before.old_protocols, before.old_timeouts_ms, None)
    _fence(shard, group, before.new_id)
    old = group.replace(before.instance, before.new_id, before.old_id)
    shard.emit(
        events.MemberReplaced(
            group.name, old.client_id, before.old_id, before.new_id, before.instance, group.generation
        )
    )
    restart_session(shard, group, old)
    present = of_generation(group, NO_MEMBER_ID, before.old_leader or "")
    response = present._replace(error=group_append_error(error))
    answer_join(shard, reply, group.name, member.client_id, before.new_id, response)


#: First version of JoinGroup that wants a known member id (JoinGroupRequest.requiresKnownMemberId).
_KNOWN_MEMBER_ID_SINCE = 4


def handle_join(shard: Shard, request: JoinGroup, reply: PendingReply) -> Write | None:
    """Answer at once, or park the request in the group's round."""
    group = shard.group_as(request.group, ClassicGroup)
    error = _check_fields(shard, request)
    if not error and group is None and request.member_id != NO_MEMBER_ID:
        error = Error.UNKNOWN_MEMBER_ID
    if error:
        return _refuse(shard, request, reply, error)
    is_new_group = group is None
    if group is None:
        group = create_group(shard, request.group, "join")
    write = _join_group(shard, request, reply, group)
    if is_new_group and write is None:
        # The answer does not wait for this record, but if the record fails, the group is gone again.
        write = Write(group.name, [empty_group_record(group)], AppendCause.EMPTY_GROUP)
        write.then(lambda error: _on_group_written(shard, request, reply, error))
    return write


def _on_group_written(shard: Shard, request: JoinGroup, reply: PendingReply, error: Error | None) -> None:
    if error is not None:
        response = JoinGroupResponse(group_append_error(error))
        answer_join(shard, reply, request.group, request.client_id, request.member_id, response)


def _check_fields(shard: Shard, request: JoinGroup) -> Error:
    """The error of a request that no group takes (GroupCoordinatorService.joinGroup)."""
    config = shard.config
    if not request.group:
        return Error.INVALID_GROUP_ID
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        return Error.INVALID_SESSION_TIMEOUT
    return NO_ERROR


def refuse_outright(shard: Shard, request: JoinGroup, reply: PendingReply) -> bool:
    """Answer a request that no group takes, whatever its kind; False if a group may take it."""
    error = _check_fields(shard, request)
    if error:
        _refuse(shard, request, reply, error)
    return bool(error)


def _refuse(shard: Shard, request: JoinGroup, reply: PendingReply, error: Error) -> Write | None:
    """Answer with an error and the request's member id."""
    response = JoinGroupResponse(error, member_id=request.member_id)
    answer_join(shard, reply, request.group, request.client_id, request.member_id, response)
    return None


def _join_group(shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup) -> Write | None:
    if not _has_room(shard, group, request.member_id):
        _forget_refused(shard, group, request.member_id)
        response = JoinGroupResponse(Error.GROUP_MAX_SIZE_REACHED)
        answer_join(shard, reply, group.name, request.client_id, request.member_id, response)
        return None
    if not group.supports(request.protocol_type, request.protocols):
        return _refuse(shard, request, reply, Error.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id == NO_MEMBER_ID:
        return _join_without_id(shard, request, reply, group)
    if request.member_id in group.pending_members:
        if request.group_instance_id is not None:
            raise CoordinatorFault(f"pending member {request.member_id!r} joined as a static one")
        return _add(shard, request, reply, group, request.member_id, Cause.PENDING_MEMBER)
    return _join_again(shard, request, reply, group)


def _has_room(shard: Shard, group: ClassicGroup, member_id: str) -> bool:
    """Members of the group always have room, except in an open round: there the first to join have it
    (GMM.acceptJoiningMember)."""
    if group.state is EMPTY:
        return True
    if group.state is PREPARING_REBALANCE:
        if group.awaiting_join < shard.config.max_size:
            return True
        member = group.members.get(member_id)
        return member is not None and member.join is not None
    return group.members.get(member_id) is not None or len(group.members) < shard.config.max_size


def _forget_refused(shard: Shard, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.pending_members:
        shard.emit(events.PendingMemberRemoved(group.name, member_id, Cause.GROUP_FULL))
    member = group.remove(member_id)
    if member is not None:
        emit_removed(shard, group, member, member.group_instance_id, Cause.GROUP_FULL)


def _join_without_id(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup
) -> Write | None:
    """A new member, or a static one that comes back. No check can refuse it any more, so its id is drawn."""
    instance = request.group_instance_id
    member_id = shard.member_ids(request.client_id if instance is None else instance)
    if instance is not None:
        known = group.static_members.get(instance)
        if known is not None:
            return replace_static_member(shard, request, reply, group, known, member_id)
        return _add(shard, request, reply, group, member_id, Cause.STATIC_MEMBER)
    if request.version < _KNOWN_MEMBER_ID_SINCE:
        return _add(shard, request, reply, group, member_id, Cause.NEW_MEMBER)
    group.pending_members[member_id] = request.client_id
    deadline_ms = shard.now_ms + request.session_timeout_ms
    shard.timers.set(SESSION, group.name, member_id, deadline_ms)
    shard.emit(events.MemberPending(group.name, request.client_id, member_id))
    response = JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=member_id)
    answer_join(shard, reply, group.name, request.client_id, member_id, response)
    return None


def _add(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup, member_id: str, cause: Cause
) -> Write | None:
    """Add a member and park its join. A round opens or goes on (GMM.addMemberThenRebalanceOrCompleteJoin)."""
    member = Member(
        member_id,
        request.group_instance_id,
        (request.client_id, request.client_host),
        (request.session_timeout_ms, request.rebalance_timeout_ms),
        request.protocol_type,
        request.protocols,
    )
    member.is_new = True
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member, reply)
    shard.emit(
        events.MemberAdded(
            group.name, member.client_id, member_id, member.group_instance_id, group.generation, cause
        )
    )
    shard.emit(events.JoinParked(group.name, member.client_id, member_id, group.generation))
    restart_session(shard, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return rebalance_or_complete(shard, group, cause, member_id)


def _join_again(shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup) -> Write | None:
    """A member joins again: in an open round, as the reason for one, or in a retry
    (GMM.classicGroupJoinExistingMember)."""
    error = group.validate(request.member_id, request.group_instance_id)
    if error:
        response = JoinGroupResponse(error, member_id=request.member_id, protocol=None)
        answer_join(shard, reply, group.name, request.client_id, request.member_id, response)
        return None
    member = group.members[request.member_id]
    changed = member.protocols != request.protocols
    is_leader = group.leader == request.member_id
    if group.state is PREPARING_REBALANCE or changed or (group.state is STABLE and is_leader):
        return _update(shard, request, reply, group, member)
    _answer_retry(shard, reply, group, member, is_leader)
    return None


def _update(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: ClassicGroup, member: Member
) -> Write | None:
    """Take the new metadata and park the join (GMM.updateMemberThenRebalanceOrCompleteJoin).

    It replaces a join that is parked already: that one will never be answered.
    """
    changed = member.protocols != request.protocols
    timeouts_ms = (request.session_timeout_ms, request.rebalance_timeout_ms)
    group.update(member, request.protocols, timeouts_ms, reply)
    who = (group.name, member.client_id, member.member_id, group.generation)
    if changed:
        shard.emit(events.MemberUpdated(*who))
    shard.emit(events.JoinParked(*who))
    is_leader = group.leader == member.member_id and group.state is STABLE
    cause = Cause.LEADER_REJOINED if is_leader else MEMBER_UPDATED
    return rebalance_or_complete(shard, group, cause, member.member_id)


def _answer_retry(
    shard: Shard, reply: PendingReply, group: ClassicGroup, member: Member, is_leader: bool
) -> None:
    """The metadata is the same: the first answer may be lost, so the member gets the generation again."""
    members = group.described_members() if is_leader else ()
    response = of_generation(group, member.member_id, group.leader or "", members)
    answer_join(shard, reply, group.name, member.client_id, member.member_id, response)
