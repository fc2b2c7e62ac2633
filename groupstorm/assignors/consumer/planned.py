"""The common part of the assignors of the design documents and of optimal-sticky: all but the plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from groupstorm.assignors.consumer.claims import Claim, are_equal, believe_newest_claims
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
