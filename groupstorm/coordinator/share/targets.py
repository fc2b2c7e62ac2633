"""The target assignment of a share group, when it is computed, and how a member takes its target.

Kafka: GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder, ShareGroupAssignmentBuilder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from groupstorm.assignors.server import (
    AssignmentRefused,
    MapOrder,
    MemberSpec,
    ServerGroup,
    Target,
    TopicDescription,
    assign_simple,
)
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import ShareMember
from groupstorm.coordinator.share.records import ShareTargetEpochRecord, ShareTargetRecord, StatePartitions
from groupstorm.javahash import JavaHashMap
from groupstorm.turns import Turns


class Noticed(NamedTuple):
    """The group after a heartbeat was compared with it. ``bumps``: the group epoch counted up."""

    epoch: int
    bumps: bool
    is_homogeneous: bool


class MemberTarget(NamedTuple):
    """One member's target and the epoch for which it was computed."""

    epoch: int
    partitions: Target


def update_target(
    shard: Shard, group: ShareGroup, noticed: Noticed, member: ShareMember, records: list[Record]
) -> Turns[MemberTarget]:
    """The member's target, computed anew if the group has changed since the last one was.

    At most once per `group.share.assignment.interval.ms`: until then the old target counts.
    """
    interval_ms = shard.group_options.share(group.name).assignment_interval_ms
    if group.assignment_epoch >= noticed.epoch or not group.may_assign(shard.now_ms, interval_ms):
        return MemberTarget(group.assignment_epoch, group.target(member.member_id))
    targets = yield from _assign(shard, group, noticed, member)
    for member_id, target in targets.items():
        if target is not group.targets.get(member_id):
            records.append(ShareTargetRecord(group.name, member_id, target))
    records.append(ShareTargetEpochRecord(group.name, noticed.epoch, shard.now_ms))
    return MemberTarget(noticed.epoch, targets[member.member_id])


def _assign(
    shard: Shard, group: ShareGroup, noticed: Noticed, member: ShareMember
) -> Turns[dict[str, Target]]:
    """Every member's target; a target that stays is the same object."""
    specs: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member_id, known in group.members.with_entry(member.member_id, member).items():
        specs.put(member_id, MemberSpec(known.topics_in_order, group.target(member_id)))
    topics = {
        name: TopicDescription(topic.id, topic.partitions) for name, topic in shard.topics.by_name.items()
    }
    yield len(topics)
    ids = specs.keys()
    question = ServerGroup(topics, ids, specs.values(), MapOrder.JAVA_HASH, noticed.is_homogeneous)
    assignable = (group.state_partitions or StatePartitions()).initialized
    try:
        targets = yield from assign_simple(question, assignable)
        return dict(zip(ids, targets, strict=True))
    except AssignmentRefused as problem:
        raise CoordinatorFault(f"simple cannot assign in epoch {noticed.epoch}: {problem}") from problem


def take_target(shard: Shard, member: ShareMember, target: MemberTarget, *, bumps: bool) -> ShareMember:
    """The member with its whole target, cut to its topics, if the target or the group is new to it."""
    if not bumps and member.is_reconciled_to(target.epoch):
        return member
    assigned = {
        topic: frozenset(numbers)
        for topic, numbers in target.partitions.items()
        if shard.topics.name(topic) in member.topics
    }
    if member.epoch == target.epoch:
        return replace(member, assigned=assigned)
    return replace(member, assigned=assigned, epoch=target.epoch, previous_epoch=member.epoch)
