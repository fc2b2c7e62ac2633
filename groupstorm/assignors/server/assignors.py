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

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server.group import MemberSpec, ServerGroup, Target, TopicDescription, is_same
from groupstorm.assignors.server.range import assign_ranges
from groupstorm.assignors.server.uniform import assign_heterogeneous, assign_homogeneous
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
        *,
        subscriptions_are_equal: bool | None = None,
    ) -> dict[str, Target]:
        """New targets, an entry for every member; members count in the order of ``members``.

        ``subscriptions_are_equal``: as the broker has counted them, which decides the algorithm; it counts
        regular expressions and the topics that they match apart. None: compare the topics of ``members``.

        A new target lists topics and partitions as the record does. If a member's target does not change,
        its entry is the same mapping object. Raises `AssignmentRefused` if Kafka's assignor throws.
        """
        return at_once(self.assign_in_turns(topics, members, subscriptions_are_equal))

    def assign_in_turns(
        self,
        topics: Mapping[str, TopicDescription],
        members: Mapping[str, MemberSpec],
        subscriptions_are_equal: bool | None,
    ) -> Turns[dict[str, Target]]:
        """Assign as `assign` does. The arguments must not change meanwhile."""
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
    """`range` of the same package, which shares its name with the consumers'. No input makes it fail."""

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
