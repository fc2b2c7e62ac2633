"""The members' claims of ownership, and the rules by which claims count.

`settle` is Kafka's rule (AbstractStickyAssignor.allSubscriptionsEqual). It compares fields that old
subscriptions lack, so its answer depends on the order of the members. Assignors that are not Kafka's use
`believe_newest_claims` and `believe_newest_generation`, which depend on the claims alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupstorm.assignors.userdata import NO_GENERATION

_DISPUTED = -1


class Claim(NamedTuple):
    """One member's part in an assignment.

    ``owned``: numbers of the partitions that the member claims to own, in its order (`PartitionIndex`).
    ``generation``: the generation of that claim. ``field_generation``: the generation in the subscription
    itself (KIP-792). Either is `NO_GENERATION` if the member does not say. ``instance``: the member's
    group.instance.id.
    """

    member: str
    topics: tuple[str, ...]
    owned: list[int]
    generation: int
    field_generation: int
    rack: str | None
    instance: str | None = None


class SettledOwnership(NamedTuple):
    """Per member the claims that count (do not change the lists), and partitions claimed twice."""

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
    max_generation = max([NO_GENERATION, *[claim.generation for claim in claims]])
    if _nobody_disagrees(claims, size):
        return SettledOwnership([claim.owned for claim in claims], set(), max_generation)
    claimant = [-1] * size
    owned: list[list[int]] = []
    disputed: set[int] = set()
    for member, claim in enumerate(claims):
        mine: list[int] = []
        owned.append(mine)
        for partition in claim.owned:
            other = claimant[partition]
            if other >= 0:
                if claim.generation < claims[other].field_generation:
                    continue
                if claim.generation == claims[other].field_generation:
                    disputed.add(partition)
                else:
                    mine.append(partition)
                if partition in owned[other]:
                    owned[other].remove(partition)
            else:
                mine.append(partition)
            claimant[partition] = member
    return SettledOwnership(owned, disputed, max_generation)


def _nobody_disagrees(claims: Sequence[Claim], size: int) -> bool:
    """Whether no partition is claimed twice, the normal case."""
    claimed = bytearray(size)
    for claim in claims:
        for partition in claim.owned:
            claimed[partition] = 1
    return claimed.count(1) == sum(len(claim.owned) for claim in claims)


def newest_owner(claims: Sequence[tuple[int, Iterable[int]]]) -> dict[int, int]:
    """Per partition the one claimant with the highest generation (or epoch).

    ``claims`` are (generation, partitions) per member; the answer is the member's place in that list. If
    two members claim a partition in one generation, it has no owner (KAFKA-12984).
    """
    newest: dict[int, int] = {}
    owner: dict[int, int] = {}
    for member, (generation, partitions) in enumerate(claims):
        for partition in dict.fromkeys(partitions):
            known = newest.get(partition)
            if known is None or generation > known:
                newest[partition] = generation
                owner[partition] = member
            elif generation == known:
                owner[partition] = _DISPUTED
    return {partition: member for partition, member in owner.items() if member != _DISPUTED}


def believe_newest_claims(claims: Sequence[Claim]) -> list[list[int]]:
    """Every member's owned partitions: of several claims to one the newest counts (KAFKA-14639)."""
    owner = newest_owner([(claim.generation, claim.owned) for claim in claims])
    return [
        [partition for partition in dict.fromkeys(claim.owned) if owner.get(partition) == member]
        for member, claim in enumerate(claims)
    ]


def believe_newest_generation(claims: Sequence[Claim]) -> list[list[int]]:
    """Every member's owned partitions; none for a member whose generation is not the newest.

    This is the rule of KAFKA-9987 and KAFKA-12464, "remove all owned_partitions if the generation is old".
    A generation is old if it is below the highest one that a member of this assignment reports, as in
    AbstractStickyAssignor from Kafka 2.6 to 3.4.
    """
    newest = max([claim.generation for claim in claims], default=NO_GENERATION)
    return believe_newest_claims(
        [claim if claim.generation == newest else claim._replace(owned=[]) for claim in claims]
    )


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
    listed = {id(claim.topics): claim.topics for claim in claims}
    return len({frozenset(topics) for topics in listed.values()}) <= 1
