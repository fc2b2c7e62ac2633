"""Whether racks count, and which members are near a partition (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from groupstorm.assignors.consumer.indexed import Question


def use_racks(member_racks: Iterable[str], partition_racks: Collection[frozenset[str]]) -> bool:
    """Whether racks make a difference (AbstractPartitionAssignor and AbstractStickyAssignor).

    They make none if no member has a rack, if members and replicas have no rack in common, or if every
    partition has replicas in all the racks that any partition has.
    """
    members = frozenset(member_racks)
    replicas = frozenset().union(*partition_racks)
    if members.isdisjoint(replicas):
        return False
    return any(racks != replicas for racks in partition_racks)


def racks_that_count(question: Question) -> Racks | None:
    """The racks of a sticky assignment; None if they make no difference."""
    members = [claim.rack or None for claim in question.claims]
    if not any(members):
        return None
    unknown: frozenset[str] = frozenset()
    partitions = [unknown] * question.index.size
    existing: list[frozenset[str]] = []
    for number, topic in enumerate(question.index.topics):
        real = question.index.real(number)
        replicas = question.topics[topic].racks or (unknown,) * len(real)
        partitions[real.start : real.stop] = replicas
        existing += replicas
    if use_racks((rack for rack in members if rack), existing):
        return Racks(members, partitions)
    return None


class Racks:
    """The rack of each member, None for none, and the racks of each partition number."""

    def __init__(self, members: Sequence[str | None], partitions: Sequence[frozenset[str]]) -> None:
        self.members = members
        self.partitions = partitions
        self._members_in: dict[str, int] = {}
        for rack in members:
            if rack is not None:
                self._members_in[rack] = self._members_in.get(rack, 0) + 1

    def mismatch(self, member: int, partition: int) -> bool:
        """Whether the member has a rack in which the partition has no replica."""
        rack = self.members[member]
        return rack is not None and rack not in self.partitions[partition]

    def members_near(self, partition: int) -> int:
        return sum(self._members_in.get(rack, 0) for rack in self.partitions[partition])

    def next_near(self, partition: int, members: Sequence[int], start: int) -> int:
        """The place in ``members`` of the next member near the partition, round from ``start``; -1: none."""
        racks = self.partitions[partition]
        if not racks:
            return -1
        for step in range(len(members)):
            place = (start + step) % len(members)
            if self.members[members[place]] in racks:
                return place
        return -1
