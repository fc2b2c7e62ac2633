"""When racks decide, and who is in whose (KIP-881, AbstractPartitionAssignor and AbstractStickyAssignor)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def use_racks(member_racks: Iterable[str], partition_racks: Collection[frozenset[str]]) -> bool:
    """Whether racks make a difference at all.

    Not if no member tells its rack, if members and replicas have no rack in common, or if every
    partition has replicas in all the racks that any partition has.
    """
    members = frozenset(member_racks)
    replicas = frozenset().union(*partition_racks)
    if members.isdisjoint(replicas):
        return False
    return any(racks != replicas for racks in partition_racks)


class Racks:
    """Members and replicas by rack, for a sticky assignment in which racks make a difference.

    ``members``: rack per member, None for those that tell none; ``partitions``: racks per partition
    number, nothing for partitions that do not exist.
    """

    def __init__(self, members: Sequence[str | None], partitions: Sequence[frozenset[str]]) -> None:
        self.members = members
        self.partitions = partitions
        self._members_in: dict[str, int] = {}
        for rack in members:
            if rack is not None:
                self._members_in[rack] = self._members_in.get(rack, 0) + 1

    def mismatch(self, member: int, partition: int) -> bool:
        """The member tells its rack, and no replica of the partition is there."""
        rack = self.members[member]
        return rack is not None and rack not in self.partitions[partition]

    def members_near(self, partition: int) -> int:
        """How many members are in a rack of the partition's replicas."""
        return sum(self._members_in.get(rack, 0) for rack in self.partitions[partition])

    def next_near(self, partition: int, members: Sequence[int], start: int) -> int:
        """The place in ``members`` of the next one near the partition, round from ``start``; -1: none."""
        racks = self.partitions[partition]
        if not racks:
            return -1
        for step in range(len(members)):
            place = (start + step) % len(members)
            if self.members[members[place]] in racks:
                return place
        return -1
