"""Partitions as dense integers, in the order of topic and partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, groupby

from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.userdata import TopicPartition, java_sorted


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
