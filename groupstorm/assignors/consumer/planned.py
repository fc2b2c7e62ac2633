"""Assignors around a plan, and those of KAFKA-9987 and KAFKA-12464: phases for equal subscriptions.

With P partitions and N members, C_f = floor(P / N), C_c = ceil(P / N), and C_r = P mod N members may have
C_c. Members keep partitions in their own order.

constrained-cooperative-sticky, the four phases of KAFKA-9987:

1. Members keep their owned partitions up to C_c.
2. Members below C_f are filled up to it, one after the other, by id.
3. If the partitions run out before that, members with C_c give up one each, their last one.
4. If partitions are left, members without C_c get one each.

The page leaves some points open. Here no partition is taken from a member if C_c = C_f, because phase 2 is
enough then; a member may need several partitions of others; phase 4 goes on at the member where it stopped;
and nonexistent partitions have no owner.

two-phase-sticky, KAFKA-12464:

1. Members keep their owned partitions: C_c while fewer than C_r members do, else C_f. They are visited in the
   order of Kafka's hash table, as in the page's Java.
2. Members below C_f are filled, by id.

Its two sketches, as they stand on the page, have errors. two-phase-sticky corrects them: members that keep
exactly C_f get one more, by id, before members that phase 2 has filled, until C_r members have C_c (as
AbstractStickyAssignor.ConstrainedAssignmentBuilder does today).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupstorm.assignors.consumer.claims import (
    Claim,
    are_equal,
    believe_newest_claims,
    believe_newest_generation,
)
from groupstorm.assignors.consumer.indexed import IndexedAssignor, OwnedFrom, Question
from groupstorm.assignors.consumer.sticky import make_plan
from groupstorm.assignors.contract import COOPERATIVE, EAGER, RebalanceProtocol


@dataclass(frozen=True)
class PlannedAssignor(IndexedAssignor):
    """An assignor around `plan`.

    ``protocol`` COOPERATIVE: a partition that another member still claims is withheld from its new owner
    until that member has revoked it (KIP-429), and members own partitions as they join. EAGER: all
    partitions are handed out, and the partitions that a member owned before travel in its user data.

    If the plan needs equal subscriptions, unequal ones go to Kafka's general sticky form, which alone reads
    ``bug_compat``. An owned partition that does not exist counts for nothing.
    """

    protocol: RebalanceProtocol = EAGER

    @abstractmethod
    def plan(self, question: Question, owned: Sequence[Sequence[int]]) -> list[list[int]]:
        """Partitions per member. ``owned``: the claims that count, in each member's order."""

    def believe(self, claims: Sequence[Claim]) -> list[list[int]]:
        return believe_newest_claims(claims)

    @property
    def owned_from(self) -> OwnedFrom:
        return OwnedFrom(field=True, user_data=self.protocol is EAGER)

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        """A cooperative assignor serves eager groups, too: there no member owns partitions when it joins."""
        return (EAGER,) if self.protocol is EAGER else (COOPERATIVE, EAGER)

    def assign_indexed(self, question: Question) -> list[list[int]]:
        """Every partition of the index, except withheld ones and those that a sketch omits."""
        claims = question.claims
        if not claims:
            return []
        if self.needs_equal_subscriptions and not are_equal(claims):
            owned = believe_newest_claims(claims)
            assigned = make_plan(question, self.order, bug_compat=self.bug_compat).assigned
        else:
            owned = self.believe(claims)
            assigned = self.plan(question, owned)
        return assigned if self.protocol is EAGER else _without_what_others_claim(claims, owned, assigned)


def _without_what_others_claim(
    claims: Sequence[Claim], owned: Sequence[Sequence[int]], assigned: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Leave out a member's new partitions that another member still claims, however old that claim is."""
    claimants: dict[int, int] = {}
    for claim in claims:
        for partition in set(claim.owned):
            claimants[partition] = claimants.get(partition, 0) + 1
    handed_out: list[list[int]] = []
    for claim, own, partitions in zip(claims, owned, assigned, strict=True):
        kept, claimed = set(own), set(claim.owned)
        handed_out.append(
            [
                partition
                for partition in partitions
                if partition in kept or claimants.get(partition, 0) == (partition in claimed)
            ]
        )
    return handed_out


Owned = Sequence[Sequence[int]]


class _PhaseAssignor(PlannedAssignor):
    needs_equal_subscriptions: ClassVar[bool] = True

    def believe(self, claims: Sequence[Claim]) -> list[list[int]]:
        return believe_newest_generation(claims)


@dataclass(frozen=True)
class ConstrainedCooperativeStickyAssignor(_PhaseAssignor):
    """The four phases of KAFKA-9987."""

    protocol: RebalanceProtocol = COOPERATIVE

    name: ClassVar[str] = "constrained-cooperative-sticky"

    def plan(self, question: Question, owned: Owned) -> list[list[int]]:
        """Every partition of the index exactly once, balanced to one."""
        floor, extras = divmod(question.index.total, len(owned))
        ceiling = floor + (extras > 0)
        members = question.by_id()
        assigned = [list(mine[:ceiling]) for mine in owned]
        unfilled = [member for member in members if len(owned[member]) < floor]
        at_ceiling = deque(member for member in members if len(owned[member]) > floor)
        left = deque(question.index.left(assigned))
        for member in unfilled:
            _take(left, floor - len(assigned[member]), assigned[member])
        for member in unfilled:
            while len(assigned[member]) < floor:
                assigned[member].append(assigned[at_ceiling.popleft()].pop())
        full = set(at_ceiling)
        for member in members:
            if member not in full:
                _take(left, 1, assigned[member])
        return assigned


class TwoPhaseStickyAssignor(_PhaseAssignor):
    """The two phases of KAFKA-12464, without the errors of its sketches."""

    name: ClassVar[str] = "two-phase-sticky"

    def plan(self, question: Question, owned: Owned) -> list[list[int]]:
        """Every partition of the index exactly once, balanced to one."""
        floor, extras = divmod(question.index.total, len(owned))
        assigned, at_ceiling = _keep(question, owned, question.visit)
        left = deque(question.index.left(assigned))
        by_id = question.by_id()
        unfilled = [member for member in by_id if len(owned[member]) < floor]
        at_floor = [member for member in by_id if len(owned[member]) >= floor == len(assigned[member])]
        for member in unfilled:
            _take(left, floor - len(assigned[member]), assigned[member])
        for member in (at_floor + unfilled)[: extras - at_ceiling]:
            _take(left, 1, assigned[member])
        return assigned


class TwoPhasePseudoCode(_PhaseAssignor):
    """The page's second block of pseudo-code, line by line; the first one is a diff without its marks.

    It visits "the sorted set", and gives nothing to a member that has C_f already. Partitions stay
    unassigned if no member is below C_f; on an empty start with P < N that is all of them.
    """

    name: ClassVar[str] = "two-phase-sticky/pseudo-code"

    def plan(self, question: Question, owned: Owned) -> list[list[int]]:
        return _fill_as_pseudo_code(question, owned, *_keep(question, owned, question.by_id()))


class TwoPhaseJavaSketch(_PhaseAssignor):
    """The page's Java to the letter, completed by the pseudo-code, because it ends after the first loop.

    It lets one member too many keep C_c (``numMaxCapacityMembers++ <= expected``), and then runs out of
    partitions: 4/4/2, and its page promises 4/3/3.
    """

    name: ClassVar[str] = "two-phase-sticky/java-sketch"

    def plan(self, question: Question, owned: Owned) -> list[list[int]]:
        kept = _keep(question, owned, question.visit, as_java_sketch=True)
        return _fill_as_pseudo_code(question, owned, *kept)


def _keep(
    question: Question, owned: Owned, visit: Sequence[int], *, as_java_sketch: bool = False
) -> tuple[list[list[int]], int]:
    """Phase 1: the partitions that members keep, and how many members count as having C_c.

    The Java sketch compares its counter with ``<=``, and counts rejected members, too.
    """
    floor, extras = divmod(question.index.total, len(owned))
    ceiling = floor + (extras > 0)
    assigned: list[list[int]] = [[] for _ in owned]
    counter = 0
    for member in visit:
        keep = floor
        if len(owned[member]) >= ceiling:
            keeps_ceiling = counter < extras + as_java_sketch
            keep = ceiling if keeps_ceiling else floor
            counter += keeps_ceiling or as_java_sketch
        assigned[member] = list(owned[member][:keep])
    return assigned, counter


def _fill_as_pseudo_code(
    question: Question, owned: Owned, assigned: list[list[int]], at_ceiling: int
) -> list[list[int]]:
    """Fill members below C_f to C_c while fewer than C_r members count as full, else to C_f."""
    floor, extras = divmod(question.index.total, len(owned))
    left = deque(question.index.left(assigned))
    for member in question.by_id():
        if len(owned[member]) < floor:
            capacity = floor + (at_ceiling < extras)
            at_ceiling += at_ceiling < extras
            _take(left, capacity - len(assigned[member]), assigned[member])
    return assigned


def _take(left: deque[int], count: int, onto: list[int]) -> None:
    for _ in range(min(count, len(left))):
        onto.append(left.popleft())
