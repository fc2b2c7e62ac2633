"""Takes records into streams groups, at once when they are written and again when they are loaded.

Kafka: GroupMetadataManager.replay.
"""

from __future__ import annotations

from dataclasses import replace

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import NEVER, StreamsGroup
from groupstorm.coordinator.streams.member import LEAVE_EPOCH, NOTHING_HELD, StreamsMember
from groupstorm.coordinator.streams.records import (
    CurrentTasks,
    GroupFacts,
    MemberMetadata,
    StreamsCurrentRecord,
    StreamsGroupRecord,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    StreamsTopologyRecord,
)

#: The assignment epoch between the tombstone of the targets and that of the group.
_NO_TARGET = -1


def new_streams_group(shard: Shard, name: str) -> StreamsGroup:
    """An empty group, which the shard does not know yet."""
    return StreamsGroup(name, forgets_holders=shard.config.compatibility.is_to_the_letter)


def replay(shard: Shard, record: StreamsRecord) -> StreamsGroup | None:
    """Take one record in; the group that it changed or deleted, None if there was nothing to delete.

    `CoordinatorFault` if the group is of another kind, or the record does not fit it.
    """
    group = shard.groups.get(record.group)
    if isinstance(group, ClassicGroup) and group.protocol_type is None and not group.members:
        group = None  # only offsets were committed (ClassicGroup.isSimpleGroup)
    if group is None:
        if record.is_tombstone:
            return None
        group = new_streams_group(shard, record.group)
        shard.groups.put(record.group, group)
    elif not isinstance(group, StreamsGroup):
        raise CoordinatorFault(f"group {record.group!r} is not a streams group")
    match record:
        case StreamsMemberRecord(_, member_id, metadata):
            _replay_member(group, member_id, metadata)
        case StreamsCurrentRecord(_, member_id, current):
            _replay_current(group, member_id, current)
        case StreamsTargetRecord(_, member_id, target):
            group.set_target(member_id, target)
        case StreamsTargetEpochRecord(_, epoch, computed_at_ms):
            if epoch is None and group.targets:
                raise CoordinatorFault(f"the targets of group {group.name!r} are not deleted")
            group.set_assignment_epoch(*(_NO_TARGET, NEVER) if epoch is None else (epoch, computed_at_ms))
        case StreamsTopologyRecord(_, topology):
            group.set_topology(topology)
        case StreamsGroupRecord(_, facts):
            _replay_facts(shard, group, facts)
    return group


def _replay_member(group: StreamsGroup, member_id: str, metadata: MemberMetadata | None) -> None:
    member = group.members.get(member_id)
    if metadata is not None:
        group.set_member(member_id, replace(member or StreamsMember(member_id), **metadata._asdict()))
    elif member is not None:
        if member.epoch != LEAVE_EPOCH or member_id in group.targets:
            raise CoordinatorFault(f"member {member_id!r} is deleted before its assignments")
        group.set_member(member_id, None)


def _replay_current(group: StreamsGroup, member_id: str, current: CurrentTasks | None) -> None:
    member = group.members.get(member_id)
    if current is not None:
        group.set_member(member_id, replace(member or StreamsMember(member_id), **current._asdict()))
    elif member is not None:
        left = replace(
            member,
            epoch=LEAVE_EPOCH,
            previous_epoch=LEAVE_EPOCH,
            assigned=NOTHING_HELD,
            revoking=NOTHING_HELD,
        )
        group.set_member(member_id, left)


def _replay_facts(shard: Shard, group: StreamsGroup, facts: GroupFacts | None) -> None:
    if facts is not None:
        group.set_facts(facts)
    elif group.members or group.assignment_epoch != _NO_TARGET:
        raise CoordinatorFault(f"group {group.name!r} is deleted before its members and targets")
    else:
        shard.groups.remove(group.name)
