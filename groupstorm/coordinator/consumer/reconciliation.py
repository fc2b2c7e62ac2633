"""Brings one member from its current assignment towards its target, a heartbeat at a time.

The group's partition epochs say which partitions are held. Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.server import Target
from groupstorm.coordinator.changes import watch_revocation
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember, Owned, Partitions, owns_any
from groupstorm.coordinator.consumer.subscriptions import topics_of
from groupstorm.coordinator.consumer.targets import MemberTarget
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.reconciliation import Found, Step, reached, situation, steps
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard

NEXT_STEP = steps(MemberState)
REACHED = reached(MemberState)


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
    step = NEXT_STEP[member.state][situation(member, question.target_epoch, still_owns)]
    if step is Step.ADVANCE:
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
            free = [one for one in free if one not in held or _is_in(member.revoking, topic, one)]
            others_hold = others_hold or len(has) + len(free) < len(wanted)
        if free:
            taken[topic] = {**has, **dict.fromkeys(free, question.target_epoch)}
    must_revoke = bool(revoking) and owns_any(question.owned, revoking)
    state = REACHED[Found(must_revoke, others_hold)]
    if state is MemberState.UNREVOKED_PARTITIONS:
        return member.with_current((member.epoch, member.epoch, state, kept, revoking))
    return member.with_current((question.target_epoch, member.epoch, state, {**kept, **taken}, {}))


def _is_in(partitions: Partitions, topic: UUID, number: int) -> bool:
    return number in partitions.get(topic, {})


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
