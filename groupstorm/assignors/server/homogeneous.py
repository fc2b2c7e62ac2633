"""Uniform for equal subscriptions (UniformHomogeneousAssignmentBuilder).

* Of P partitions and N members each member gets P // N, and P % N members get one more.
* Members are walked in order. Each keeps its partitions up to its quota, which includes one more as long as
  some of those are left; the others become unassigned.
* A member that ends below a quota with one more leaves that one to others, unless only as many members are
  left as have to take one (KAFKA-18688). So owners of one more keep it, and on an empty start the last
  members get them.
* Unassigned partitions, first those without a previous owner, fill up the members in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.server.group import Drafts, ServerGroup, Target

Partition = tuple[UUID, int]


def assign_homogeneous(group: ServerGroup) -> list[Target]:
    """New targets; `AssignmentRefused` if a target holds a nonexistent partition or two hold the same."""
    if not group.subscribed[0]:
        return group.emptied()
    return _Homogeneous(group).build()


class _Homogeneous:
    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        self._subscribed = group.subscribed[0]
        self._drafts = Drafts(group)
        self._unassigned = self._never_assigned()
        #: Members below their quota, and how many partitions each still gets.
        self._unfilled: list[tuple[int, int]] = []

    def _never_assigned(self) -> list[Partition]:
        assigned: dict[UUID, set[int]] = {topic: set() for topic in self._subscribed}
        for spec in self._group.specs:
            for topic, partitions in spec.target.items():
                if topic in assigned:
                    assigned[topic].update(partitions)
        return [
            (topic, partition)
            for topic in self._group.subscribed_as_set(0)
            for partition in range(self._group.partitions[topic])
            if partition not in assigned[topic]
        ]

    def build(self) -> list[Target]:
        members = len(self._group.ids)
        total = sum(self._group.partitions[topic] for topic in self._subscribed)
        floor, extras = divmod(total, members)
        for member in range(members):
            with_extra = extras > 0
            quota = self._keep(member, floor + with_extra)
            if quota > 0 and with_extra and members - member > extras:
                with_extra = False
                quota -= 1
            if quota > 0:
                self._unfilled.append((member, quota))
            extras -= with_extra
        self._fill()
        return self._drafts.targets()

    def _keep(self, member: int, quota: int) -> int:
        """Take from a member the partitions beyond its quota; returns the rest of its quota."""
        target = self._group.specs[member].target
        mine = sum(len(partitions) for topic, partitions in target.items() if topic in self._subscribed)
        if mine > quota:
            self._unassigned.extend(self._surplus(member, quota))
        for topic in target:
            if topic not in self._subscribed:
                self._drafts[member].remove_topic(topic)
        return max(quota - mine, 0)

    def _surplus(self, member: int, quota: int) -> Iterator[Partition]:
        """Remove a member's partitions beyond its quota, in the order of its tables."""
        for topic, partitions in self._group.target(member).items():
            if topic in self._subscribed:
                for partition in partitions[quota:]:
                    self._drafts[member].remove(topic, partition)
                    yield topic, partition
                quota = max(quota - len(partitions), 0)

    def _fill(self) -> None:
        rest = iter(self._unassigned)
        for member, quota in self._unfilled:
            for topic, partition in islice(rest, quota):
                self._drafts[member].add(topic, partition)
        if next(rest, None) is not None:
            raise AssignmentRefused("PartitionAssignorException", "Partitions were left unassigned")
