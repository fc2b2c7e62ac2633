"""Rules of ownership that depend on the claims alone, not on the order of the members.

`claims.settle` is Kafka's rule. It compares fields that old subscriptions lack, so its answer depends on
the order of the members. Assignors that are not Kafka's use the rules here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupstorm.assignors.consumer.claims import NO_GENERATION, Claim

_DISPUTED = -1


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
    owner = newest_owner([(_generation(claim), claim.owned) for claim in claims])
    return _standing(claims, owner)


def believe_newest_generation(claims: Sequence[Claim]) -> list[list[int]]:
    """Every member's owned partitions; none for a member whose generation is not the newest.

    This is the rule of KAFKA-9987 and KAFKA-12464, "remove all owned_partitions if the generation is old".
    A generation is old if it is below the highest one that a member of this assignment reports, as in
    AbstractStickyAssignor from Kafka 2.6 to 3.4.
    """
    newest = max(map(_generation, claims), default=NO_GENERATION)
    current = [claim if _generation(claim) == newest else claim._replace(owned=[]) for claim in claims]
    return believe_newest_claims(current)


def _generation(claim: Claim) -> int:
    return NO_GENERATION if claim.generation is None else claim.generation


def _standing(claims: Sequence[Claim], owner: dict[int, int]) -> list[list[int]]:
    return [
        [partition for partition in dict.fromkeys(claim.owned) if owner.get(partition) == member]
        for member, claim in enumerate(claims)
    ]
