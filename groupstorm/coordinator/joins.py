"""JoinGroup: who may come in, under which id, and what that does to the group.

Version notes
* 0: no rebalance timeout: the session timeout stands in for it (before the request gets here).
* 4: a member without an id is sent back with one: MEMBER_ID_REQUIRED (KIP-394).
* 5: group.instance.id (KIP-345); static members need no second join.
* 9: a static leader that comes back is told to skip its assignment (KIP-814).

Kafka: GroupMetadataManager.classicGroupJoin and below, GroupCoordinatorService.joinGroup.
"""

from __future__ import annotations

from groupstorm.coordinator import events
from groupstorm.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.group import ClassicGroup, Member
from groupstorm.coordinator.messages import NO_MEMBER_ID, JoinGroup, JoinGroupResponse
from groupstorm.coordinator.rebalances import rebalance_or_complete
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import EMPTY, MEMBER_UPDATED, PREPARING_REBALANCE, STABLE, Cause
from groupstorm.coordinator.static_members import replace_static_member
from groupstorm.coordinator.timers import TimerKind
from groupstorm.coordinator.writes import Write

#: First version of JoinGroup that wants a known member id (JoinGroupRequest.requiresKnownMemberId).
_KNOWN_MEMBER_ID_SINCE = 4


def handle_join(shard: Shard, request: JoinGroup, answer: Answer) -> Write | None:
    """Answer at once, or park the request in the group's round."""
    group = shard.groups.get(request.group)
    error = _check(shard, request, group)
    if error:
        return _refuse(shard, request, answer, error)
    is_new_group = group is None
    if group is None:
        group = shard.create_group(request.group, "join")
    write = _join_group(shard, request, answer, group)
    if is_new_group and write is None:
        # The answer does not wait for this record, but the group is gone again without it.
        write = Write(group.name, [shard.group_record(group)], AppendCause.EMPTY_GROUP)
        write.then(lambda error: _on_group_written(shard, request, answer, error))
    return write


def _on_group_written(shard: Shard, request: JoinGroup, answer: Answer, error: Error | None) -> None:
    if error is not None:
        response = JoinGroupResponse(group_append_error(error))
        shard.join_answered(answer, request.group, request.client_id, request.member_id, response)


def _check(shard: Shard, request: JoinGroup, group: ClassicGroup | None) -> Error:
    """What is refused whatever the group's state."""
    config = shard.config
    if not request.group:
        return Error.INVALID_GROUP_ID
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        return Error.INVALID_SESSION_TIMEOUT
    if group is None and request.member_id != NO_MEMBER_ID:
        return Error.UNKNOWN_MEMBER_ID
    return NO_ERROR


def _refuse(shard: Shard, request: JoinGroup, answer: Answer, error: Error) -> Write | None:
    """Answer with an error and the request's member id; there is nothing to write."""
    response = JoinGroupResponse(error, member_id=request.member_id)
    shard.join_answered(answer, request.group, request.client_id, request.member_id, response)
    return None


def _join_group(shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup) -> Write | None:
    if not _has_room(shard, group, request.member_id):
        _forget_refused(shard, group, request.member_id)
        response = JoinGroupResponse(Error.GROUP_MAX_SIZE_REACHED)
        shard.join_answered(answer, group.name, request.client_id, request.member_id, response)
        return None
    if not group.supports(request.protocol_type, request.protocols):
        return _refuse(shard, request, answer, Error.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id == NO_MEMBER_ID:
        return _join_without_id(shard, request, answer, group)
    if request.member_id in group.pending_members:
        if request.group_instance_id is not None:
            raise CoordinatorFault(f"pending member {request.member_id!r} joined as a static one")
        return _add(shard, request, answer, group, request.member_id, Cause.PENDING_MEMBER)
    return _join_again(shard, request, answer, group)


def _has_room(shard: Shard, group: ClassicGroup, member_id: str) -> bool:
    """Members that are in are never refused, except that in an open round the places go to those who
    come first (GMM.acceptJoiningMember)."""
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
        shard.removed(group, member, Cause.GROUP_FULL)


def _join_without_id(shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup) -> Write | None:
    """A new member, or a static one that comes back; the id is drawn only now that nothing refuses it."""
    instance = request.group_instance_id
    member_id = shard.member_ids(request.client_id if instance is None else instance)
    if instance is not None:
        known = group.static_members.get(instance)
        if known is not None:
            return replace_static_member(shard, request, answer, group, known, member_id)
        return _add(shard, request, answer, group, member_id, Cause.STATIC_MEMBER)
    if request.version < _KNOWN_MEMBER_ID_SINCE:
        return _add(shard, request, answer, group, member_id, Cause.NEW_MEMBER)
    group.pending_members[member_id] = request.client_id
    deadline_ms = shard.now_ms + request.session_timeout_ms
    shard.timers.set(TimerKind.SESSION, group.name, member_id, deadline_ms)
    shard.emit(events.MemberPending(group.name, request.client_id, member_id))
    response = JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=member_id)
    shard.join_answered(answer, group.name, request.client_id, member_id, response)
    return None


def _add(
    shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup, member_id: str, cause: Cause
) -> Write | None:
    """A member more: parked, and the round opens or goes on (GMM.addMemberThenRebalanceOrCompleteJoin)."""
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
    group.add(member, answer)
    shard.emit(
        events.MemberAdded(
            group.name, member.client_id, member_id, member.group_instance_id, group.generation, cause
        )
    )
    shard.emit(events.JoinParked(group.name, member.client_id, member_id, group.generation))
    shard.restart_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return rebalance_or_complete(shard, group, cause, member_id)


def _join_again(shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup) -> Write | None:
    """A member joins again: part of the round, the reason for one, or a retry
    (GMM.classicGroupJoinExistingMember)."""
    error = group.validate(request.member_id, request.group_instance_id)
    if error:
        response = JoinGroupResponse(error, member_id=request.member_id, protocol=None)
        shard.join_answered(answer, group.name, request.client_id, request.member_id, response)
        return None
    member = group.members[request.member_id]
    changed = member.protocols != request.protocols
    is_leader = group.leader == request.member_id
    if group.state is EMPTY:
        return _refuse(shard, request, answer, Error.UNKNOWN_MEMBER_ID)
    if group.state is PREPARING_REBALANCE or changed or (group.state is STABLE and is_leader):
        return _update(shard, request, answer, group, member)
    _answer_retry(shard, answer, group, member, is_leader)
    return None


def _update(
    shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup, member: Member
) -> Write | None:
    """Take the new metadata and park (GMM.updateMemberThenRebalanceOrCompleteJoin).

    A join that is parked already is replaced: it will never be answered.
    """
    changed = member.protocols != request.protocols
    timeouts_ms = (request.session_timeout_ms, request.rebalance_timeout_ms)
    group.update(member, request.protocols, timeouts_ms, answer)
    who = (group.name, member.client_id, member.member_id, group.generation)
    if changed:
        shard.events.append(events.MemberUpdated(*who))
    shard.events.append(events.JoinParked(*who))
    is_leader = group.leader == member.member_id and group.state is STABLE
    cause = Cause.LEADER_REJOINED if is_leader else MEMBER_UPDATED
    return rebalance_or_complete(shard, group, cause, member.member_id)


def _answer_retry(shard: Shard, answer: Answer, group: ClassicGroup, member: Member, is_leader: bool) -> None:
    """Nothing new: the first answer may be lost, so the generation is given again."""
    response = JoinGroupResponse(
        NO_ERROR,
        group.generation,
        member.member_id,
        group.leader or "",
        group.protocol_type,
        group.protocol,
        members=group.described_members() if is_leader else (),
    )
    shard.join_answered(answer, group.name, member.client_id, member.member_id, response)
