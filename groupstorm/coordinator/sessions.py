"""Sessions end: of members, of new members that are parked too long, of ids that nobody uses.

Kafka: GroupMetadataManager.expireClassicGroupMemberHeartbeat and what it calls.
"""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator import events
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.group import ClassicGroup, Member
from groupstorm.coordinator.messages import JoinGroupResponse
from groupstorm.coordinator.rebalances import complete_join, prepare_rebalance
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.states import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE, Cause
from groupstorm.coordinator.timers import SESSION
from groupstorm.coordinator.writes import Write

#: (group, member id, deadline in ms) -> when the member was last heard of, in ms, if that is later than
#: the coordinator knows. A time that leads to the same deadline again means: others, whose sessions end
#: at the same millisecond, were silent before this one; it is asked about again behind them.
LastContact = Callable[[str, str, int], int | None]

#: Said in place of a time, later than any: heartbeats come often enough. The session cannot end until
#: `out_of_touch` says that they have stopped, or another request starts it again.
IN_TOUCH = 1 << 62


def on_session_timer(
    shard: Shard, group: ClassicGroup, member_id: str, deadline_ms: int, last_contact: LastContact | None
) -> Write | None:
    """Remove whom the timer was for, unless it is parked, gone or has been heard of."""
    if member_id in group.pending_members:
        group.remove(member_id)
        shard.emit(events.PendingMemberRemoved(group.name, member_id, Cause.SESSION_EXPIRED))
        return _complete_if_all_joined(shard, group, None)
    member = group.members.get(member_id)
    if member is None or member.satisfies_heartbeat():
        return None
    if not member.is_new and _was_heard_of(shard, group, member, deadline_ms, last_contact):
        return None
    return _expire(shard, group, member)


def _was_heard_of(
    shard: Shard, group: ClassicGroup, member: Member, deadline_ms: int, last_contact: LastContact | None
) -> bool:
    """Whether heartbeats came that were not delivered one by one; then the session goes on from the last."""
    if last_contact is None:
        return False
    contact_ms = last_contact(group.name, member.member_id, deadline_ms)
    if contact_ms == IN_TOUCH:
        return True
    if contact_ms is None or contact_ms + member.session_timeout_ms < deadline_ms:
        return False
    until_ms = contact_ms + member.session_timeout_ms
    shard.timers.set(SESSION, group.name, member.member_id, until_ms)
    return True


def out_of_touch(shard: Shard, group: ClassicGroup, member_id: str, contact_ms: int) -> None:
    """The heartbeats of a member that was `IN_TOUCH` have stopped, the last one at ``contact_ms``."""
    member = group.members.get(member_id)
    if member is not None and shard.timers.deadline_of(SESSION, group.name, member_id) is None:
        until_ms = max(shard.now_ms, contact_ms + member.session_timeout_ms)
        shard.timers.set(SESSION, group.name, member_id, until_ms)


def _expire(shard: Shard, group: ClassicGroup, member: Member) -> Write | None:
    """A new member may be parked still: it is told to start again."""
    cause = Cause.NEW_MEMBER_TIMEOUT if member.is_new else Cause.SESSION_EXPIRED
    shard.answer_join(group, member, JoinGroupResponse(Error.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    shard.removed(group, member, cause)
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return prepare_rebalance(shard, group, cause, member.member_id)
    return _complete_if_all_joined(shard, group, member.member_id)


def _complete_if_all_joined(shard: Shard, group: ClassicGroup, member_id: str | None) -> Write | None:
    """Here Kafka does not wait for the initial delay: the last one missing has gone, the round closes."""
    if group.state is PREPARING_REBALANCE and group.all_joined():
        return complete_join(shard, group, Cause.ALL_JOINED, member_id)
    return None
