"""A classic group fails: its parked requests are answered, its members are forgotten, it goes on empty.

Parked requests get COORDINATOR_NOT_AVAILABLE. Clients look for the coordinator again and join with the id
that they have; it is unknown now (UNKNOWN_MEMBER_ID), so they join as new members. The application sees a
rebalance. UNKNOWN_SERVER_ERROR would be fatal for Java's consumer: `poll` throws it. Committed offsets stay.
"""

from __future__ import annotations

from groupstorm.coordinator.classic.changes import (
    answer_all_parked,
    cancel_timers,
    emit_member_removed,
    exists_if_written,
    transition,
)
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.records import AppendCause
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import JOIN, SYNC
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


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
    """Put an empty group in the place of this one. Returns the write of its record, None without a group.

    The new group keeps generation, protocol type and offsets. Writes under way find that their group is gone,
    and change nothing.
    """
    group = shard.group_as(name, ClassicGroup)
    if group is None or (only_if_stalled and not _is_stalled(shard, group)):
        return None
    cancel_timers(shard, group)
    answer_all_parked(shard, group, Error.COORDINATOR_NOT_AVAILABLE)
    for member in group.members.values():
        emit_member_removed(shard, group, member, Cause.FAILED)
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
