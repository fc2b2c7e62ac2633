"""A sticky assignment on dense integers: from claims to a plan, valid or exactly Kafka's.

Some input leads Kafka's sticky assignors astray: an owned partition that no longer exists, a member without
topics, a topic listed twice, a claim from an older generation on a topic that its member has left. Then
they throw, or give no valid assignment. `make_plan` gives Kafka's answer if it is valid; otherwise it
leaves out the unsound part of the input. With ``bug_compat`` it does as Kafka does, errors included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupstorm.assignors.consumer.claims import NO_GENERATION, Claim, are_equal, seem_equal, settle
from groupstorm.assignors.consumer.constrained import ConstrainedAssignment
from groupstorm.assignors.consumer.general import GeneralAssignment, older_claimants
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.racks import Racks, use_racks
from groupstorm.assignors.contract import AssignmentRefused, MapOrder, TopicMetadata


class Plan(NamedTuple):
    """Partition numbers per member, in the order of the claims.

    ``transferring``: partition -> the member that gets it from another one; None from the general form.
    """

    assigned: list[list[int]]
    transferring: dict[int, int] | None
    max_generation: int


class Rules(NamedTuple):
    """The options of the sticky assignors, see `sticky`."""

    order: MapOrder
    bug_compat: bool


def make_plan(
    index: PartitionIndex,
    topics: Mapping[str, TopicMetadata],
    claims: Sequence[Claim],
    visit: Sequence[int],
    rules: Rules,
) -> Plan:
    """Assign every partition of the index; members are visited in the order of ``visit``.

    Raises `AssignmentRefused` only with ``rules.bug_compat``, if Kafka throws.
    """
    if not claims:
        if rules.bug_compat:
            raise AssignmentRefused("ArithmeticException", "/ by zero")
        return Plan([], {}, NO_GENERATION)
    run = _StickyInput(index, topics, rules)
    equal = seem_equal(claims)
    sound = not index.nonexistent and (are_equal(claims) if equal else _older_claims_are_sound(index, claims))
    if sound or rules.bug_compat:
        return run.plan(claims, visit, constrained=equal, literally=not sound)
    try:
        plan = run.plan(claims, visit, constrained=equal, literally=True)
    except AssignmentRefused:
        return _plan_soundly(run, claims, visit)
    return plan if _is_valid(index, claims, plan) else _plan_soundly(run, claims, visit)


@dataclass(frozen=True)
class _StickyInput:
    """The part of the input that stays the same if a plan is made a second time."""

    index: PartitionIndex
    topics: Mapping[str, TopicMetadata]
    rules: Rules

    def plan(
        self, claims: Sequence[Claim], visit: Sequence[int], *, constrained: bool, literally: bool
    ) -> Plan:
        ownership = settle(claims, self.index.size)
        racks = self._racks(claims)
        if constrained:
            names = [claim.member for claim in claims]
            equal_form = ConstrainedAssignment(self.index, names, ownership, visit, racks)
            equal_form.run()
            return Plan(equal_form.assigned, equal_form.transferring, ownership.max_generation)
        general_form = GeneralAssignment(
            self.index,
            claims,
            ownership,
            visit,
            racks,
            self.rules.order,
            literally=literally,
            refuses_circles=literally or self.rules.bug_compat,
        )
        general_form.run()
        return Plan(general_form.assigned, None, ownership.max_generation)

    def _racks(self, claims: Sequence[Claim]) -> Racks | None:
        members = [claim.rack or None for claim in claims]
        if not any(members):
            return None
        unknown: frozenset[str] = frozenset()
        partitions = [unknown] * self.index.size
        for number, topic in enumerate(self.index.topics):
            replicas = self.topics[topic].racks
            if replicas is not None:
                real = self.index.real(number)
                partitions[real.start : real.stop] = replicas
        existing = [
            partitions[partition]
            for number in range(len(self.index.topics))
            for partition in self.index.real(number)
        ]
        if use_racks((rack for rack in members if rack), existing):
            return Racks(members, partitions)
        return None


def _plan_soundly(run: _StickyInput, claims: Sequence[Claim], visit: Sequence[int]) -> Plan:
    """Plan without unsound input.

    That is: nonexistent partitions, claims on topics that a member has left, members without topics.
    """
    sound = [claim._replace(owned=_sound_claims(run.index, claim)) for claim in claims]
    subscribers = [member for member, claim in enumerate(sound) if claim.topics]
    if not are_equal([sound[member] for member in subscribers]):
        return run.plan(sound, visit, constrained=False, literally=False)
    number = {member: place for place, member in enumerate(subscribers)}
    plan = run.plan(
        [sound[member] for member in subscribers],
        [number[member] for member in visit if member in number],
        constrained=True,
        literally=False,
    )
    assigned: list[list[int]] = [[] for _ in claims]
    for member, place in number.items():
        assigned[member] = plan.assigned[place]
    assert plan.transferring is not None
    transferring = {partition: subscribers[place] for partition, place in plan.transferring.items()}
    return Plan(assigned, transferring, settle(claims, run.index.size).max_generation)


def _sound_claims(index: PartitionIndex, claim: Claim) -> list[int]:
    subscribed = {index.number_of_topic[topic] for topic in claim.topics if topic in index.number_of_topic}
    nonexistent = set(index.nonexistent.values())
    return [
        partition
        for partition in claim.owned
        if index.topic_of[partition] in subscribed and partition not in nonexistent
    ]


def _older_claims_are_sound(index: PartitionIndex, claims: Sequence[Claim]) -> bool:
    """Whether every member still subscribes to the topics that it claimed in an older generation."""
    newest = max(NO_GENERATION if claim.generation is None else claim.generation for claim in claims)
    topic_names = index.topics
    return all(
        topic_names[index.topic_of[partition]] in claims[member].topics
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
