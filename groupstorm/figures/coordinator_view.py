"""Ownership as the coordinator can know it, for a trace that has no rows of members.

Real clients at `groupstorm serve` write no rows. So a member counts as the owner of the partitions that its
SyncGroup was answered with, from the answer on. The ownership ends with an answer that no longer names
the partition, when the member is removed, when a static member comes back under a new id (KIP-345: its
old process is gone) and, under an eager protocol, when it joins again: an eager member gives up everything
before it joins (KIP-429).

In a consumer group (KIP-848) a member owns what the coordinator has given it, and what it has to give up
until it says that it has done so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Names of protocols whose members keep their partitions while they join: all that say so in their
#: name (CooperativeStickyAssignor and its kin), and Kafka Streams' (cooperative since 2.4, KIP-429).
COOPERATIVE_MARK = "cooperative"
COOPERATIVE_NAMES = ("stream",)


def is_cooperative(protocol: str | None) -> bool:
    """Whether members of a group with this protocol keep their partitions while they join again."""
    return protocol is not None and (COOPERATIVE_MARK in protocol or protocol in COOPERATIVE_NAMES)


class CoordinatorView:
    """Names members and remembers what each was assigned.

    Real clients often share one client id, so a member goes by its instance id or else its member id.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._assigned: dict[str, tuple[str, ...]] = {}
        self._cooperative = False

    def protocol_chosen(self, protocol: str | None) -> None:
        self._cooperative = is_cooperative(protocol)

    def name(self, member_id: str) -> str:
        return self._names.get(member_id, member_id)

    def learn(self, member_id: str, instance: str | None) -> None:
        if instance is not None:
            self._names[member_id] = instance

    def joins(self, member_id: str) -> Sequence[str]:
        """What the member owns no more because it joins again."""
        return () if self._cooperative else self.drops(member_id)

    def drops(self, member_id: str) -> Sequence[str]:
        """What the member owns no more because it is gone."""
        return self._assigned.pop(self.name(member_id), ())

    def answered(self, member_id: str, partitions: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """A new assignment: the partitions that the member loses, and those that it gains."""
        name = self.name(member_id)
        before = self._assigned.get(name, ())
        self._assigned[name] = tuple(partitions)
        kept, owned = set(partitions), set(before)
        return [p for p in before if p not in kept], [p for p in partitions if p not in owned]

    @property
    def assigned(self) -> Mapping[str, tuple[str, ...]]:
        """Member -> its last assignment."""
        return self._assigned
