"""Whether racks count, and which members are near a partition (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


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


class Racks:
    """Members and replicas by rack, for a sticky assignment in which racks count.

    ``members``: the rack of each member, None for none. ``partitions``: the racks of each partition number,
    no racks for a nonexistent partition.
    """

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
        """How many members are in a rack of the partition's replicas."""
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
