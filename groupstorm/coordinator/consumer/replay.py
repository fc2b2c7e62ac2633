"""Takes records into the groups, at once when they are written and again when they are loaded.

Kafka: GroupMetadataManager.replay. Tombstones that come out of order are refused there and here.
"""

from __future__ import annotations

from dataclasses import replace

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import NEVER, ConsumerGroup, ResolvedRegex
from groupstorm.coordinator.consumer.member import LEAVE_EPOCH, ConsumerMember, hash_set
from groupstorm.coordinator.consumer.records import (
    ConsumerCurrentRecord,
    ConsumerEpochRecord,
    ConsumerMemberRecord,
    ConsumerRecord,
    ConsumerRegexRecord,
    ConsumerTargetEpochRecord,
    ConsumerTargetRecord,
    CurrentAssignment,
    MemberSubscription,
)
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.shard import Shard

#: The assignment epoch between the tombstone of the targets and that of the group.
_NO_TARGET = -1


def new_group(shard: Shard, name: str) -> ConsumerGroup:
    """An empty group, which the shard does not know yet."""
    return ConsumerGroup(name, frees_instances=shard.config.compatibility.is_4_4)


def replay(shard: Shard, record: ConsumerRecord) -> ConsumerGroup | None:
    """Take one record in; the group that it changed or deleted, None if there was nothing to delete.

    `CoordinatorFault` if the group is of another kind, or the record does not fit it.
    """
    group = shard.groups.get(record.group)
    if isinstance(group, ClassicGroup) and group.protocol_type is None and not group.members:
        group = None  # only offsets were committed (ClassicGroup.isSimpleGroup)
    if group is None:
        if record.is_tombstone:
            return None
        group = new_group(shard, record.group)
        shard.groups.put(record.group, group)
    elif not isinstance(group, ConsumerGroup):
        raise CoordinatorFault(f"group {record.group!r} is not a consumer group")
    match record:
        case ConsumerMemberRecord(_, member_id, subscription):
            _replay_member(group, member_id, subscription)
        case ConsumerCurrentRecord(_, member_id, current):
            _replay_current(group, member_id, current)
        case ConsumerTargetRecord(_, member_id, target):
            group.set_target(member_id, target)
        case ConsumerTargetEpochRecord(_, epoch, computed_at_ms):
            _replay_target_epoch(group, epoch, computed_at_ms)
        case ConsumerEpochRecord(_, epoch, metadata_hash):
            _replay_epoch(shard, group, epoch, metadata_hash)
        case ConsumerRegexRecord(_, regex, topics, version, at_ms):
            resolved = None
            if topics is not None:
                resolved = ResolvedRegex(frozenset(topics), version, at_ms, hash_set(topics))
            group.set_resolved(regex, resolved)
    return group


def _replay_member(group: ConsumerGroup, member_id: str, subscription: MemberSubscription | None) -> None:
    member = group.members.get(member_id)
    if subscription is not None:
        group.set_member(member_id, _subscribed(member or ConsumerMember(member_id), subscription))
        return
    if member is None:
        return
    if member.epoch != LEAVE_EPOCH or member_id in group.targets:
        raise CoordinatorFault(f"member {member_id!r} is deleted before its assignments")
    group.set_member(member_id, None)


def _subscribed(member: ConsumerMember, subscription: MemberSubscription) -> ConsumerMember:
    return replace(
        member,
        instance=subscription.instance,
        rack=subscription.rack,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        topics=frozenset(subscription.topics),
        topics_in_order=hash_set(subscription.topics),
        regex=subscription.regex,
        assignor=subscription.assignor,
        classic=subscription.classic,
    )


def _replay_current(group: ConsumerGroup, member_id: str, current: CurrentAssignment | None) -> None:
    member = group.members.get(member_id)
    if current is not None:
        assigned = replace(
            member or ConsumerMember(member_id),
            epoch=current.epoch,
            previous_epoch=current.previous_epoch,
            state=current.state,
            assigned=current.assigned,
            revoking=current.revoking,
        )
        group.set_member(member_id, assigned)
    elif member is not None:
        left = replace(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})
        group.set_member(member_id, left)


def _replay_target_epoch(group: ConsumerGroup, epoch: int | None, computed_at_ms: int) -> None:
    if epoch is not None:
        group.set_assignment_epoch(epoch, computed_at_ms)
    elif group.targets:
        raise CoordinatorFault(f"the targets of group {group.name!r} are not deleted")
    else:
        group.set_assignment_epoch(_NO_TARGET, NEVER)


def _replay_epoch(shard: Shard, group: ConsumerGroup, epoch: int | None, metadata_hash: int) -> None:
    if epoch is not None:
        group.set_epoch(epoch, metadata_hash)
    elif group.members or group.targets or group.assignment_epoch != _NO_TARGET:
        raise CoordinatorFault(f"group {group.name!r} is deleted before its members and targets")
    else:
        shard.groups.remove(group.name)
