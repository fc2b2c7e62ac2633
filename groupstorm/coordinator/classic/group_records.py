"""The record of a classic group, and the group of a record (GroupMetadataValue)."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.states import EMPTY, STABLE
from groupstorm.coordinator.classic.subscriptions import take_subscriptions
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.records import GroupMetadataRecord, MemberRecord
from groupstorm.coordinator.shard import Shard


def group_record(
    shard: Shard, group: ClassicGroup, plan: Mapping[str, bytes] | None = None
) -> GroupMetadataRecord:
    """The record of the group as it is now; ``plan``: the assignments that are written with it."""
    return GroupMetadataRecord(
        group.name,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        len(group.members),
        _roster(group, plan) if shard.whole_records else (),
        group.state_since_ms,
    )


def empty_group_record(group: ClassicGroup) -> GroupMetadataRecord:
    """The first record of a group: it names no members, whoever is parked in the first round
    (GroupCoordinatorRecordHelpers.newEmptyGroupMetadataRecord)."""
    return GroupMetadataRecord(
        group.name, 0, None, None, None, members=0, state_since_ms=group.state_since_ms
    )


def _roster(group: ClassicGroup, plan: Mapping[str, bytes] | None) -> tuple[MemberRecord, ...]:
    return tuple(
        [
            MemberRecord(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(group.protocol),
                member.assignment if plan is None else plan.get(member.member_id, b""),
            )
            for member in group.members.values()
        ]
    )


def restored_group(record: GroupMetadataRecord) -> ClassicGroup:
    """The group of its last record: stable if it has members, whatever it was doing since
    (GroupMetadataManager.replay)."""
    group = ClassicGroup(record.group)
    group.state = STABLE if record.roster else EMPTY
    group.state_since_ms = record.state_since_ms
    group.generation, group.protocol_type = record.generation, record.protocol_type
    group.protocol = record.protocol
    if any(one.member_id == record.leader for one in record.roster):
        group.leader = record.leader  # else the first member that is added leads
    for one in record.roster:
        group.add(_member(record, one), None)
    group.committed = True
    take_subscriptions(group, Compatibility.REPAIRED)  # the metadata was read before it was written
    return group


def _member(record: GroupMetadataRecord, one: MemberRecord) -> Member:
    member = Member(
        one.member_id,
        one.group_instance_id,
        (one.client_id, one.client_host),
        (one.session_timeout_ms, one.rebalance_timeout_ms),
        record.protocol_type or "",
        ((record.protocol or "", one.metadata),),
    )
    member.assignment = one.assignment
    return member


def simple_group(name: str, since_ms: int) -> ClassicGroup:
    """A group of which only committed offsets are written (OffsetMetadataManager.replay)."""
    group = ClassicGroup(name)
    group.state_since_ms, group.committed = since_ms, True
    return group
