"""ConsumerGroupHeartbeat: a member joins, says what it owns, learns what it shall own, leaves, or is fenced.

Version notes
* 0: the coordinator may draw the member's id.
* 1: the member draws its id itself; regular expressions (KIP-848).

Kafka: GroupCoordinatorService.consumerGroupHeartbeat, GroupMetadataManager.consumerGroupHeartbeat,
getOrMaybeSubscribeDynamicConsumerGroupMember and ...Static..., throwIfConsumerGroupIsFull,
consumerGroupLeave, consumerGroupFenceMembers, consumerGroupFenceMemberOperation.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.coordinator.changes import remove_members, respond, restart_session
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, owns_only
from groupstorm.coordinator.consumer.migration import downgrade_without, group_to_join, may_downgrade_without
from groupstorm.coordinator.consumer.subscriptions import (
    Noticed,
    RegexChange,
    change_regex,
    notice_topics,
    write_subscription,
)
from groupstorm.coordinator.consumer.targets import assign, preferred_assignor, reconcile_member
from groupstorm.coordinator.effects import Completion, PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused, refuse_blank
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import (
    find_member,
    group_of_kind,
    leave,
    on_member_timer,
    refuse_if_full,
)
from groupstorm.coordinator.modern.subscribed import named, update_target
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import Timer
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import Turns

#: First version whose members draw their ids themselves.
_OWN_MEMBER_ID_SINCE = 1


def handle_consumer_heartbeat(
    shard: Shard, request: ConsumerGroupHeartbeat, reply: PendingReply
) -> Turns[Write | None]:
    """Answer with the member's epoch, and with its assignment if that is news to the member."""
    _check(shard, request)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        left = group_of_kind(shard.groups.get(request.group), request.group, ConsumerGroup)
        response = ConsumerGroupHeartbeatResponse(NO_ERROR, request.member_id, request.member_epoch)
        return leave(shard, left, request, reply, response, fence)
    return (yield from _heartbeat(shard, request, reply))


def _check(shard: Shard, request: ConsumerGroupHeartbeat) -> None:
    """Refuse what no group can answer (throwIfConsumerGroupHeartbeatRequestIsInvalid)."""
    epoch = request.member_epoch
    if request.version >= _OWN_MEMBER_ID_SINCE or epoch > 0 or epoch == LEAVE_EPOCH:
        refuse_blank(request.member_id, "MemberId")
    refuse_blank(request.group, "GroupId")
    refuse_blank(request.group_instance_id, "InstanceId")
    refuse_blank(request.rack, "RackId")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise Refused(Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            raise Refused(Error.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
        if request.topics is None and request.regex is None:
            raise Refused(
                Error.INVALID_REQUEST,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            )
    elif epoch == LEAVE_STATIC_EPOCH and request.group_instance_id is None:
        raise Refused(Error.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise Refused(Error.INVALID_REQUEST, "MemberEpoch is invalid.")
    assignors = shard.config.consumer.assignors
    if request.assignor is not None and request.assignor not in assignors:
        raise Refused(
            Error.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _heartbeat(shard: Shard, request: ConsumerGroupHeartbeat, reply: PendingReply) -> Turns[Write | None]:
    records: list[Record] = []
    group = group_to_join(shard, request, records)
    check_room(shard, group, request.member_id, request.group_instance_id)
    member_id = request.member_id or shard.draw_uuid()
    before = find_member(
        group, request, member_id, lambda member: owns_only(request.owned, member.assigned), records
    )
    after = _updated(request, before)
    yield len(request.topics or ())
    after = yield from _bring_along(shard, group, request, before, after, records)
    restart_session(shard, group.name, after)
    news = request.member_epoch == JOIN_EPOCH or _is_full(request) or after.assigned != before.assigned
    assignment = {topic: tuple(held) for topic, held in after.assigned.items()} if news else None
    interval_ms = shard.group_options.consumer(group.name).heartbeat_interval_ms
    response = ConsumerGroupHeartbeatResponse(NO_ERROR, after.member_id, after.epoch, interval_ms, assignment)
    work = len(after.topics) + len(after.assigned)
    cause = AppendCause.MEMBER_HEARTBEAT
    write = yield from respond(shard, request, reply, records, cause, response, work)
    yield work
    return write


def _is_full(request: ConsumerGroupHeartbeat) -> bool:
    """Whether the member tells everything, as it does if it missed an answer: then it is told everything."""
    subscribes = request.topics is not None or request.regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.owned is not None


def _updated(request: ConsumerGroupHeartbeat, member: ConsumerMember) -> ConsumerMember:
    """The member with what the request says; what it leaves out stays."""
    who = request.group_instance_id, request.client_id, request.client_host, None
    known = member.instance, member.client_id, member.client_host, member.classic
    if who == known and request[4:9] == (None, -1, None, None, None):
        return member
    return member.told(request, "rack", "assignor", "regex", classic=None, **named(request.topics))


def _bring_along(
    shard: Shard,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeat,
    before: ConsumerMember,
    after: ConsumerMember,
    records: list[Record],
) -> Turns[ConsumerMember]:
    """Count the group epoch, compute the target, reconcile the member: each only if it is due."""
    topics_changed = write_subscription(group, before, after, records)
    yield len(after.topics) if topics_changed else 0
    regex_change = change_regex(shard, group, before, after, records)
    bumps = topics_changed or regex_change is RegexChange.CHANGED_AND_RESOLVED
    # 4.3.1: another assignor waits for another reason to count
    names_assignor = before.assignor is not None or after.assignor is not None
    if names_assignor and shard.config.compatibility.is_4_4:
        bumps |= preferred_assignor(shard, group) != preferred_assignor(shard, group, before, after)
    noticed = Noticed(group.epoch, group.is_homogeneous)
    if bumps or group.is_refresh_due(shard.now_ms):
        noticed = notice_topics(shard, group, bumps, before, after, records)
        yield len(group.subscribed) + len(after.topics)
    target = yield from update_target(
        shard, group, noticed.epoch, after, assign(shard, group, noticed, before, after), records
    )
    yield len(target.partitions)
    has_changed = topics_changed or regex_change is not RegexChange.NONE
    reconciled = reconcile_member(shard, group, after, target, has_changed, request.owned, records)
    yield len(target.partitions)
    return reconciled


def check_room(shard: Shard, group: ConsumerGroup, member_id: str, instance: str | None) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    A full group of Kafka 4.4.0 lets an instance id pass that it holds: the member may replace another one.
    """
    replaces = shard.config.compatibility.is_4_4 and instance in group.static_members
    refuse_if_full(group, shard.config.consumer.max_size, replaces or member_id in group.members)


def fence(
    shard: Shard,
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    cause: Cause,
    on_written: Completion | None = None,
) -> Write:
    """Remove the members. The group epoch counts up, unless only classic members are left: then the group
    becomes a classic one, if `group.consumer.migration.policy` allows it."""
    if may_downgrade_without(shard, group, members):
        return downgrade_without(shard, group, members, cause, on_written)
    return remove_members(shard, group, members, cause, on_written)


def on_consumer_timer(shard: Shard, group: ConsumerGroup, timer: Timer) -> Write | None:
    """A member's time is over."""
    return on_member_timer(shard, group, timer, fence)
