"""Brings one member from its current assignment towards its target, a heartbeat at a time.

The group's partition epochs say which partitions are held. Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.server import Target
from groupstorm.coordinator.consumer.group import NO_EPOCH
from groupstorm.coordinator.consumer.member import ConsumerMember, Owned, Partitions, owns_any
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.reconciliation import Found, Step, reached, situation, steps

NEXT_STEP = steps(MemberState)
REACHED = reached(MemberState)


class Reconciliation(NamedTuple):
    """The question: a member's target and what is known about its partitions.

    ``is_subscribed``: whether the member subscribes to the topic with this id; ``subscribes_to_nothing``: it
    subscribes to no topic, existing or not; ``owned``: what the member says that it owns, None if nothing.
    """

    target: Target
    target_epoch: int
    partition_epoch: Callable[[UUID, int], int]
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
    taken: dict[UUID, list[int]] = {}
    others_hold = False
    for topic in dict.fromkeys((*question.target, *member.assigned)):
        wanted = question.target.get(topic, ()) if question.is_subscribed(topic) else ()
        assigned, has = member.assigned.get(topic), {}
        if assigned:
            in_target = frozenset(wanted)
            for number, epoch in assigned.items():
                (kept if number in in_target else revoking).setdefault(topic, {})[number] = epoch
            has = kept.get(topic, {})
        for number in wanted:
            if number in has:
                continue
            if question.partition_epoch(topic, number) != NO_EPOCH and not _is_in(
                member.revoking, topic, number
            ):
                others_hold = True
            else:
                taken.setdefault(topic, []).append(number)
    must_revoke = bool(revoking) and owns_any(question.owned, revoking)
    state = REACHED[Found(must_revoke, others_hold)]
    if state is MemberState.UNREVOKED_PARTITIONS:
        return member.with_current((member.epoch, member.epoch, state, kept, revoking))
    for topic, numbers in taken.items():
        kept.setdefault(topic, {}).update(dict.fromkeys(numbers, question.target_epoch))
    return member.with_current((question.target_epoch, member.epoch, state, kept, {}))


def _is_in(partitions: Partitions, topic: UUID, number: int) -> bool:
    return number in partitions.get(topic, {})
