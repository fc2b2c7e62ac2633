"""Which member a request comes from: new, known, or a static one in the place of another.

Kafka: GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember and ...Static...,
throwIfConsumerGroupMemberEpochIsInvalid, throwIfConsumerGroupIsFull.
"""

from __future__ import annotations

from dataclasses import replace

from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    Owned,
    owns_only,
)
from groupstorm.coordinator.consumer.records import (
    ConsumerCurrentRecord,
    ConsumerMemberRecord,
    ConsumerTargetRecord,
    CurrentAssignment,
    MemberSubscription,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard


def check_room(shard: Shard, group: ConsumerGroup, member_id: str, instance: str | None) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    A full group of Kafka 4.4.0 lets an instance id pass that it holds: the member may replace another one.
    """
    max_size = shard.config.consumer.max_size
    if len(group.members) < max_size or member_id in group.members:
        return
    if not shard.config.compatibility.is_4_4 or instance not in group.static_members:
        raise Refused(
            Error.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def find_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeat, member_id: str, records: list[Record]
) -> ConsumerMember:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if its epoch or id is fenced."""
    joins = request.member_epoch == JOIN_EPOCH
    instance = request.group_instance_id
    if instance is None:
        member = known_member(group, member_id, may_be_new=joins)
        check_epoch(member, request.member_epoch, request.owned)
        return member
    known = group.static_member(instance)
    if not joins:
        known = owner_of_instance(known, member_id, instance)
        check_epoch(known, request.member_epoch, request.owned)
        return known
    if known is None:
        return known_member(group, member_id, may_be_new=True)
    if known.classic is None and known.epoch != LEAVE_STATIC_EPOCH:
        raise Refused(
            Error.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance} cannot join the group because the"
            f" instance id is owned by {known.member_id} member.",
        )
    return replace_member(group, known, member_id, records)


def known_member(group: ConsumerGroup, member_id: str, *, may_be_new: bool = False) -> ConsumerMember:
    """The member with this id; a new one, or `Refused` (UNKNOWN_MEMBER_ID), if there is none."""
    member = group.members.get(member_id)
    if member is not None:
        return member
    if may_be_new:
        return ConsumerMember(member_id)
    raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.name}.")


def owner_of_instance(known: ConsumerMember | None, member_id: str, instance: str) -> ConsumerMember:
    """The static member, if the id is its own; else `Refused`: unknown, or fenced by another id."""
    if known is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance} was fenced by member {known.member_id}.",
        )
    return known


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Which epoch fences a member: any but its own.

    Epoch 0 joins again. The previous epoch passes if the member owns nothing but what is assigned to it: it
    may have missed the answer that held its epoch.
    """
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    missed_an_answer = epoch == member.previous_epoch and owns_only(owned, member.assigned)
    if epoch > member.epoch or not missed_an_answer:
        raise Refused(
            Error.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {'greater' if epoch > member.epoch else 'smaller'} member epoch"
            f" ({epoch}) than the one known by the group coordinator ({member.epoch})."
            " The member must abandon all its partitions and rejoin.",
        )


def replace_member(
    group: ConsumerGroup, old: ConsumerMember, new_id: str, records: list[Record]
) -> ConsumerMember:
    """Give the static member a new id, its target and its partitions; its old id is fenced from now on."""
    new = replace(old, member_id=new_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    remove_member(group, old.member_id, records)
    records += [
        ConsumerMemberRecord(group.name, new_id, MemberSubscription.of(new)),
        ConsumerTargetRecord(group.name, new_id, group.target(old.member_id)),
        ConsumerCurrentRecord(group.name, new_id, CurrentAssignment.of(new)),
    ]
    return new


def remove_member(group: ConsumerGroup, member_id: str, records: list[Record]) -> None:
    """Write that the member is gone."""
    records += [
        ConsumerCurrentRecord(group.name, member_id, None),
        ConsumerTargetRecord(group.name, member_id, None),
        ConsumerMemberRecord(group.name, member_id, None),
    ]
