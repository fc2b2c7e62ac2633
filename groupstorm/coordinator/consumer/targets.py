"""The target assignment of a group, which partitions each member shall have, and the way of a member from its
current assignment towards it, a heartbeat at a time.

Kafka: GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder, CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.server import AssignmentRefused, MemberSpec, Target, TopicDescription, get
from groupstorm.coordinator.changes import watch_revocation
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import (
    ConsumerMember,
    Owned,
    Partitions,
    owns_any,
)
from groupstorm.coordinator.consumer.subscriptions import Noticed, topics_of
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.modern.member import MemberState, state_after
from groupstorm.coordinator.modern.subscribed import MemberTarget
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.javahash import JavaHashMap
from groupstorm.turns import Turns


def preferred_assignor(
    shard: Shard,
    group: ConsumerGroup,
    before: ConsumerMember | None = None,
    after: ConsumerMember | None = None,
) -> str:
    """The name of the assignor that the group uses, as if ``before`` were replaced by ``after``."""
    return group.preferred_assignor(before, after) or shard.config.consumer.assignors[0]


def assign(
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


class Reconciliation(NamedTuple):
    """The question: a member's target and what is known about its partitions.

    ``is_subscribed``: whether the member subscribes to the topic with this id; ``subscribes_to_nothing``: it
    subscribes to no topic, existing or not; ``held``: the partitions that members hold; ``owned``: what the
    member says that it owns, None if nothing.
    """

    target: Target
    target_epoch: int
    held: Partitions
    is_subscribed: Callable[[UUID], bool]
    subscribes_to_nothing: bool
    has_subscription_changed: bool
    owned: Owned | None


def reconcile(member: ConsumerMember, question: Reconciliation) -> ConsumerMember:
    """The member after this heartbeat; the same object if nothing changes."""
    still_owns = owns_any(question.owned, member.revoking)
    if member.advances(question.target_epoch, still_owns):
        return _advance(member, question)
    return _drop_topics(member, question) if question.has_subscription_changed else member


def _drop_topics(member: ConsumerMember, question: Reconciliation) -> ConsumerMember:
    """Take away the topics to which the member no longer subscribes; its epoch stays."""
    dropped = {topic: held for topic, held in member.assigned.items() if not question.is_subscribed(topic)}
    if not dropped and (member.revoking or not question.subscribes_to_nothing):
        return member
    assigned = {topic: held for topic, held in member.assigned.items() if topic not in dropped}
    revoking = dict(member.revoking)
    for topic, held in dropped.items():
        revoking[topic] = {**revoking.get(topic, {}), **held}
    changed = replace(member, previous_epoch=member.epoch, assigned=assigned)
    if revoking and owns_any(question.owned, revoking):
        return replace(changed, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return changed


def _advance(member: ConsumerMember, question: Reconciliation) -> ConsumerMember:
    """Keep what is in the target, give the rest up, and then take what nobody else holds."""
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    taken: dict[UUID, dict[int, int]] = {}
    others_hold = False
    beside = {topic: () for topic in member.assigned if topic not in question.target}
    # a UUID's hash is dear: each topic is looked up only where it may be
    for topic, target in (*question.target.items(), *beside.items()):
        wanted = target if question.is_subscribed(topic) else ()
        assigned = member.assigned.get(topic) if member.assigned else None
        has: Mapping[int, int] = {}
        if assigned:
            in_target = frozenset(wanted)
            for number, epoch in assigned.items():
                (kept if number in in_target else revoking).setdefault(topic, {})[number] = epoch
            has = kept.get(topic, {})
        held = question.held.get(topic) if question.held else None
        free: Sequence[int] = [number for number in wanted if number not in has] if has else wanted
        if held:
            free = [one for one in free if one not in held or one in member.revoking.get(topic, {})]
            others_hold = others_hold or len(has) + len(free) < len(wanted)
        if free:
            taken[topic] = {**has, **dict.fromkeys(free, question.target_epoch)}
    must_revoke = bool(revoking) and owns_any(question.owned, revoking)
    state = state_after(MemberState, must_revoke, others_hold)
    if state is MemberState.UNREVOKED_PARTITIONS:
        return member.with_current((member.epoch, member.epoch, state, kept, revoking))
    return member.with_current((question.target_epoch, member.epoch, state, {**kept, **taken}, {}))


def reconcile_member(
    shard: Shard,
    group: ConsumerGroup,
    member: ConsumerMember,
    target: MemberTarget,
    has_subscription_changed: bool,
    owned: Owned | None,
    records: list[Record],
) -> ConsumerMember:
    """Bring the member towards its target, and write it if that changes the member.

    While the member has partitions to give up, its rebalance timeout runs. It starts again at each change.

    Kafka: GroupMetadataManager.maybeReconcile.
    """
    if not has_subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    topics = frozenset(topics_of(group, member))
    reconciled = reconcile(
        member,
        Reconciliation(
            target.partitions,
            target.epoch,
            group.partition_epochs,
            lambda topic: shard.topics.name(topic) in topics,
            not topics,
            has_subscription_changed,
            owned,
        ),
    )
    if reconciled == member:
        return reconciled
    records.append(group.current_record(reconciled))
    if reconciled.classic is None:
        watch_revocation(shard, group.name, reconciled)
    return reconciled
