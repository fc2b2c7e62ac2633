"""The best balance and the fewest moves of a small group, by brute force.

The assigned things are units: partitions or, if partition n of all topics goes to one member (KIP-315),
partition numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupstorm.assignors.check.history import Assigned
from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.promises import CoPartitioning
from groupstorm.assignors.userdata import Subscription, TopicPartition

#: Brute force takes milliseconds up to here: 11 units to 4 members have 364 different loads.
MAX_MEMBERS = 4
MAX_UNITS = 11

#: A partition, or the number of one under every topic's name at once.
Unit = TopicPartition
_ALL_TOPICS = ""


class Units(NamedTuple):
    """Per unit its possible members and its owner before; per member its units now."""

    takers: Mapping[Unit, tuple[str, ...]]
    before: Mapping[Unit, str]
    after: Mapping[str, frozenset[Unit]]

    @property
    def loads(self) -> dict[str, int]:
        return {member: len(units) for member, units in self.after.items()}

    @property
    def moved(self) -> int:
        """Units whose member before has them no longer."""
        return sum(unit not in self.after[owner] for unit, owner in self.before.items())

    @property
    def is_small(self) -> bool:
        return len(self.after) <= MAX_MEMBERS and len(self.takers) <= MAX_UNITS


def units_of(
    topics: Mapping[str, TopicMetadata],
    subscriptions: Mapping[str, Subscription],
    before: Mapping[TopicPartition, str],
    after: Assigned,
    co_partitioned: CoPartitioning | None,
) -> Units:
    """``before`` may name members and partitions that are gone; these do not count."""
    whole = co_partitioned is CoPartitioning.ANY_SIZES

    def unit(partition: TopicPartition) -> Unit:
        return Unit(_ALL_TOPICS, partition.partition) if whole else partition

    takers: dict[Unit, tuple[str, ...]] = {}
    sizes = {
        topic: topics[topic].partitions
        for subscription in subscriptions.values()
        for topic in subscription.topics
        if topic in topics
    }
    for topic, size in sizes.items():
        members = tuple(name for name, subscription in subscriptions.items() if topic in subscription.topics)
        for number in range(min(sizes.values()) if whole else size):
            takers[unit(TopicPartition(topic, number))] = members
    return Units(
        takers,
        {
            unit(partition): owner
            for partition, owner in before.items()
            if unit(partition) in takers and owner in takers[unit(partition)]
        },
        {name: frozenset(map(unit, after.get(name, ()))) & takers.keys() for name in subscriptions},
    )


class Optimum(NamedTuple):
    """The best-balanced loads, the highest first, and the fewest moves to them."""

    loads: tuple[int, ...]
    moves: int


def optimum(units: Units) -> Optimum:
    """Try every way to give every unit to one of its takers."""
    members = list(units.after)
    place = {member: number for number, member in enumerate(members)}
    most_kept: dict[tuple[int, ...], int] = {(0,) * len(members): 0}
    for unit, takers in units.takers.items():
        further: dict[tuple[int, ...], int] = {}
        for loads, kept in most_kept.items():
            for taker in takers:
                number = place[taker]
                more = (*loads[:number], loads[number] + 1, *loads[number + 1 :])
                stays = kept + (units.before.get(unit) == taker)
                further[more] = max(further.get(more, 0), stays)
        most_kept = further
    best = min(most_kept, key=lambda loads: (_highest_first(loads), -most_kept[loads]))
    return Optimum(_highest_first(best), len(units.before) - most_kept[best])


def _highest_first(loads: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(loads, reverse=True))


def fewest_moves_when_equal(units: Units) -> int:
    """The fewest moves to a balance of one with equal subscriptions, in a group of any size.

    Every member keeps its units up to the smaller load. Of the members that had more, as many keep one more
    as may have the higher load.
    """
    owned = dict.fromkeys(units.after, 0)
    for owner in units.before.values():
        owned[owner] += 1
    least, extras = divmod(len(units.takers), len(owned))
    kept = sum(min(count, least) for count in owned.values())
    kept += min(sum(count > least for count in owned.values()), extras)
    return len(units.before) - kept
