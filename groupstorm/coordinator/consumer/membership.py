"""Members join a consumer group, are found by their requests, leave, and are fenced.

Kafka: GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember and ...Static...,
throwIfConsumerGroupIsFull, consumerGroupLeave, consumerGroupFenceMembers, consumerGroupFenceMemberOperation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from groupstorm.coordinator.changes import cancel_member_timers, respond, write_records
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, Owned, Partitions, owns_only
from groupstorm.coordinator.consumer.migration import downgrade_without, may_downgrade_without
from groupstorm.coordinator.consumer.records import (
    ConsumerEpochRecord,
    ConsumerRegexRecord,
)
from groupstorm.coordinator.consumer.subscriptions import topics_without
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, Error, Refused
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import (
    check_epoch,
    full,
    known_member,
    owner_of_instance,
    unreleased,
)
from groupstorm.coordinator.pending_writes import Completion, Write
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_JOIN, MEMBER_REBALANCE, MEMBER_SESSION, MEMBER_SYNC, Timer
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import at_once


def check_room(shard: Shard, group: ConsumerGroup, member_id: str, instance: str | None) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    A full group of Kafka 4.4.0 lets an instance id pass that it holds: the member may replace another one.
    """
    max_size = shard.config.consumer.max_size
    if len(group.members) < max_size or member_id in group.members:
        return
    if not shard.config.compatibility.is_4_4 or instance not in group.static_members:
        raise full(group.kind, max_size)


def find_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeat, member_id: str, records: list[Any]
) -> ConsumerMember:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if its epoch or id is fenced."""
    joins = request.member_epoch == JOIN_EPOCH
    instance = request.group_instance_id
    if instance is None:
        member = member_to_join(group, member_id) if joins else known_member(group, member_id)
        _check_epoch(member, request.member_epoch, request.owned)
        return member
    known = group.static_member(instance)
    if not joins:
        known = owner_of_instance(known, member_id, instance)
        _check_epoch(known, request.member_epoch, request.owned)
        return known
    if known is None:
        return member_to_join(group, member_id)
    if known.classic is None and known.epoch != LEAVE_STATIC_EPOCH:
        raise unreleased(known, member_id)
    return group.replaced(known, member_id, records)


def member_to_join(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    """The member with this id, a new one if there is none."""
    return group.members.get(member_id) or ConsumerMember(member_id)


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Epoch 0 joins again."""
    if epoch != JOIN_EPOCH:
        check_epoch(ConsumerGroup.kind, member, epoch, owns_only(owned, member.assigned))


def leave(shard: Shard, request: ConsumerGroupHeartbeat, reply: PendingReply) -> Write | None:
    """The member leaves; a static one may do so for a while (epoch -2) and keep its partitions."""
    group = shard.groups.get(request.group)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {request.group} not found.")
    if not isinstance(group, ConsumerGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {request.group} is not a consumer group.")
    if request.group_instance_id is None:
        member = known_member(group, request.member_id)
    else:
        instance = request.group_instance_id
        member = owner_of_instance(group.static_member(instance), request.member_id, instance)
    response = ConsumerGroupHeartbeatResponse(NO_ERROR, request.member_id, request.member_epoch)
    if request.group_instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        record = _gone_for_a_while(group, member)
        return at_once(respond(shard, request, reply, [record], AppendCause.MEMBER_HEARTBEAT, response))
    return fence(
        shard,
        group,
        [member],
        Cause.LEFT,
        lambda error: None if error else shard.answer(reply, response),
    )


def _gone_for_a_while(group: ConsumerGroup, member: ConsumerMember) -> Any:
    """The member keeps what is assigned to it; its session goes on running."""
    nothing_known: Partitions = {topic: dict.fromkeys(held, 0) for topic, held in member.assigned.items()}
    gone = replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=nothing_known, revoking={})
    return group.current_record(gone)


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
    records: list[Record] = []
    for member in members:
        records += group.removal(member.member_id)
    regexes = _last_subscribed(group, members)
    records += [ConsumerRegexRecord(group.name, regex, None) for regex in regexes]
    metadata_hash = shard.topics.hash_of(topics_without(group, members, regexes))
    records.append(ConsumerEpochRecord(group.name, group.epoch + 1, metadata_hash))
    records += group.up_to_date_without(members, group.epoch + 1, shard.config.compatibility)
    for member in members:
        cancel_member_timers(shard, group.name, member.member_id)
    return write_records(shard, group.name, records, AppendCause.MEMBERS_REMOVED, on_written, cause)


def _last_subscribed(group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[str]:
    """The regular expressions that nobody but these members subscribes to."""
    counts: dict[str, int] = {}
    for member in members:
        if member.regex:
            counts[member.regex] = counts.get(member.regex, 0) + 1
    return [regex for regex, count in counts.items() if group.regexes.get(regex, 0) == count]


_CAUSES = {
    MEMBER_SESSION: Cause.SESSION_EXPIRED,
    MEMBER_REBALANCE: Cause.REBALANCE_TIMEOUT,
    MEMBER_JOIN: Cause.JOIN_TIMEOUT,
    MEMBER_SYNC: Cause.SYNC_TIMEOUT,
}


def on_member_timer(shard: Shard, group: ConsumerGroup, timer: Timer) -> Write | None:
    """A member's time is over. Its rebalance timeout counts only for the epoch in which it was set."""
    kind, _, member_id = timer.key
    member = group.members.get(member_id)
    if member is None or (kind is MEMBER_REBALANCE and member.epoch != timer.payload):
        return None
    return fence(shard, group, [member], _CAUSES[kind])
