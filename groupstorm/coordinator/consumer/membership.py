"""Which member a request comes from: new, known, or a static one in the place of another.

Kafka: GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember and ...Static...,
throwIfConsumerGroupIsFull.
"""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, Owned, owns_only
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import (
    check_epoch,
    full,
    known_member,
    owner_of_instance,
    unreleased,
)
from groupstorm.coordinator.shard import Shard


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
