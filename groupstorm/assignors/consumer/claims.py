"""The members' claims of ownership, and which claims count (AbstractStickyAssignor.allSubscriptionsEqual)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: AbstractStickyAssignor.DEFAULT_GENERATION: the generation of a member without one.
NO_GENERATION = -1


class Claim(NamedTuple):
    """One member's part in a sticky assignment.

    ``owned``: numbers of the partitions that the member claims to own, in its order (`PartitionIndex`).
    ``generation``: the generation of that claim, None if the member does not say. ``field_generation``: the
    generation in the subscription itself (KIP-792), -1 for none. ``instance``: the member's
    group.instance.id.
    """

    member: str
    topics: tuple[str, ...]
    owned: list[int]
    generation: int | None
    field_generation: int
    rack: str | None
    instance: str | None = None


class SettledOwnership(NamedTuple):
    """``owned`` per member: the claims that count; ``disputed``: partitions claimed twice in one
    generation.

    The lists may be the claims' own lists: do not change them.
    """

    owned: list[list[int]]
    disputed: set[int]
    max_generation: int


def settle(claims: Sequence[Claim], size: int) -> SettledOwnership:
    """Decide every partition that two members claim: the higher generation wins; of equal ones both lose.

    Kafka compares the later claimant's generation (which may come from user data) with the *subscription
    field* of the earlier one. Below version 2 that field is -1, so the later claimant wins with any
    generation (KAFKA-12984, KAFKA-14639). A disputed partition stays disputed even if a third member claims
    it with a higher generation.
    """
    max_generation = max([NO_GENERATION, *map(_generation, claims)])
    if _nobody_disagrees(claims, size):
        return SettledOwnership([claim.owned for claim in claims], set(), max_generation)
    claimant = [-1] * size
    owned: list[list[int]] = []
    disputed: set[int] = set()
    for member, claim in enumerate(claims):
        generation = _generation(claim)
        mine: list[int] = []
        owned.append(mine)
        for partition in claim.owned:
            other = claimant[partition]
            if other >= 0:
                if generation < claims[other].field_generation:
                    continue
                if generation == claims[other].field_generation:
                    disputed.add(partition)
                else:
                    mine.append(partition)
                if partition in owned[other]:
                    owned[other].remove(partition)
            else:
                mine.append(partition)
            claimant[partition] = member
    return SettledOwnership(owned, disputed, max_generation)


def _generation(claim: Claim) -> int:
    return NO_GENERATION if claim.generation is None else claim.generation


def _nobody_disagrees(claims: Sequence[Claim], size: int) -> bool:
    """Whether no partition is claimed twice, the normal case."""
    claimed = bytearray(size)
    for claim in claims:
        for partition in claim.owned:
            claimed[partition] = 1
    return claimed.count(1) == sum(len(claim.owned) for claim in claims)


def seem_equal(claims: Sequence[Claim]) -> bool:
    """Kafka's test for equal subscriptions, its gaps included.

    The first subscription that is not empty is the reference, as a set. Later ones are compared with it by
    the length of their lists and by containment. Empty ones before it pass.
    """
    measure: frozenset[str] = frozenset()
    seen: tuple[str, ...] | None = None
    for claim in claims:
        if not measure:
            measure, seen = frozenset(claim.topics), None
        elif claim.topics is not seen and claim.topics != seen:
            if len(claim.topics) != len(measure) or not measure.issuperset(claim.topics):
                return False
            seen = claim.topics
    return True


def are_equal(claims: Sequence[Claim]) -> bool:
    """Whether all subscriptions name the same topics."""
    listed = {id(claim.topics): claim.topics for claim in claims}
    return len({frozenset(topics) for topics in listed.values()}) <= 1
