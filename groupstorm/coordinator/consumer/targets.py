"""The target assignment of a group: which member shall have which partitions.

Kafka: GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.assignors.server import AssignmentRefused, MemberSpec, Target, TopicDescription, get
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember
from groupstorm.coordinator.consumer.records import (
    ConsumerTargetEpochRecord,
    ConsumerTargetRecord,
)
from groupstorm.coordinator.consumer.subscriptions import Noticed, topics_of
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.javahash import JavaHashMap
from groupstorm.turns import Turns


class MemberTarget(NamedTuple):
    """One member's target and the epoch for which it was computed."""

    epoch: int
    partitions: Target


def update_target(
    shard: Shard,
    group: ConsumerGroup,
    noticed: Noticed,
    before: ConsumerMember,
    after: ConsumerMember,
    records: list[Record],
) -> Turns[MemberTarget]:
    """The member's target, computed anew if the group has changed since the last one was.

    At most once per `group.consumer.assignment.interval.ms`: until then the old target counts.
    """
    interval_ms = shard.group_options.consumer(group.name).assignment_interval_ms
    may_assign = interval_ms == 0 or group.may_assign(shard.now_ms, interval_ms)
    if group.assignment_epoch >= noticed.epoch or not may_assign:
        return MemberTarget(group.assignment_epoch, last_target(group, after))
    targets = yield from _assign(shard, group, noticed, before, after)
    for member_id, target in targets.items():
        if target != group.targets.get(member_id):
            records.append(ConsumerTargetRecord(group.name, member_id, target))
    records.append(ConsumerTargetEpochRecord(group.name, noticed.epoch, shard.now_ms))
    return MemberTarget(noticed.epoch, targets[after.member_id])


def preferred_assignor(
    shard: Shard,
    group: ConsumerGroup,
    before: ConsumerMember | None = None,
    after: ConsumerMember | None = None,
) -> str:
    """The name of the assignor that the group uses, as if ``before`` were replaced by ``after``."""
    return group.preferred_assignor(before, after) or shard.config.consumer.assignors[0]


def last_target(group: ConsumerGroup, member: ConsumerMember) -> Target:
    """The member's present target; a static member has that of its predecessor."""
    if member.instance is None:
        return group.target(member.member_id)
    predecessor = group.static_members.get(member.instance)
    return {} if predecessor is None else group.target(predecessor)


def _assign(
    shard: Shard, group: ConsumerGroup, noticed: Noticed, before: ConsumerMember, after: ConsumerMember
) -> Turns[dict[str, Target]]:
    """Every member's target in the order of Kafka's map; a target that stays is the same object."""
    specs: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member_id, member in group.members.items():
        specs.put(member_id, _spec(group, member, group.target(member_id)))
    predecessor = None if after.instance is None else group.static_members.get(after.instance)
    updates: JavaHashMap[str, ConsumerMember | None] = JavaHashMap()
    updates.put(after.member_id, after)
    if predecessor is not None and predecessor != after.member_id:
        updates.put(predecessor, None)
    for member_id, updated in updates.items():
        if updated is None:
            specs.remove(member_id)
        else:
            specs.put(member_id, _spec(group, updated, group.target(predecessor or member_id)))
    config = shard.config
    name = preferred_assignor(shard, group, before, after)
    assignor = get(name, bug_compat=config.compatibility.is_to_the_letter)
    topics = {
        name: TopicDescription(topic.id, topic.partitions) for name, topic in shard.topics.by_name.items()
    }
    yield len(topics)
    ordered = dict(specs.items())
    try:
        targets = yield from assignor.assign_in_turns(topics, ordered, noticed.is_homogeneous)
    except AssignmentRefused as problem:
        raise CoordinatorFault(f"{name} cannot assign in epoch {noticed.epoch}: {problem}") from problem
    return {member_id: _same_or(group.targets.get(member_id), targets[member_id]) for member_id in ordered}


def _same_or(old: Target | None, new: Target) -> Target:
    """The old target if the new one holds the same partitions, in whatever order."""
    if old is None or old is new:
        return new
    same = old.keys() == new.keys() and all(set(old[topic]) == set(new[topic]) for topic in old)
    return old if same else new


def _spec(group: ConsumerGroup, member: ConsumerMember, target: Target) -> MemberSpec:
    return MemberSpec(topics_of(group, member), target, member.instance)
