"""Which member a heartbeat comes from: new, known, or a static one in the place of another.

Kafka: GroupMetadataManager.getOrCreateStreamsGroup, getOrMaybeCreateDynamicStreamsGroupMember and
...StaticStreamsGroupMember, throwIfStreamsGroupIsFull.
"""

from __future__ import annotations

from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from groupstorm.coordinator.modern.membership import (
    check_epoch,
    full,
    known_member,
    owner_of_instance,
    unreleased,
)
from groupstorm.coordinator.records import GroupTombstone
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import StreamsMember
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat


def group_of(shard: Shard, name: str) -> StreamsGroup:
    """The group; `Refused` (GROUP_ID_NOT_FOUND) if there is none, or one of another kind."""
    group = shard.groups.get(name)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Streams group {name} not found.")
    if not isinstance(group, StreamsGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {name} is not a streams group.")
    return group


def group_to_join(shard: Shard, name: str, records: list[Any]) -> StreamsGroup:
    """The group; if there is none, or an empty classic one, a new one that its records bring into being."""
    group = shard.groups.get(name)
    if group is not None and group.kind is GroupType.CLASSIC and group.state.value == "Empty":
        records.append(GroupTombstone(name))
    elif group is not None:
        return group_of(shard, name)
    return StreamsGroup.new(name, shard.config.compatibility)


def check_room(shard: Shard, group: StreamsGroup, request: StreamsGroupHeartbeat) -> None:
    """`Refused` (GROUP_MAX_SIZE_REACHED) if the group is full and this is none of its members.

    Kafka 4.3.1 refuses its own members, too.
    """
    max_size = shard.config.streams.max_size
    is_own = request.member_id in group.members or request.group_instance_id in group.static_members
    if len(group.members) < max_size or (is_own and shard.config.compatibility.is_4_4):
        return
    raise full(group.kind, max_size)


def find_member(group: StreamsGroup, request: StreamsGroupHeartbeat, records: list[Any]) -> StreamsMember:
    """The member that sent the heartbeat, a new one if it joins; `Refused` if its epoch or id is fenced."""
    instance, member_id = request.group_instance_id, request.member_id
    joins = request.member_epoch == JOIN_EPOCH
    known = group.static_member(instance)
    if joins and known is not None:
        if known.epoch != LEAVE_STATIC_EPOCH:
            raise unreleased(known, member_id)
        return group.replaced(known, member_id, records)
    if joins:
        return group.members.get(member_id) or StreamsMember(member_id)
    member = known_sender(group, member_id, instance)
    owned = (request.active, request.standby, request.warmup)
    check_epoch(group.kind, member, request.member_epoch, member.assigned.contains(owned))
    return member


def known_sender(group: StreamsGroup, member_id: str, instance: str | None) -> StreamsMember:
    """The member with this id, and with this instance id if it gives one; else `Refused`."""
    if instance is None:
        return known_member(group, member_id)
    return owner_of_instance(group.static_member(instance), member_id, instance)
