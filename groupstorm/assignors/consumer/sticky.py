"""Kafka's sticky assignors: balanced, with as few moved partitions as possible.

`StickyAssignor` is eager: members give up all partitions before they join, the user data names the
partitions that they owned, and the assignor hands out the whole assignment. `CooperativeStickyAssignor`
makes the same plan from the owned partitions of the subscriptions, but withholds a partition that changes
hands from its new owner. The old owner finds it missing, revokes it and joins again, and the next round
hands it out (KIP-429).

Some input leads Kafka astray: an owned partition that no longer exists, a member without topics, a topic
listed twice, a claim from an older generation on a topic that its member has left. Then Kafka throws, or
gives no valid assignment. `make_plan` gives Kafka's answer if it is valid; otherwise it leaves out the
unsound part of the input. With ``bug_compat`` it does as Kafka does, errors included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from groupstorm.assignors.consumer.claims import Claim, are_equal, seem_equal, settle
from groupstorm.assignors.consumer.constrained import ConstrainedAssignment
from groupstorm.assignors.consumer.general import GeneralAssignment, older_claimants
from groupstorm.assignors.consumer.indexed import IndexedAssignor, OwnedFrom, PartitionIndex, Question
from groupstorm.assignors.consumer.racks import racks_that_count
from groupstorm.assignors.contract import (
    COOPERATIVE,
    EAGER,
    AssignmentRefused,
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import NO_GENERATION, Subscription, TopicPartition


class Plan(NamedTuple):
    """Partition numbers per member; ``transferring``: partition -> new member, in the constrained form."""

    assigned: list[list[int]]
    transferring: dict[int, int] | None
    max_generation: int


class StickyAssignor(IndexedAssignor):
    """Kafka's StickyAssignor."""

    name: ClassVar[str] = "sticky"
    reads_nonexistent: ClassVar[bool] = True

    @property
    def owned_from(self) -> OwnedFrom:
        return OwnedFrom(field=False, user_data=True)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        question = self.ask(topics, subscriptions)
        plan = self.plan(question)
        name = question.index.name
        members = [claim.member for claim in question.claims]
        transferring: dict[str, list[TopicPartition]] = {}
        for partition, member in sorted((plan.transferring or {}).items()):
            transferring.setdefault(members[member], []).append(name(partition))
        return AssignmentResult(
            {
                member: question.index.names(assigned)
                for member, assigned in zip(members, plan.assigned, strict=True)
            },
            constrained=plan.transferring is not None,
            transferring=None if plan.transferring is None else transferring,
            max_generation=plan.max_generation,
        )

    def assign_indexed(self, question: Question) -> list[list[int]]:
        return self.plan(question).assigned

    def plan(self, question: Question) -> Plan:
        return make_plan(question, self.order, bug_compat=self.bug_compat)


class CooperativeStickyAssignor(StickyAssignor):
    """Kafka's CooperativeStickyAssignor."""

    name: ClassVar[str] = "cooperative-sticky"

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (COOPERATIVE, EAGER)

    @property
    def owned_from(self) -> OwnedFrom:
        """Below version 2 the user data has the generation (KIP-792)."""
        return OwnedFrom(field=True, user_data=False)

    def plan(self, question: Question) -> Plan:
        plan = super().plan(question)
        transferring = plan.transferring
        if transferring is None:
            transferring = _changes_hands(question.claims, plan.assigned)
        for partition, member in transferring.items():
            plan.assigned[member].remove(partition)
        return plan


def _changes_hands(claims: Sequence[Claim], assigned: Sequence[Sequence[int]]) -> dict[int, int]:
    """Partitions that a member gets while another one owns them (computePartitionsTransferringOwnership)."""
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for member, (claim, mine) in enumerate(zip(claims, assigned, strict=True)):
        owned = set(claim.owned)
        added.update((partition, member) for partition in mine if partition not in owned)
        revoked.update(owned.difference(mine))
    return {partition: member for partition, member in added.items() if partition in revoked}


def make_plan(question: Question, order: MapOrder, *, bug_compat: bool) -> Plan:
    """Assign every partition of the index; `AssignmentRefused` only with ``bug_compat``, if Kafka throws."""
    index, claims = question.index, question.claims
    if not claims:
        if bug_compat:
            raise AssignmentRefused("ArithmeticException", "/ by zero")
        return Plan([], {}, NO_GENERATION)
    equal = seem_equal(claims)
    sound = not index.nonexistent and (are_equal(claims) if equal else _older_claims_are_sound(index, claims))
    if sound or bug_compat:
        return _plan(question, order, equal, literally=not sound, refuses_circles=bug_compat or not sound)
    try:
        plan = _plan(question, order, equal, literally=True, refuses_circles=True)
        if _is_valid(index, claims, plan):
            return plan
    except AssignmentRefused:
        pass  # the same as for an invalid answer
    return _plan_soundly(question, order)


def _plan(
    question: Question, order: MapOrder, constrained: bool, *, literally: bool, refuses_circles: bool
) -> Plan:
    ownership = settle(question.claims, question.index.size)
    racks = racks_that_count(question)
    if constrained:
        equal_form = ConstrainedAssignment(question, ownership, racks)
        equal_form.run()
        return Plan(equal_form.assigned, equal_form.transferring, ownership.max_generation)
    general_form = GeneralAssignment(
        question, ownership, racks, order, literally=literally, refuses_circles=refuses_circles
    )
    general_form.run()
    return Plan(general_form.assigned, None, ownership.max_generation)


def _plan_soundly(question: Question, order: MapOrder) -> Plan:
    """Plan without nonexistent partitions, claims on topics left since, and members without topics."""
    index = question.index
    sound = [claim._replace(owned=_sound_claims(index, claim)) for claim in question.claims]
    subscribers = [member for member, claim in enumerate(sound) if claim.topics]
    subscribing = [sound[member] for member in subscribers]
    if not are_equal(subscribing):
        everyone = replace(question, claims=sound)
        return _plan(everyone, order, constrained=False, literally=False, refuses_circles=False)
    place_of = {member: place for place, member in enumerate(subscribers)}
    visit = [place_of[member] for member in question.visit if member in place_of]
    asked = replace(question, claims=subscribing, visit=visit)
    plan = _plan(asked, order, constrained=True, literally=False, refuses_circles=False)
    assigned: list[list[int]] = [[] for _ in sound]
    for member, mine in zip(subscribers, plan.assigned, strict=True):
        assigned[member] = mine
    transferring = {partition: subscribers[place] for partition, place in (plan.transferring or {}).items()}
    return Plan(assigned, transferring, max([NO_GENERATION, *[claim.generation for claim in sound]]))


def _sound_claims(index: PartitionIndex, claim: Claim) -> list[int]:
    subscribed = {index.number_of_topic.get(topic) for topic in claim.topics}
    nonexistent = set(index.nonexistent.values())
    return [
        partition
        for partition in claim.owned
        if index.topic_of[partition] in subscribed and partition not in nonexistent
    ]


def _older_claims_are_sound(index: PartitionIndex, claims: Sequence[Claim]) -> bool:
    """Whether every member still subscribes to the topics that it claimed in an older generation."""
    newest = max(claim.generation for claim in claims)
    return all(
        index.topics[index.topic_of[partition]] in claims[member].topics
        for partition, member in older_claimants(claims, max(newest, NO_GENERATION)).items()
    )


def _is_valid(index: PartitionIndex, claims: Sequence[Claim], plan: Plan) -> bool:
    """Whether every existing partition has exactly one member, which subscribes to its topic."""
    seen: set[int] = set()
    count = 0
    for claim, assigned in zip(claims, plan.assigned, strict=True):
        subscribed = {index.number_of_topic.get(topic) for topic in claim.topics}
        if not all(index.topic_of[partition] in subscribed for partition in assigned):
            return False
        seen.update(assigned)
        count += len(assigned)
    return count == len(seen) == index.total and seen.isdisjoint(index.nonexistent.values())
