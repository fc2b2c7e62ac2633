"""Partitions as dense integers, and assignors that work on them: their question and their common part.

A leader (`groupstorm.assignors.leader`) reads partitions as bytes and writes them as bytes, so names in
between would be most of its work. It calls `IndexedAssignor.assign_indexed`. `IndexedAssignor.assign` gives
the same answer by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, groupby
from typing import ClassVar, NamedTuple

from groupstorm.assignors.consumer.claims import Claim
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
    java_sorted,
)
from groupstorm.assignors.userdata.sticky import MemberData
from groupstorm.assignors.userdata.wire import java_keys


class PartitionIndex:
    """Numbers every partition: 0, 1, ... by topic (as Java sorts strings), then by partition.

    ``nonexistent`` are partitions that members claim to own but that do not exist, because their topic was
    created anew with fewer partitions. They get numbers, too, for a caller that wants Kafka's answer to
    them. Their topics have to exist.
    """

    def __init__(
        self, topics: Mapping[str, TopicMetadata], nonexistent: Iterable[tuple[str, int]] = ()
    ) -> None:
        self.topics = java_sorted(topics)
        self.number_of_topic = {topic: number for number, topic in enumerate(self.topics)}
        self.counts = [topics[topic].partitions for topic in self.topics]
        self.total = sum(self.counts)
        self.first: list[int] = []
        self.nonexistent: dict[tuple[str, int], int] = {}
        self._spans: list[range] = []
        self._nonexistent_of_topic: list[list[int]] = []
        apart: dict[str, list[int]] = {}
        for topic, partition in sorted(set(nonexistent)):
            apart.setdefault(topic, []).append(partition)
        self.size = 0
        for topic, count in zip(self.topics, self.counts, strict=True):
            outside = apart.get(topic, [])
            below = sum(partition < 0 for partition in outside)
            start, first = self.size, self.size + below
            self.first.append(first)
            self._nonexistent_of_topic.append(outside)
            self.size += count + len(outside)
            self._spans.append(range(start, self.size))
            numbers = [*range(start, first), *range(first + count, self.size)]
            self.nonexistent.update(
                ((topic, partition), number) for partition, number in zip(outside, numbers, strict=True)
            )

    @cached_property
    def topic_of(self) -> list[int]:
        topics: list[int] = []
        for topic, span in enumerate(self._spans):
            topics += [topic] * len(span)
        return topics

    @cached_property
    def partition_of(self) -> list[int]:
        # topics share the number objects: a million partitions need a thousand of them
        numbers = list(range(max(self.counts, default=0)))
        partitions: list[int] = []
        for count, outside in zip(self.counts, self._nonexistent_of_topic, strict=True):
            partitions += [partition for partition in outside if partition < 0]
            partitions += numbers[:count]
            partitions += [partition for partition in outside if partition >= 0]
        return partitions

    def ids(self, topic: str, partitions: Sequence[int]) -> list[int]:
        """The numbers of these partitions, without those that have none."""
        number = self.number_of_topic.get(topic)
        if number is None:
            return []
        first, count = self.first[number], self.counts[number]
        if partitions and min(partitions) >= 0 and max(partitions) < count:
            return [first + partition for partition in partitions]
        known = (
            first + partition if 0 <= partition < count else self.nonexistent.get((topic, partition))
            for partition in partitions
        )
        return [identity for identity in known if identity is not None]

    def numbers(self, partitions: Iterable[TopicPartition]) -> list[int]:
        numbers: list[int] = []
        for topic, group in groupby(partitions, key=lambda tp: tp[0]):
            numbers.extend(self.ids(topic, [tp[1] for tp in group]))
        return numbers

    def real(self, topic: int) -> range:
        return range(self.first[topic], self.first[topic] + self.counts[topic])

    def span(self, topic: int) -> range:
        """`real`, the nonexistent ones included."""
        return self._spans[topic]

    def name(self, identity: int) -> TopicPartition:
        return TopicPartition(self.topics[self.topic_of[identity]], self.partition_of[identity])

    def names(self, identities: Iterable[int]) -> list[TopicPartition]:
        return [self.name(identity) for identity in identities]

    def left(self, assigned: Iterable[Sequence[int]]) -> list[int]:
        """The numbers in none of these lists, by partition and topic: t0-0, t1-0, ..., t0-1, t1-1, ..."""
        free = bytearray(b"\1") * self.size
        for identities in assigned:
            for identity in identities:
                free[identity] = 0
        return sorted(compress(range(self.size), free), key=self.kept_key)

    def in_kept_order(self, identities: Iterable[int]) -> list[int]:
        """Sorted by `kept_key`, for a single use: no key is computed for all partitions."""
        by_topic = sorted(identities)
        if len(self.topics) > 1:
            by_topic.sort(key=self.partition_of.__getitem__)
        return by_topic

    @cached_property
    def kept_key(self) -> Callable[[int], int] | None:
        """A sort key by (partition, topic), None if the numbers are in that order.

        A member that gives partitions up keeps some of every topic (KAFKA-16277).
        """
        topics = len(self.topics)
        if topics == 1:
            return None
        pairs = zip(self.partition_of, self.topic_of, strict=True)
        return [partition * topics + topic for partition, topic in pairs].__getitem__


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
