"""The broker's `range` (org.apache.kafka.coordinator.group.assignor.RangeAssignor).

Of each topic every subscriber gets one run of partitions: P // N, the first P % N of them one more.
Static members come first, by instance, then the others by id. It reads no targets, so it never
fails. Unlike the consumers' `range` it knows no racks.
"""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.contract import MapOrder, uuid_order
from groupstorm.assignors.server.group import ServerGroup, Target, is_same
from groupstorm.assignors.userdata.strings import java_key
from groupstorm.javahash import hash_order, uuid_hash
from groupstorm.turns import Turns


def assign_ranges(group: ServerGroup) -> Turns[list[Target]]:
    """New targets, one for each member of a group that has members."""
    members = sorted(range(len(group.ids)), key=lambda member: _rank(group, member))
    ranges: list[dict[UUID, range]] = [{} for _ in members]
    for topic, sharing in _subscribers(group, members).items():
        floor, extras = divmod(group.partitions[topic], len(sharing))
        start = 0
        for place, member in enumerate(sharing):
            end = start + floor + (place < extras)
            if start < end:
                ranges[member][topic] = range(start, end)
            start = end
        yield len(sharing)
    first = _filling(group, members[0]) if group.is_homogeneous else None
    targets = []
    for member, (spec, given) in enumerate(zip(group.specs, ranges, strict=True)):
        is_kept = is_same(spec.target, given)
        listing = None if is_kept else _listed(group, given, *(first or _filling(group, member)))
        targets.append(spec.target if listing is None else listing)
        yield len(given)
    return targets


def _filling(group: ServerGroup, member: int) -> tuple[list[UUID], int]:
    """The topics that Kafka puts into a member's HashMap, in that order, and its initial capacity."""
    topics = group.subscribed_in_order(member)
    expected = len(topics if group.is_homogeneous else set(group.specs[member].topics))
    return topics, int(expected / 0.75 + 1)


def _listed(group: ServerGroup, given: dict[UUID, range], topics: list[UUID], capacity: int) -> Target:
    if group.order is MapOrder.SORTED:
        listed = sorted(given, key=uuid_order)
    else:
        chosen = (topic for topic in topics if topic in given)
        listed = hash_order(chosen, uuid_hash, initial_capacity=capacity)
    return {topic: list(given[topic]) for topic in listed}


def _subscribers(group: ServerGroup, members: list[int]) -> dict[UUID, list[int]]:
    """The members that share each topic; the first one's topics are everybody's if they count as equal."""
    if group.is_homogeneous:
        return dict.fromkeys(group.subscribed[members[0]], members)
    subscribers: dict[UUID, list[int]] = {}
    for member in members:
        for topic in group.subscribed[member]:
            subscribers.setdefault(topic, []).append(member)
    return subscribers


def _rank(group: ServerGroup, member: int) -> tuple[bool, bytes]:
    instance = group.specs[member].instance
    return instance is None, java_key(group.ids[member] if instance is None else instance)
