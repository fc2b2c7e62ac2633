"""Which member a heartbeat comes from: new, known, or a static one in the place of another.

Kafka: GroupMetadataManager.getOrCreateStreamsGroup, getOrMaybeCreateDynamicStreamsGroupMember and
...StaticStreamsGroupMember, throwIfStreamsGroupMemberEpochIsInvalid, throwIfStreamsGroupIsFull.
"""

from __future__ import annotations

from dataclasses import replace

from groupstorm.coordinator.classic.states import EMPTY
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.records import GroupTombstone, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, StreamsMember
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat
from groupstorm.coordinator.streams.records import (
    CurrentTasks,
    MemberMetadata,
    StreamsCurrentRecord,
    StreamsMemberRecord,
    StreamsTargetRecord,
)
from groupstorm.coordinator.streams.replay import new_streams_group


def group_of(shard: Shard, name: str) -> StreamsGroup:
    """The group; `Refused` (GROUP_ID_NOT_FOUND) if there is none, or one of another kind."""
    group = shard.groups.get(name)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Streams group {name} not found.")
    if not isinstance(group, StreamsGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {name} is not a streams group.")
    return group


def group_to_join(shard: Shard, name: str, records: list[Record]) -> StreamsGroup:
    """The group; if there is none, or an empty classic one, a new one that its records bring into being."""
    group = shard.classic_group(name)
    if group is not None and group.state is EMPTY:
        records.append(GroupTombstone(name))
    elif name in shard.groups:
        return group_of(shard, name)
    return new_streams_group(shard, name)


def check_room(shard: Shard, group: StreamsGroup, request: StreamsGroupHeartbeat) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    Kafka 4.3.1 refuses its own members, too.
    """
    max_size = shard.config.streams.max_size
    is_own = request.member_id in group.members or request.group_instance_id in group.static_members
    if len(group.members) < max_size or (is_own and shard.config.compatibility.is_4_4):
        return
    raise Refused(
        Error.GROUP_MAX_SIZE_REACHED,
        f"The streams group has reached its maximum capacity of {max_size} members.",
    )


def find_member(group: StreamsGroup, request: StreamsGroupHeartbeat, records: list[Record]) -> StreamsMember:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if its epoch or id is fenced."""
    instance, member_id = request.group_instance_id, request.member_id
    joins = request.member_epoch == JOIN_EPOCH
    known = group.static_member(instance)
    if joins and known is not None:
        if known.epoch != LEAVE_STATIC_EPOCH:
            raise Refused(
                Error.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance} cannot join the group because the"
                f" instance id is owned by {known.member_id} member.",
            )
        return _replace(group, known, member_id, records)
    if joins:
        return group.members.get(member_id) or StreamsMember(member_id)
    member = known_member(group, member_id, instance)
    _check_epoch(member, request)
    return member


def known_member(group: StreamsGroup, member_id: str, instance: str | None) -> StreamsMember:
    """The member with this id, and with this instance id if it gives one; else `Refused`."""
    if instance is None:
        member = group.members.get(member_id)
        if member is None:
            raise Refused(
                Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.name}."
            )
        return member
    known = group.static_member(instance)
    if known is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Error.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance} was fenced by member {known.member_id}.",
        )
    return known


def _check_epoch(member: StreamsMember, request: StreamsGroupHeartbeat) -> None:
    """Fence every epoch but the member's own, and the one before if the member owns nothing but what is
    assigned to it: it may have missed the answer that held its epoch."""
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    owned = (request.active, request.standby, request.warmup)
    missed_an_answer = epoch == member.previous_epoch and member.assigned.contains(owned)
    if epoch > member.epoch or not missed_an_answer:
        raise Refused(
            Error.FENCED_MEMBER_EPOCH,
            f"The streams group member has a {'greater' if epoch > member.epoch else 'smaller'} member epoch"
            f" ({epoch}) than the one known by the group coordinator ({member.epoch})."
            " The member must abandon all its partitions and rejoin.",
        )


def _replace(group: StreamsGroup, old: StreamsMember, new_id: str, records: list[Record]) -> StreamsMember:
    """Give the static member a new id, its target and its tasks; its old id is fenced from now on."""
    new = replace(old, member_id=new_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    records += removal(group.name, old.member_id)
    records += [
        StreamsMemberRecord(group.name, new_id, MemberMetadata.of(new)),
        StreamsTargetRecord(group.name, new_id, group.target(old.member_id)),
        StreamsCurrentRecord(group.name, new_id, CurrentTasks.of(new)),
    ]
    return new


def removal(group: str, member_id: str) -> list[Record]:
    """The records that remove a member."""
    return [
        StreamsCurrentRecord(group, member_id, None),
        StreamsTargetRecord(group, member_id, None),
        StreamsMemberRecord(group, member_id, None),
    ]
