"""Assignors that work on partition numbers: their question, and the part that they have in common.

A leader (`groupstorm.assignors.leader`) reads partitions as bytes and writes them as bytes, so names in
between would be most of its work. It calls `IndexedAssignor.assign_indexed`. `IndexedAssignor.assign` gives
the same answer by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.contract import (
    EAGER,
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import (
    NO_GENERATION,
    Subscription,
    TopicPartition,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from groupstorm.assignors.userdata.sticky import MemberData
from groupstorm.assignors.userdata.strings import java_keys


class OwnedFrom(NamedTuple):
    """The source of ownership: the subscription's field, StickyAssignor's user data, or neither.

    Both: the user data if the field is empty.
    """

    field: bool
    user_data: bool


@dataclass(frozen=True)
class Question:
    """A group on partition numbers; a member is its place in ``claims``.

    ``topics`` are in the order of Kafka's table; ``visit`` is the order in which its table of members
    yields them.
    """

    index: PartitionIndex
    topics: Mapping[str, TopicMetadata]
    claims: Sequence[Claim]
    visit: Sequence[int]

    def by_id(self) -> list[int]:
        keys = java_keys([claim.member for claim in self.claims])
        return sorted(range(len(keys)), key=keys.__getitem__)


@dataclass(frozen=True)
class IndexedAssignor(ABC):
    """The common part. ``bug_compat``: do as Kafka does even if it throws or gives no valid answer."""

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str]
    needs_equal_subscriptions: ClassVar[bool] = False
    #: Whether the answer may depend on owned partitions that do not exist although their topic does. Those
    #: have no numbers in a leader's index, so the leader falls back on `assign` if it meets one.
    reads_nonexistent: ClassVar[bool] = False

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (EAGER,)

    @property
    def owned_from(self) -> OwnedFrom:
        """The source of `Claim.owned`."""
        return OwnedFrom(field=False, user_data=False)

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """StickyAssignor's or CooperativeStickyAssignor's user data, if ownership is read at all."""
        if self.owned_from.user_data:
            return None if owned is None else encode_sticky(owned, generation)
        if self.owned_from.field:
            return encode_generation(NO_GENERATION if owned is None else generation)
        return None

    def owned_data(self, subscription: Subscription) -> MemberData:
        """A member's owned partitions, and their generation."""
        source = self.owned_from
        if source.user_data:
            reported = decode_sticky(subscription.user_data)
            if not source.field or not subscription.owned:
                return reported
            generation = reported.generation
        elif source.field:
            generation = decode_generation(subscription.user_data)
        else:
            return MemberData((), None)
        if subscription.generation >= 0:
            generation = subscription.generation
        return MemberData(subscription.owned, generation)

    def ask(self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]) -> Question:
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        owned = [self.owned_data(subscription) for subscription in subscriptions.values()]
        nonexistent = _nonexistent(wanted, owned) if self.reads_nonexistent else set()
        index = PartitionIndex(wanted, nonexistent)
        claims = [
            Claim(
                member,
                subscription.topics,
                index.numbers(data.partitions),
                NO_GENERATION if data.generation is None else data.generation,
                max(subscription.generation, NO_GENERATION),
                subscription.rack,
                subscription.instance,
            )
            for (member, subscription), data in zip(subscriptions.items(), owned, strict=True)
        ]
        number = {member: place for place, member in enumerate(subscriptions)}
        visit = [number[member] for member in self.order.arrange(subscriptions)]
        return Question(index, wanted, claims, visit)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        question = self.ask(topics, subscriptions)
        return AssignmentResult(
            {
                claim.member: question.index.names(assigned)
                for claim, assigned in zip(question.claims, self.assign_indexed(question), strict=True)
            }
        )

    @abstractmethod
    def assign_indexed(self, question: Question) -> list[list[int]]:
        """The partition numbers of every member, in the order of the claims."""


def _nonexistent(topics: Mapping[str, TopicMetadata], owned: Iterable[MemberData]) -> set[tuple[str, int]]:
    return {
        (topic, partition)
        for data in owned
        for topic, partition in data.partitions
        if topic in topics and not 0 <= partition < topics[topic].partitions
    }
