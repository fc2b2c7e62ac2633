"""The assignors by name (`group.consumer.assignors`), and their handling of unsound targets.

A target is unsound if it holds a partition that does not exist, or one that another subscriber's target
holds as well. Kafka's `uniform` does not check for that. With equal subscriptions it throws; with unequal
ones it throws at the first kind and gives partitions of the second kind to two members. `UniformAssignor`
then assigns as if those partitions were gone from the targets (of several claims the last one counts, as in
Kafka's table of owners), unless ``bug_compat`` asks for Kafka's answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused, MapOrder, uuid_order
from groupstorm.assignors.server.group import MemberSpec, ServerGroup, Target, TopicDescription, is_same
from groupstorm.assignors.server.uniform import assign_heterogeneous, assign_homogeneous
from groupstorm.assignors.userdata.wire import java_key
from groupstorm.javahash import hash_order, uuid_hash
from groupstorm.problems import InputError
from groupstorm.turns import Turns, at_once


@dataclass(frozen=True)
class ServerAssignor(ABC):
    """A server-side assignor (KIP-848): the group coordinator in the broker runs it.

    There is no client side: no user data, no generations, no racks (KAFKA-16694 and KAFKA-17578 removed
    them). ``name`` travels in ConsumerGroupHeartbeat.
    """

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    name: ClassVar[str]

    def assign(
        self,
        topics: Mapping[str, TopicDescription],
        members: Mapping[str, MemberSpec],
    ) -> dict[str, Target]:
        """New targets, an entry for every member; members count in the order of ``members``.

        A new target lists topics and partitions as the record does. If a member's target does not change,
        its entry is the same mapping object. Raises `AssignmentRefused` if Kafka's assignor throws.
        """
        return at_once(self.assign_in_turns(topics, members, None))

    def assign_in_turns(
        self,
        topics: Mapping[str, TopicDescription],
        members: Mapping[str, MemberSpec],
        subscriptions_are_equal: bool | None,
    ) -> Turns[dict[str, Target]]:
        """Assign as `assign` does. The arguments must not change meanwhile.

        ``subscriptions_are_equal``: as the broker has counted them, which decides the algorithm; it counts
        regular expressions and the topics that they match apart. None: compare the topics of ``members``.
        """
        specs = list(members.values())
        group = ServerGroup(topics, list(members), specs, self.order, subscriptions_are_equal)
        targets = (yield from self._targets(group)) if specs else ()
        return dict(zip(members, targets, strict=True))

    @abstractmethod
    def _targets(self, group: ServerGroup) -> Turns[list[Target]]:
        """For one member at least."""


class UniformAssignor(ServerAssignor):
    """`uniform` of org.apache.kafka.coordinator.group.assignor; refuses only with ``bug_compat``."""

    name = "uniform"

    def _targets(self, group: ServerGroup) -> Turns[list[Target]]:
        build = assign_homogeneous if group.is_homogeneous else assign_heterogeneous
        is_safe = self.bug_compat or _is_sound(group)
        yield sum(map(len, group.subscribed))
        return (yield from build(group) if is_safe else _valid(build, group))


class RangeAssignor(ServerAssignor):
    """`range` of the same package. Unlike the consumers' `range` it knows no racks.

    Of each topic every subscriber gets one run of partitions: P // N, the first P % N of them one more.
    Static members come first, by instance, then the others by id. It reads no targets, so it never fails.
    """

    name = "range"

    def _targets(self, group: ServerGroup) -> Turns[list[Target]]:
        return assign_ranges(group)


_BUILT_IN: dict[str, type[ServerAssignor]] = {kind.name: kind for kind in (UniformAssignor, RangeAssignor)}


def names() -> list[str]:
    """The names, Kafka's default first."""
    return list(_BUILT_IN)


def get(name: str, *, order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> ServerAssignor:
    """The assignor of that name. Raises `InputError`, which lists the names."""
    if name not in _BUILT_IN:
        raise InputError(f"assignor {name!r}: expected one of {', '.join(_BUILT_IN)}")
    return _BUILT_IN[name](order, bug_compat)


def _claims(group: ServerGroup, targets: list[Target]) -> Iterator[tuple[int, UUID, int]]:
    """Member, topic and partition of the target partitions whose topics their members subscribe to."""
    for member, target in enumerate(targets):
        for topic in target.keys() & group.subscribed[member]:
            for partition in target[topic]:
                yield member, topic, partition


def _is_sound(group: ServerGroup) -> bool:
    """Whether every claimed partition exists and is claimed once."""
    claimed: dict[UUID, list[int]] = {}
    for spec, subscribed in zip(group.specs, group.subscribed, strict=True):
        for topic, partitions in spec.target.items():
            if topic in subscribed:
                claimed.setdefault(topic, []).extend(partitions)
    return all(
        len(set(partitions)) == len(partitions)
        and min(partitions, default=0) >= 0
        and max(partitions, default=-1) < group.partitions[topic]
        for topic, partitions in claimed.items()
    )


def _valid(build: Callable[[ServerGroup], Turns[list[Target]]], group: ServerGroup) -> Turns[list[Target]]:
    """Kafka's answer to unsound targets if it is valid, else its answer to corrected targets."""
    try:
        targets = yield from build(group)
        if _is_valid(group, targets):
            return targets
    except AssignmentRefused:
        pass  # the same as for an invalid answer
    mended = yield from build(_mended(group))
    return [
        spec.target if is_same(spec.target, target) else target
        for spec, target in zip(group.specs, mended, strict=True)
    ]


def _is_valid(group: ServerGroup, targets: list[Target]) -> bool:
    """Whether every subscribed partition is given once, and no other."""
    wanted = {
        (topic, p) for topic in frozenset().union(*group.subscribed) for p in range(group.partitions[topic])
    }
    given = [(topic, partition) for _, topic, partition in _claims(group, targets)]
    listed = sum(len(partitions) for target in targets for partitions in target.values())
    return len(given) == len(wanted) == listed and set(given) == wanted


def _mended(group: ServerGroup) -> ServerGroup:
    """The group without claims on nonexistent partitions, and with the last of several claims on one."""
    claimant = {
        (topic, partition): member
        for member, topic, partition in _claims(group, [s.target for s in group.specs])
    }
    mended = []
    for member, spec in enumerate(group.specs):
        target = {
            topic: [
                partition
                for partition in partitions
                if partition in range(group.partitions[topic]) and claimant[topic, partition] == member
            ]
            for topic, partitions in spec.target.items()
            if topic in group.subscribed[member]
        }
        mended.append(spec._replace(target={topic: kept for topic, kept in target.items() if kept}))
    return replace(group, specs=mended)


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
