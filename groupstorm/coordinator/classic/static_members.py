"""Static members that come back under a new id (KIP-345).

Kafka: GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.coordinator.classic.changes import (
    answer_join,
    answer_parked_join,
    answer_parked_sync,
    of_generation,
    restart_session,
)
from groupstorm.coordinator.classic.group import ClassicGroup, Member, Protocols
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.rebalances import maybe_complete_join, prepare_rebalance
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import CoordinatorFault, Error
from groupstorm.coordinator.messages import NO_MEMBER_ID, JoinGroup, JoinGroupResponse
from groupstorm.coordinator.records import AppendCause, group_append_error
from groupstorm.coordinator.shard import Shard
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
