"""Kafka's RangeAssignor and RoundRobinAssignor: the answer does not depend on the last one.

Range cuts each topic into contiguous ranges, one for each member. With racks (KIP-881) a first pass gives
members partitions in their rack, without a change to the sizes of the ranges. Topics with equal subscribers
and equally many partitions stay co-partitioned even then (KAFKA-14891).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.indexed import IndexedAssignor, PartitionIndex, Question
from groupstorm.assignors.consumer.racks import use_racks
from groupstorm.assignors.contract import AssignmentRefused, TopicMetadata
from groupstorm.assignors.userdata.wire import java_keys


class RangeAssignor(IndexedAssignor):
    """Per topic: partitions in order, subscribers in order; the first subscribers get one partition more.

    Topics come in the order of Java's hash table, and sorted after a pass within racks.
    """

    name: ClassVar[str] = "range"

    def assign_indexed(self, question: Question) -> list[list[int]]:
        index, topics, claims = question.index, question.topics, question.claims
        subscribers = _subscribers(topics, claims)
        assigned: list[list[int]] = [[] for _ in claims]
        if any(claim.rack for claim in claims):
            states = [
                _TopicState(
                    index.real(index.number_of_topic[topic]), topics[topic], members, claims, assigned
                )
                for topic, members in subscribers.items()
            ]
            if any(state.racks_matter for state in states):
                _assign_within_racks(states)
                for state in states:
                    state.assign_ranges()
                return [sorted(partitions) for partitions in assigned]
        _assign_ranges(index, subscribers, assigned)
        return assigned


class RoundRobinAssignor(IndexedAssignor):
    """All subscribed topics sorted, partitions ascending, one to each member in turn.

    The turn goes on from topic to topic, and skips members that do not subscribe. Racks play no part.
    """

    name: ClassVar[str] = "roundrobin"

    def assign_indexed(self, question: Question) -> list[list[int]]:
        index, claims = question.index, question.claims
        if not claims and self.bug_compat:
            raise AssignmentRefused(
                "IllegalArgumentException", "CircularIterator can only be used on non-empty lists"
            )
        place_of = {member: place for place, member in enumerate(_in_order(claims))}
        subscribers = _subscribers(index.topics, claims)
        assigned: list[list[int]] = [[] for _ in claims]
        turn = 0
        # with the same subscribers the turn goes on from topic to topic
        for members, alike in groupby(index.topics, key=subscribers.__getitem__):
            numbers = [index.number_of_topic[topic] for topic in alike]
            partitions = range(index.real(numbers[0]).start, index.real(numbers[-1]).stop)
            start = next((at for at, member in enumerate(members) if place_of[member] >= turn), 0)
            in_turn = members[start:] + members[:start]
            for nth, member in enumerate(in_turn[: len(partitions)]):
                assigned[member] += partitions[nth :: len(members)]
            turn = place_of[in_turn[(len(partitions) - 1) % len(members)]] + 1
        return assigned


def _in_order(claims: Sequence[Claim]) -> list[int]:
    """Static members by instance, so that they keep their places (KIP-345), then dynamic ones by id."""
    keys = java_keys([claim.member if claim.instance is None else claim.instance for claim in claims])
    by_text = sorted(range(len(keys)), key=keys.__getitem__)
    return sorted(by_text, key=lambda member: claims[member].instance is None)


def _subscribers(topics: Iterable[str], claims: Sequence[Claim]) -> dict[str, list[int]]:
    """Per topic its subscribers in order; topics with the same subscribers share one list."""
    kind_of: dict[tuple[str, ...], int] = {}
    kinds = [kind_of.setdefault(claim.topics, len(kind_of)) for claim in claims]
    kinds_of_topic: dict[str, list[int]] = {topic: [] for topic in topics}
    for listed, kind in kind_of.items():
        for topic in dict.fromkeys(listed):
            if topic in kinds_of_topic:
                kinds_of_topic[topic].append(kind)
    ordered = _in_order(claims)
    members: dict[tuple[int, ...], list[int]] = {}
    subscribers: dict[str, list[int]] = {}
    for topic, subscribed in kinds_of_topic.items():
        key = tuple(subscribed)
        if key not in members:
            chosen = frozenset(key)
            members[key] = [member for member in ordered if kinds[member] in chosen]
        subscribers[topic] = members[key]
    return subscribers


def _assign_ranges(
    index: PartitionIndex, subscribers: Mapping[str, list[int]], assigned: list[list[int]]
) -> None:
    """Without racks: topics of one size with the same subscribers are cut at the same places."""
    topics = [
        (index.counts[number], members, index.first[number])
        for topic, members in subscribers.items()
        for number in [index.number_of_topic[topic]]
    ]
    for (count, members), alike in groupby(topics, key=lambda topic: topic[:2]):
        first = [topic[2] for topic in alike]
        quota, extras = divmod(count, len(members))
        end = 0
        for place, member in enumerate(members):
            start, end = end, end + quota + (place < extras)
            if end == start:
                break
            assigned[member] += [at + partition for at in first for partition in range(start, end)]


class _TopicState:
    """The free partitions of one topic, and how many more each subscriber may get."""

    def __init__(
        self,
        real: range,
        metadata: TopicMetadata,
        subscribers: list[int],
        claims: Sequence[Claim],
        assigned: Sequence[list[int]],
    ) -> None:
        self.partitions = metadata.partitions
        self.subscribers = subscribers
        self.member_racks = {member: rack for member in subscribers if (rack := claims[member].rack)}
        self.partition_racks = metadata.racks or (frozenset(),) * metadata.partitions
        self.racks_matter = use_racks(self.member_racks.values(), self.partition_racks)
        self._real = real
        self._assigned = assigned
        self._left = dict.fromkeys(range(metadata.partitions))
        self._count = dict.fromkeys(subscribers, 0)
        self._quota, self._extras = divmod(metadata.partitions, len(subscribers))

    def may_get(self, member: int) -> int:
        """The quota, and one more while extras are left, minus the partitions that it has."""
        return max(0, self._quota + (self._extras > 0) - self._count[member])

    def in_rack(self, member: int, partition: int) -> bool:
        """Whether the member is in a rack of the partition; a member without a rack is in all of them."""
        return member not in self.member_racks or self.member_racks[member] in self.partition_racks[partition]

    def give(self, member: int, partitions: Sequence[int]) -> None:
        self._assigned[member].extend([self._real[partition] for partition in partitions])
        self._count[member] += len(partitions)
        if self._count[member] > self._quota:
            self._extras -= 1
        for partition in partitions:
            del self._left[partition]

    def assign_ranges(self, *, within_racks: bool = False) -> None:
        """Give every subscriber its share in turn, from the front of the free partitions (in its rack)."""
        for member in self.subscribers:
            free = (p for p in self._left if not within_racks or self.in_rack(member, p))
            mine = list(islice(free, self.may_get(member)))
            if mine:
                self.give(member, mine)


def _assign_within_racks(states: Iterable[_TopicState]) -> None:
    """The pass within racks: co-partitioned topics together, other topics if racks count for them."""
    alike: defaultdict[tuple[frozenset[tuple[int, str | None]], int], list[_TopicState]] = defaultdict(list)
    for state in states:
        members = frozenset((member, state.member_racks.get(member)) for member in state.subscribers)
        known_racks = state.partitions if state.member_racks else 0
        alike[members, known_racks].append(state)
    for (_, partitions), group in alike.items():
        if len(group) > 1:
            _assign_co_partitioned(group, partitions)
        elif group[0].racks_matter:
            group[0].assign_ranges(within_racks=True)


def _assign_co_partitioned(group: Sequence[_TopicState], partitions: int) -> None:
    """Give partition i of all topics to the first member in the racks of all of them that has room."""
    remaining = list(group[0].subscribers)
    for partition in range(partitions):
        for member in remaining:
            if all(state.in_rack(member, partition) and state.may_get(member) > 0 for state in group):
                break
        else:
            continue
        for state in group:
            state.give(member, [partition])
        if not any(state.may_get(member) > 0 for state in group):
            remaining.remove(member)
