"""The common part of the assignors of the design documents and of optimal-sticky: all but the plan.

A plan is a function from a `Question` (partitions and members as numbers, and the ownership that counts) to
partitions per member. `PlannedAssignor` builds the question and hands out the answer, eagerly or
cooperatively.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim, are_equal
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.indexed import OwnedFrom
from groupstorm.assignors.consumer.owners import believe_newest_claims
from groupstorm.assignors.consumer.plan import Rules, make_plan
from groupstorm.assignors.contract import (
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import (
    MemberData,
    Subscription,
    TopicPartition,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from groupstorm.assignors.userdata.strings import java_key_for


@dataclass(frozen=True)
class Question:
    """Members are numbers. ``names``: their ids; ``topics``: their subscriptions, as they wrote them.

    ``owned``: partitions per member in the member's own order; no partition has two owners. ``visit``: the
    order in which Kafka's hash table yields the members (or by id, `MapOrder.SORTED`).
    """

    index: PartitionIndex
    names: Sequence[str]
    topics: Sequence[tuple[str, ...]]
    owned: Sequence[Sequence[int]]
    visit: Sequence[int]

    def by_id(self) -> list[int]:
        """The members in the order of their ids."""
        names = self.names
        java_key = java_key_for(names)
        if java_key is None:
            return sorted(range(len(names)), key=names.__getitem__)
        return sorted(range(len(names)), key=lambda member: java_key(names[member]))

    def left(self, assigned: Sequence[Sequence[int]]) -> list[int]:
        """The partitions without an owner, by partition and topic: t0-0, t1-0, ..., t0-1, t1-1, ..."""
        taken = bytearray(self.index.size)
        for partitions in assigned:
            for partition in partitions:
                taken[partition] = 1
        free = [partition for partition in range(self.index.size) if not taken[partition]]
        return sorted(free, key=self.index.kept_key)


Planner = Callable[[Question], list[list[int]]]
Belief = Callable[[Sequence[Claim]], list[list[int]]]


@dataclass(frozen=True)
class PlannedAssignor:
    """An assignor around ``planner``; ``believe`` decides which claims of ownership count.

    ``protocol`` COOPERATIVE: a partition that another member still claims is withheld from its new owner
    until that member has revoked it (KIP-429), and members own partitions as they join. EAGER: all
    partitions are handed out, and the partitions that a member owned before travel in its user data.
    ``needs_equal_subscriptions``: unequal ones go to Kafka's general sticky form, which alone reads
    ``bug_compat``.
    """

    name: str
    planner: Planner
    believe: Belief
    protocol: RebalanceProtocol
    needs_equal_subscriptions: bool
    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    #: An owned partition that does not exist counts for nothing.
    reads_nonexistent: ClassVar[bool] = False

    @property
    def owned_from(self) -> OwnedFrom:
        """As `owned_data` reads it."""
        return OwnedFrom(field=True, user_data=self.protocol is RebalanceProtocol.EAGER)

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        """A cooperative assignor serves eager groups as well: there no member owns partitions when it
        joins.
        """
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
        return (RebalanceProtocol.EAGER,)

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """If eager, StickyAssignor's; if cooperative, CooperativeStickyAssignor's."""
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            return encode_generation(-1 if owned is None else generation)
        return None if owned is None else encode_sticky(owned, generation)

    def owned_data(self, subscription: Subscription) -> MemberData:
        """The owned partitions of the subscription; for an eager member without any, those of its user
        data.
        """
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            generation = decode_generation(subscription.user_data)
        else:
            reported = decode_sticky(subscription.user_data)
            if not subscription.owned:
                return reported
            generation = reported.generation
        if subscription.generation >= 0:
            generation = subscription.generation
        return MemberData(subscription.owned, generation)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Every existing, subscribed partition, except withheld ones and those that a sketch omits."""
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        index = PartitionIndex(wanted)
        claims = [self._claim(index, member, sub) for member, sub in subscriptions.items()]
        number = {member: place for place, member in enumerate(subscriptions)}
        visit = [number[member] for member in self.order.arrange(subscriptions)]
        assigned = self.assign_indexed(index, wanted, claims, visit)
        return AssignmentResult(
            {
                member: [index.name(partition) for partition in partitions]
                for member, partitions in zip(subscriptions, assigned, strict=True)
            }
        )

    def _claim(self, index: PartitionIndex, member: str, subscription: Subscription) -> Claim:
        owned = self.owned_data(subscription)
        return Claim(
            member,
            subscription.topics,
            index.numbers(owned.partitions),
            owned.generation,
            max(subscription.generation, -1),
            subscription.rack,
        )

    def assign_indexed(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """The partition numbers that every member is handed; ``visit`` as in `Question`."""
        if self.needs_equal_subscriptions and not are_equal(claims):
            owned = believe_newest_claims(claims)
            rules = Rules(self.order, self.bug_compat)
            assigned = make_plan(index, topics, claims, visit, rules).assigned
        else:
            owned = self.believe(claims)
            names, listed = [claim.member for claim in claims], [claim.topics for claim in claims]
            assigned = self.planner(Question(index, names, listed, owned, visit))
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            return _without_what_others_claim(claims, owned, assigned)
        return assigned


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
