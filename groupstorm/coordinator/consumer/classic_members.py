"""Members that speak the classic protocol, in a consumer group: join, sync, heartbeat, leave.

A classic member's generation is its member epoch. It learns of a new target by REBALANCE_IN_PROGRESS to its
heartbeat, joins again (which reconciles it, with the partitions that its subscription says it owns), and
fetches its assignment by a sync. Nobody leads; joins and syncs are never parked.

Kafka: GroupMetadataManager.classicGroupJoinToConsumerGroup, classicGroupSyncToConsumerGroup,
classicGroupHeartbeatToConsumerGroup, classicGroupLeaveToConsumerGroup.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.assignors.userdata import (
    SchemaError,
    Subscription,
    UserDataError,
    decode_subscription,
)
from groupstorm.coordinator.changes import emit_downgraded, emit_replaced, restart_session, when_written
from groupstorm.coordinator.classic.changes import answer_join, answer_sync
from groupstorm.coordinator.consumer.group import NO_EPOCH, ConsumerGroup
from groupstorm.coordinator.consumer.heartbeats import check_room, fence
from groupstorm.coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMember,
    Owned,
)
from groupstorm.coordinator.consumer.migration import (
    downgrade,
    encode_held,
    may_downgrade_replacing,
)
from groupstorm.coordinator.consumer.subscriptions import (
    Noticed,
    RegexChange,
    change_regex,
    notice_topics,
    write_subscription,
)
from groupstorm.coordinator.consumer.targets import assign, reconcile_member
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Error, Refused
from groupstorm.coordinator.messages import (
    NO_MEMBER_ID,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.modern.config import MigrationPolicy
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.membership import member_to_join, sender
from groupstorm.coordinator.modern.subscribed import MemberTarget, last_target, named, update_target
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_JOIN, MEMBER_SYNC
from groupstorm.coordinator.writes import answer_in_turn, answering
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import at_once

_CONSUMER = "consumer"
#: First version of JoinGroup that wants a known member id (JoinGroupRequest.requiresKnownMemberId).
_KNOWN_MEMBER_ID_SINCE = 4


def join_consumer_group(
    shard: Shard, request: JoinGroup, reply: PendingReply, group: ConsumerGroup
) -> Write | None:
    """JoinGroup: the answer comes with the write, not with a round."""
    if shard.config.consumer.migration_policy is MigrationPolicy.DISABLED:
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL, "the group migration is disabled")
    is_new = request.member_id == NO_MEMBER_ID
    member_id = shard.draw_uuid() if is_new else request.member_id
    check_room(shard, group, member_id, request.group_instance_id)
    names = {name for name, _ in request.protocols}
    if not group.supports_classic(request.protocol_type, names):
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
    instance = request.group_instance_id
    if is_new and instance is None and request.version >= _KNOWN_MEMBER_ID_SINCE:
        response = JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=member_id)
        answer_join(shard, reply, group.name, request.client_id, member_id, response)
        return None
    records: list[Record] = []
    before = _joining(group, member_id, instance, is_new, records)
    existing = group.static_member(instance)
    downgrades = existing is not None and may_downgrade_replacing(shard, group, existing)
    subscription = _subscription(shard, request.protocols)
    after = _updated(request, before, subscription)
    topics_changed = write_subscription(group, before, after, records)
    regex_change = change_regex(shard, group, before, after, records)
    bumps = topics_changed or regex_change is not RegexChange.NONE
    noticed = Noticed(group.epoch, group.is_homogeneous)
    if bumps or group.is_refresh_due(shard.now_ms):
        noticed = notice_topics(shard, group, bumps, before, after, records)
    owned = _owned(shard, subscription)
    if downgrades and existing is not None:
        rebalances = group.assignment_epoch < noticed.epoch
        if not rebalances:
            last = MemberTarget(group.assignment_epoch, last_target(group, after))
            after = reconcile_member(shard, group, after, last, bumps, owned, records)
        return _replace_last(shard, _Join(request, reply, group), existing, after, records, rebalances)
    assigning = assign(shard, group, noticed, before, after)
    target = at_once(update_target(shard, group, noticed.epoch, after, assigning, records))
    after = reconcile_member(shard, group, after, target, bumps, owned, records)
    return when_written(
        shard,
        group.name,
        records,
        AppendCause.MEMBER_HEARTBEAT,
        lambda error: None if error else _joined(shard, request, reply, after, watches=True),
    )


def _joining(
    group: ConsumerGroup, member_id: str, instance: str | None, is_new: bool, records: list[Record]
) -> ConsumerMember:
    if not is_new and instance is not None:
        return sender(group, member_id, instance)
    known = group.static_member(instance)
    return member_to_join(group, member_id) if known is None else group.replaced(known, member_id, records)


def _subscription(shard: Shard, protocols: tuple[tuple[str, bytes], ...]) -> Subscription:
    """The subscription in the member's favourite protocol."""
    try:
        return decode_subscription(protocols[0][1])
    except UserDataError as problem:
        if shard.config.compatibility.is_4_4:
            raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL, str(problem)) from problem
        raise CoordinatorFault(f"malformed embedded consumer protocol: {problem}") from problem


def _owned(shard: Shard, subscription: Subscription) -> Owned:
    """The partitions that the member says it owns; eager members own nothing while they join."""
    listed: dict[str, list[int]] = {}
    for name, number in subscription.owned:
        listed.setdefault(name, []).append(number)
    return tuple(
        (topic, tuple(numbers))
        for name, numbers in listed.items()
        if (topic := shard.topics.topic_id(name)) is not None
    )


def _updated(request: JoinGroup, member: ConsumerMember, subscription: Subscription) -> ConsumerMember:
    return member.told(
        request,
        rack=member.rack if subscription.rack is None else subscription.rack,
        regex="",  # the classic protocol has none: its members match topics themselves
        **named(subscription.topics),
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )


def _joined(
    shard: Shard, request: JoinGroup, reply: PendingReply, member: ConsumerMember, *, watches: bool
) -> None:
    """The join is written: answer it, and expect the sync within the rebalance timeout."""
    shard.timers.cancel(MEMBER_JOIN, request.group, member.member_id)
    if watches:
        restart_session(shard, request.group, member, request.session_timeout_ms)
        deadline_ms = shard.now_ms + request.rebalance_timeout_ms
        shard.timers.set(MEMBER_SYNC, request.group, member.member_id, deadline_ms)
    protocol = request.protocols[0][0]
    response = JoinGroupResponse(NO_ERROR, member.epoch, member.member_id, "", _CONSUMER, protocol)
    answer_join(shard, reply, request.group, request.client_id, member.member_id, response)


class _Join(NamedTuple):
    """A JoinGroup and the group that it goes to."""

    request: JoinGroup
    reply: PendingReply
    group: ConsumerGroup


def _replace_last(
    shard: Shard,
    join: _Join,
    existing: ConsumerMember,
    after: ConsumerMember,
    records: list[Record],
    rebalances: bool,
) -> Write:
    """A classic static member takes the place of the last member of the new protocol: the group becomes a
    classic one. It rebalances only if the targets are behind."""
    request, reply, group = join
    records += group.tombstones_under({existing.member_id: after.member_id})
    emit_replaced(shard, group, existing, after)
    emit_downgraded(shard, group, (), Cause.STATIC_MEMBER)
    return downgrade(
        shard,
        group,
        (),
        after,
        records,
        lambda error: None if error else _joined(shard, request, reply, after, watches=False),
        rebalances=rebalances,
    )


def sync_consumer_group(
    shard: Shard, request: SyncGroup, reply: PendingReply, group: ConsumerGroup
) -> Write | None:
    """SyncGroup: the member's partitions as they are now."""
    who = (request.group, request.client_id, request.member_id)
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_sync(shard, group, request, member, classic)

    def on_written(error: Error | None) -> None:
        if error is not None:
            return
        shard.timers.cancel(MEMBER_SYNC, group.name, member.member_id)
        restart_session(shard, group.name, member, classic.session_timeout_ms)
        assignment = _assignment(shard, member, classic)
        response = SyncGroupResponse(NO_ERROR, request.protocol_type, request.protocol, assignment)
        answer_sync(shard, reply, *who, request.generation, response)

    return when_written(shard, group.name, [], AppendCause.MEMBER_HEARTBEAT, on_written)


def _assignment(shard: Shard, member: ConsumerMember, classic: ClassicMetadata) -> bytes:
    """The member's partitions, in the version of its subscription."""
    try:
        return encode_held(shard, member.assigned, classic.protocols[0][1])
    except SchemaError as problem:
        raise CoordinatorFault(f"malformed embedded consumer protocol: {problem}") from problem


def _classic_member(
    group: ConsumerGroup, member_id: str, instance: str | None
) -> tuple[ConsumerMember, ClassicMetadata]:
    """The member, if it speaks the classic protocol; else it is `Refused` as unknown."""
    member = sender(group, member_id, instance)
    if member.classic is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    return member, member.classic


def _check_sync(
    shard: Shard,
    group: ConsumerGroup,
    request: SyncGroup,
    member: ConsumerMember,
    classic: ClassicMetadata,
) -> None:
    if member.epoch != request.generation:
        raise Refused(Error.ILLEGAL_GENERATION, f"the member's epoch is {member.epoch}")
    other_type = request.protocol_type is not None and request.protocol_type != _CONSUMER
    other_name = request.protocol is not None and request.protocol != classic.protocols[0][0]
    if other_type or other_name:
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL, "not the protocol of the answer to JoinGroup")
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(shard, group, member)
        raise Refused(Error.REBALANCE_IN_PROGRESS, "the member has to join again to catch up")


def _expect_join(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> None:
    """The member has to join again within its rebalance timeout, from the first time that it is told so."""
    if shard.timers.deadline_of(MEMBER_JOIN, group.name, member.member_id) is None:
        deadline_ms = shard.now_ms + member.rebalance_timeout_ms
        shard.timers.set(MEMBER_JOIN, group.name, member.member_id, deadline_ms)


def heartbeat_in_consumer_group(
    shard: Shard, request: Heartbeat, reply: PendingReply, group: ConsumerGroup
) -> None:
    """Heartbeat: REBALANCE_IN_PROGRESS if a join would bring the member further."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    if member.epoch != request.generation:
        raise Refused(Error.ILLEGAL_GENERATION, f"the member's epoch is {member.epoch}")
    restart_session(shard, group.name, member, classic.session_timeout_ms)
    error = NO_ERROR
    if _has_to_join(group, member):
        error = Error.REBALANCE_IN_PROGRESS
        _expect_join(shard, group, member)
    answer_in_turn(shard, request, reply, HeartbeatResponse(error))


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether others still hold partitions of the member's target (waitingOnUnreleasedPartition)."""
    return any(
        number not in member.assigned.get(topic, {}) and group.partition_epoch(topic, number) != NO_EPOCH
        for topic, numbers in group.target(member.member_id).items()
        for number in numbers
    )


def leave_consumer_group(
    shard: Shard, request: LeaveGroup, reply: PendingReply, group: ConsumerGroup
) -> Write | None:
    """LeaveGroup: removes the members that it names, of whichever protocol."""
    left: list[LeftMember] = []
    gone: dict[str, ConsumerMember] = {}
    for who in request.members:
        try:
            member = _leaving(group, who)
        except Refused as refusal:
            left.append(LeftMember(who.member_id, who.group_instance_id, refusal.error))
        else:
            left.append(LeftMember(who.member_id, who.group_instance_id, NO_ERROR))
            gone[member.member_id] = member
    response = LeaveGroupResponse(NO_ERROR, tuple(left))
    if not gone:
        answer_in_turn(shard, request, reply, response)
        return None
    return fence(shard, group, list(gone.values()), Cause.LEFT, answering(shard, reply, response))


def _leaving(group: ConsumerGroup, who: LeavingMember) -> ConsumerMember:
    if who.group_instance_id is not None and who.member_id == NO_MEMBER_ID:
        member = group.static_member(who.group_instance_id)
        if member is not None:
            return member  # an administrator removes a static member by its instance alone
    return sender(group, who.member_id, who.group_instance_id)
