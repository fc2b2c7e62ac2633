"""The positions where owners begin, by their rows and by the commits that the coordinator has accepted.

A new owner begins at the committed offset. The group's offset of a partition is that of the last commit, as
the row in which an owner gives the partition up names it, or that of a later commit that was seen. Background
commits are not all seen: as long as another process owns the partition, only a bound is known.

Without a committed offset auto.offset.reset decides; so it does for a partition that was deleted and created
again. A step that deletes topics is the only one that lets the group skip records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupstorm.storms.checks.verdicts import COMMITS_KEPT, NOTHING_SKIPPED, Verdicts
from groupstorm.trace.events import member as events

GivenUp = events.PartitionsRevoked | events.PartitionsLost | events.MemberCrashed


class CommittedPositions:
    """Follows the offsets of the group. ``owners`` is shared with `OwnedTime`, which reads a row after this:
    partition -> its owners before the row."""

    def __init__(self, verdicts: Verdicts, owners: Mapping[str, set[str]]) -> None:
        self._verdicts = verdicts
        self._owners = owners
        #: The group's offsets, as far as they are known: each is at least this one.
        self._committed: dict[str, int] = {}
        #: How far owners had come when they stopped.
        self._reached: dict[str, int] = {}
        self._deleted: set[str] = set()
        #: Two processes own them at once, which other checks tell: the offset is that of whoever was last.
        self._shared: set[str] = set()

    def deleted(self, partitions: Iterable[str]) -> None:
        """The group's offsets of these partitions were deleted, and commits of them are ignored."""
        for partition in partitions:
            self._committed.pop(partition, None)
            self._reached.pop(partition, None)
            self._shared.discard(partition)
            self._deleted.add(partition)

    def created(self, partitions: Iterable[str]) -> None:
        self._deleted.difference_update(partitions)

    def accepted(self, positions: Mapping[str, int]) -> None:
        """The coordinator has accepted a commit."""
        for partition in positions.keys() - self._deleted:
            self._committed[partition] = positions[partition]

    def taken(self, time_us: int, event: events.PartitionsAssigned) -> None:
        for partition, position in zip(event.partitions, event.positions, strict=False):
            known, owners = self._committed.get(partition, -1), self._owners.get(partition, ())
            begins = f"{event.member} begins {partition} at {position}"
            if owners and event.member not in owners:
                self._shared.add(partition)
            if known < 0 or event.member in owners or partition in self._shared:
                continue
            if position < known:
                self._violated(COMMITS_KEPT, time_us, begins, f"but the commit of {known} had been accepted")
            elif position > known:
                beyond = f"{position - known} records beyond the committed {known}"
                self._violated(NOTHING_SKIPPED, time_us, begins, beyond)

    def given_up(self, time_us: int, event: GivenUp) -> None:
        rows = zip(event.partitions, event.positions, event.committed, strict=False)
        for partition, position, committed in rows:
            known, owners = self._committed.get(partition, -1), self._owners.get(partition, ())
            if event.member not in owners:
                continue
            if partition in self._shared:
                self._committed.pop(partition, None)
                if len(owners) == 1:
                    self._shared.remove(partition)
                continue
            reached = self._reached[partition] = max(position, self._reached.get(partition, 0))
            what = f"{committed} of {partition} is committed when {event.member} gives it up"
            if committed < known:
                self._violated(COMMITS_KEPT, time_us, what, f"but the commit of {known} had been accepted")
            elif committed > reached:
                beyond = f"but no owner had come further than {reached}"
                self._violated(NOTHING_SKIPPED, time_us, what, beyond)
            self._committed[partition] = max(committed, known)

    def _violated(self, invariant: str, time_us: int, what: str, why: str) -> None:
        self._verdicts.violated(invariant, f"at {time_us / 1_000_000:.3f} s {what}, {why}")
