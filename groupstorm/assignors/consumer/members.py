"""Members as range and roundrobin see them (AbstractPartitionAssignor.MemberInfo): without a past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.contract import AssignmentResult
from groupstorm.assignors.userdata import NO_GENERATION, Subscription, java_key


def claim_nothing(subscriptions: Mapping[str, Subscription]) -> list[Claim]:
    """The members for an assignor that does not ask what they owned."""
    return [
        Claim(member, sub.topics, [], None, NO_GENERATION, sub.rack, sub.instance)
        for member, sub in subscriptions.items()
    ]


def in_order(claims: Sequence[Claim]) -> list[int]:
    """Static members by group.instance.id, then dynamic ones by member id; equals keep their order.

    So a static member keeps its place when a restart gives it a new member id (KIP-345).
    """

    def place(member: int) -> tuple[bool, bytes]:
        name, instance = claims[member].member, claims[member].instance
        return (instance is None, java_key(name if instance is None else instance))

    return sorted(range(len(claims)), key=place)


def by_name(index: PartitionIndex, claims: Sequence[Claim], plan: Sequence[list[int]]) -> AssignmentResult:
    """A plan on numbers, with the names of members and partitions."""
    return AssignmentResult(
        {claim.member: index.names(assigned) for claim, assigned in zip(claims, plan, strict=True)}
    )
