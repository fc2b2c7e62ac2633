"""Static members that come back under a new id (KIP-345).

Kafka: GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.coordinator import events
from groupstorm.coordinator.effects import Answer
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.group import ClassicGroup, Member, Protocols
from groupstorm.coordinator.messages import NO_MEMBER_ID, JoinGroup, JoinGroupResponse
from groupstorm.coordinator.rebalances import maybe_complete_join, prepare_rebalance
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import Cause, GroupState
from groupstorm.coordinator.writes import Write

#: First version of JoinGroup whose leader can be told to skip (JoinGroupRequest.supportsSkippingAssignment).
_SKIP_ASSIGNMENT_SINCE = 9


class _Replacement(NamedTuple):
    """What was before, to go back to if the new id cannot be written."""

    instance: str
    old_id: str
    new_id: str
    old_leader: str | None
    old_protocols: Protocols
    old_timeouts_ms: tuple[int, int]


def replace_static_member(
    shard: Shard, request: JoinGroup, answer: Answer, group: ClassicGroup, old_id: str, new_id: str
) -> Write | None:
    """The instance gets its new id and its requests under the old one are fenced.

    A stable group stays as it is, so long as the same protocol would be chosen, whatever else
    the metadata says; in the other states the member takes part in the round.
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
    shard.restart_session(group, member)
    before = _Replacement(
        instance,
        old_id,
        new_id,
        old_leader,
        member.protocols,
        (member.session_timeout_ms, member.rebalance_timeout_ms),
    )
    changed = member.protocols != request.protocols
    group.update(
        member, request.protocols, (request.session_timeout_ms, request.rebalance_timeout_ms), answer
    )
    if changed:
        shard.emit(events.MemberUpdated(group.name, member.client_id, new_id, group.generation))
    shard.emit(events.JoinParked(group.name, member.client_id, new_id, group.generation))
    if group.state is GroupState.PREPARING_REBALANCE:
        return maybe_complete_join(shard, group, new_id)
    if group.state is GroupState.STABLE and (group.protocol or "") == group.select_protocol():
        return _keep_stable(shard, request, answer, group, member, before)
    # In CompletingRebalance the leader may be planning for the old id: whatever it sends, nobody
    # with the new id would be in it.
    return prepare_rebalance(shard, group, Cause.STATIC_MEMBER, new_id)


def _fence(shard: Shard, group: ClassicGroup, old_id: str) -> None:
    """A process that still waits under the old id learns that another has taken its place."""
    old = group.members[old_id]
    fenced = JoinGroupResponse(Error.FENCED_INSTANCE_ID, member_id=old_id, protocol=None)
    shard.answer_join(group, old, fenced)
    shard.answer_sync(group, old, Error.FENCED_INSTANCE_ID)


def _keep_stable(
    shard: Shard,
    request: JoinGroup,
    answer: Answer,
    group: ClassicGroup,
    member: Member,
    before: _Replacement,
) -> Write:
    """No rebalance: the new id is written, and only then answered."""

    def on_written(error: Error | None) -> None:
        if not shard.exists(group):
            return
        if error is None:
            _answer_replaced(shard, request, group, member, before.old_leader)
        else:
            _go_back(shard, answer, group, member, before, error)

    return Write(group.name, [shard.group_record(group)], AppendCause.STATIC_MEMBER, on_written)


def _answer_replaced(
    shard: Shard, request: JoinGroup, group: ClassicGroup, member: Member, old_leader: str | None
) -> None:
    """From version 9 on a leader gets the members, to watch their topics, and is told to skip the
    assignment (KIP-814). Before, it must not know that it leads, or it would assign: it is given
    its old id as the leader's."""
    response = JoinGroupResponse(
        Error.NONE,
        group.generation,
        member.member_id,
        old_leader or "",
        group.protocol_type,
        group.protocol,
    )
    if request.version >= _SKIP_ASSIGNMENT_SINCE:
        leads = group.leader == member.member_id
        members = group.described_members() if leads else ()
        response = response._replace(leader=group.leader or "", skip_assignment=leads, members=members)
    shard.answer_join(group, member, response)


def _go_back(
    shard: Shard,
    answer: Answer,
    group: ClassicGroup,
    member: Member,
    before: _Replacement,
    error: Error,
) -> None:
    """The new id could not be written: the old one is in the group again."""
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
    shard.restart_session(group, old)
    response = JoinGroupResponse(
        group_append_error(error),
        group.generation,
        NO_MEMBER_ID,
        before.old_leader or "",
        group.protocol_type,
        group.protocol,
    )
    shard.join_answered(answer, group.name, member.client_id, before.new_id, response)
