"""Helpers of the tests of the design documents: cases as dicts, groups of equal subscriptions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from groupstorm.assignors.cases import answers
from groupstorm.assignors.userdata import TopicPartition
from tests.assignors.groups import MEMBER_IDS, TOPICS


def assign_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a case, as `groupstorm assign` would print it."""
    (text,) = answers([json.dumps({"id": 1, **case}).encode()])
    return json.loads(text)


def numbers(partitions: Iterable[Sequence[Any]]) -> list[int]:
    return [partition for _, partition in partitions]


def owners(partitions: Mapping[str, Iterable[TopicPartition]]) -> Counter[TopicPartition]:
    """Count the owners of each partition."""
    return Counter(tp for mine in partitions.values() for tp in mine)


class EqualGroup(NamedTuple):
    """All members subscribe to all topics; ``owned``: what they had, none with two."""

    topics: dict[str, int]
    owned: dict[str, list[TopicPartition]]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, p) for topic, count in self.topics.items() for p in range(count)]


@st.composite
def _equal_groups(draw: st.DrawFn) -> EqualGroup:
    topics = draw(TOPICS)
    members = draw(st.lists(MEMBER_IDS, min_size=1, max_size=7, unique=True))
    group = EqualGroup(topics, {member: [] for member in members})
    # Few owners make members that have far too much, many make members that have about enough.
    owning = st.none() | st.sampled_from(members[: draw(st.integers(1, len(members)))])
    for partition in draw(st.permutations(group.partitions)):
        owner = draw(owning)
        if owner is not None:
            group.owned[owner].append(partition)
    return group


EQUAL_GROUPS = _equal_groups()


def least_moves(group: EqualGroup) -> int:
    """Return the least moves to a balanced assignment: who owns too much gives up what is above the floor,
    but for the extras."""
    floor, extras = divmod(len(group.partitions), len(group.owned))
    sizes = [len(mine) for mine in group.owned.values()]
    stay = sum(min(size, floor) for size in sizes) + min(extras, sum(size > floor for size in sizes))
    return sum(sizes) - stay


def moves(group: EqualGroup, assigned: Mapping[str, Iterable[TopicPartition]]) -> int:
    """Partitions that had an owner and have another one, or none, now."""
    return sum(len(set(mine).difference(assigned[member])) for member, mine in group.owned.items())
