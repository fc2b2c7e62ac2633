"""Members leave, or are fenced: they were silent, or did not give tasks up in time.

Kafka: GroupMetadataManager.streamsGroupLeave, streamsGroupStaticMemberGroupLeave, streamsGroupFenceMember.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from groupstorm.coordinator.changes import cancel_member_timers, respond, write_records
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.modern.member import LEAVE_STATIC_EPOCH
from groupstorm.coordinator.pending_writes import Completion, Write
from groupstorm.coordinator.records import AppendCause
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import NOTHING_HELD, StreamsMember
from groupstorm.coordinator.streams.membership import group_of, known_sender
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.records import StreamsGroupRecord
from groupstorm.coordinator.streams.targets import delay_is_over
from groupstorm.coordinator.timers import MEMBER_REBALANCE, STREAMS_DELAY, Timer
from groupstorm.coordinator.writes import answering
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import at_once


def leave(shard: Shard, request: StreamsGroupHeartbeat, reply: PendingReply) -> Write | None:
    """The member leaves; a static one may do so for a while (epoch -2) and keep its tasks."""
    if shard.groups.get(request.group) is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
    group = group_of(shard, request.group)
    if request.shutdown and group.shutdown_member is None:
        group.shutdown_member = request.member_id  # before the member is looked up, as in Kafka
    member = known_sender(group, request.member_id, request.group_instance_id)
    response = StreamsGroupHeartbeatResponse(NO_ERROR, request.member_id, request.member_epoch)
    if request.group_instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        record = _gone_for_a_while(group, member)
        return at_once(respond(shard, request, reply, [record], AppendCause.MEMBER_HEARTBEAT, response))
    return _fence(shard, group, member, Cause.LEFT, answering(shard, reply, response))


def _gone_for_a_while(group: StreamsGroup, member: StreamsMember) -> Any:
    """The member keeps what is assigned to it; its session goes on running."""
    assigned = member.assigned._replace(active=dict.fromkeys(member.assigned.active, 0))
    gone = replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking=NOTHING_HELD)
    return group.current_record(gone)


def _fence(
    shard: Shard,
    group: StreamsGroup,
    member: StreamsMember,
    cause: Cause,
    on_written: Completion | None = None,
) -> Write:
    """Remove the member; the group epoch counts up."""
    epoch = group.epoch + 1
    records = group.removal(member.member_id)
    records.append(StreamsGroupRecord(group.name, group.facts._replace(epoch=epoch)))
    records += group.up_to_date_without([member], epoch, shard.config.compatibility)
    cancel_member_timers(shard, group.name, member.member_id)
    return write_records(shard, group.name, records, AppendCause.MEMBERS_REMOVED, on_written, cause)


def on_streams_timer(shard: Shard, group: StreamsGroup, timer: Timer) -> Write | None:
    """A member's time is over, or the group's initial delay. A rebalance timeout counts only for the epoch in
    which it was set."""
    kind, _, member_id = timer.key
    if kind is STREAMS_DELAY:
        records = delay_is_over(shard, group)
        if not records:
            return None
        return write_records(shard, group.name, records, AppendCause.TARGETS_COMPUTED)
    member = group.members.get(member_id)
    if member is None or (kind is MEMBER_REBALANCE and member.epoch != timer.payload):
        return None
    cause = Cause.REBALANCE_TIMEOUT if kind is MEMBER_REBALANCE else Cause.SESSION_EXPIRED
    return _fence(shard, group, member, cause)
