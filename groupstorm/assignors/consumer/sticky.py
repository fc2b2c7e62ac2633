"""Kafka's sticky assignors: balanced, with as few moved partitions as possible.

Both compute the same assignment. They differ in the ownership that they read and in the partitions that
they hand out:

* `StickyAssignor` is eager. Members give up all partitions before they join, so the user data names the
  partitions that they owned, and the assignor hands out the whole assignment.
* `CooperativeStickyAssignor` reads the owned partitions of the subscription. It withholds a partition that
  changes hands from its new owner: the old owner finds it missing, revokes it and joins again, and the next
  round hands it out. That takes two rounds, and members go on working on the partitions that they keep
  (KIP-429).

Equal subscriptions take the constrained form, others the general one (`plan`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.indexed import OwnedFrom
from groupstorm.assignors.consumer.plan import Plan, Rules, make_plan
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


@dataclass(frozen=True)
class AbstractStickyAssignor(ABC):
    """The common part of both; ``bug_compat``: do as Kafka does even if that is no valid answer."""

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    needs_equal_subscriptions: ClassVar[bool] = False
    owned_from: ClassVar[OwnedFrom]
    reads_nonexistent: ClassVar[bool] = True
    withholds: ClassVar[bool]

    @abstractmethod
    def owned_data(self, subscription: Subscription) -> MemberData:
        """A member's owned partitions, and their generation."""

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign as AbstractStickyAssignor.assignPartitions does."""
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        owned = {member: self.owned_data(subscription) for member, subscription in subscriptions.items()}
        index = PartitionIndex(wanted, _nonexistent(wanted, (data.partitions for data in owned.values())))
        claims = [
            Claim(
                member,
                subscription.topics,
                index.numbers(owned[member].partitions),
                owned[member].generation,
                max(subscription.generation, -1),
                subscription.rack,
            )
            for member, subscription in subscriptions.items()
        ]
        number = {member: place for place, member in enumerate(subscriptions)}
        visit = [number[member] for member in self.order.arrange(subscriptions)]
        plan = plan_and_withhold(self, index, wanted, claims, visit)
        return _named(index, list(subscriptions), plan)

    def assign_indexed(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """As `IndexedAssignor.assign_indexed`."""
        return plan_and_withhold(self, index, topics, claims, visit).assigned


@dataclass(frozen=True)
class StickyAssignor(AbstractStickyAssignor):
    """Kafka's StickyAssignor."""

    name: ClassVar[str] = "sticky"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    owned_from: ClassVar[OwnedFrom] = OwnedFrom(field=False, user_data=True)
    withholds: ClassVar[bool] = False

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The last assignment and its generation (version 1); None before the first."""
        return None if owned is None else encode_sticky(owned, generation)

    def owned_data(self, subscription: Subscription) -> MemberData:
        """From the user data alone, never from the owned partitions of the subscription."""
        return decode_sticky(subscription.user_data)


@dataclass(frozen=True)
class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Kafka's CooperativeStickyAssignor."""

    name: ClassVar[str] = "cooperative-sticky"
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (
        RebalanceProtocol.COOPERATIVE,
        RebalanceProtocol.EAGER,
    )
    owned_from: ClassVar[OwnedFrom] = OwnedFrom(field=True, user_data=False)
    withholds: ClassVar[bool] = True

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The generation of the last assignment, -1 before the first."""
        return encode_generation(-1 if owned is None else generation)

    def owned_data(self, subscription: Subscription) -> MemberData:
        """From the subscription's fields; below version 2 the user data has the generation (KIP-792)."""
        if subscription.generation >= 0:
            return MemberData(subscription.owned, subscription.generation)
        return MemberData(subscription.owned, decode_generation(subscription.user_data))


def plan_and_withhold(
    assignor: AbstractStickyAssignor,
    index: PartitionIndex,
    topics: Mapping[str, TopicMetadata],
    claims: Sequence[Claim],
    visit: Sequence[int],
) -> Plan:
    """The plan; for a cooperative assignor without the partitions that change hands."""
    plan = make_plan(index, topics, claims, visit, Rules(assignor.order, assignor.bug_compat))
    if not assignor.withholds:
        return plan
    transferring = plan.transferring
    if transferring is None:
        transferring = _changes_hands(claims, plan.assigned)
    for partition, member in transferring.items():
        plan.assigned[member].remove(partition)
    return plan


def _changes_hands(claims: Sequence[Claim], assigned: Sequence[Sequence[int]]) -> dict[int, int]:
    """Partitions that a member gets while another one still owns them
    (computePartitionsTransferringOwnership).
    """
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for member, (claim, mine) in enumerate(zip(claims, assigned, strict=True)):
        owned = set(claim.owned)
        added.update((partition, member) for partition in mine if partition not in owned)
        revoked.update(owned.difference(mine))
    return {partition: member for partition, member in added.items() if partition in revoked}


def _nonexistent(
    topics: Mapping[str, TopicMetadata], claimed: Iterable[Sequence[TopicPartition]]
) -> set[tuple[str, int]]:
    return {
        (topic, partition)
        for partitions in claimed
        for topic, partition in partitions
        if topic in topics and not 0 <= partition < topics[topic].partitions
    }


def _named(index: PartitionIndex, members: Sequence[str], plan: Plan) -> AssignmentResult:
    partitions = {
        member: index.names(assigned) for member, assigned in zip(members, plan.assigned, strict=True)
    }
    if plan.transferring is None:
        return AssignmentResult(partitions, constrained=False, max_generation=plan.max_generation)
    transferring: dict[str, list[TopicPartition]] = {}
    for partition in sorted(plan.transferring):
        transferring.setdefault(members[plan.transferring[partition]], []).append(index.name(partition))
    return AssignmentResult(
        partitions, constrained=True, transferring=transferring, max_generation=plan.max_generation
    )
