"""Sessions end: of members, of new members that are parked for too long, of pending ids.

Kafka: GroupMetadataManager.expireClassicGroupMemberHeartbeat and what it calls.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import emit_member_removed
from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.rebalances import complete_join, prepare_rebalance
from groupstorm.coordinator.classic.replies import answer_parked_join
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupResponse
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


def on_session_timer(shard: Shard, group: ClassicGroup, member_id: str) -> Write | None:
    """Remove the member or the pending id, unless the member is parked or gone."""
    if member_id in group.pending_members:
        group.remove(member_id)
        shard.emit(events.PendingMemberRemoved(group.name, member_id, Cause.SESSION_EXPIRED))
        return _complete_if_all_joined(shard, group, None)
    member = expiring_member(group, member_id)
    return None if member is None else _expire(shard, group, member)


def expiring_member(group: ClassicGroup, member_id: str) -> Member | None:
    """The member that the end of its session removes; None if it is parked or gone."""
    member = group.members.get(member_id)
    return None if member is None or member.satisfies_heartbeat() else member


def _expire(shard: Shard, group: ClassicGroup, member: Member) -> Write | None:
    """Remove the member. A new one may be parked: its join is answered UNKNOWN_MEMBER_ID."""
    cause = Cause.NEW_MEMBER_TIMEOUT if member.is_new else Cause.SESSION_EXPIRED
    answer_parked_join(shard, group, member, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    emit_member_removed(shard, group, member, cause)
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return prepare_rebalance(shard, group, cause, member.member_id)
    return _complete_if_all_joined(shard, group, member.member_id)


def _complete_if_all_joined(shard: Shard, group: ClassicGroup, member_id: str | None) -> Write | None:
    """The last missing member may have gone. Unlike elsewhere Kafka does not wait for the initial delay."""
    if group.state is PREPARING_REBALANCE and group.all_joined():
        return complete_join(shard, group, Cause.ALL_JOINED, member_id)
    return None
