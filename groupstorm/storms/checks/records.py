"""Records that are processed again, by the rows at which owners begin and stop.

The figures keep the ranges that were processed. Here an owner that begins in front of the furthest position
so far processes what lies between again. The sum is a lower bound where records were skipped, where a
partition was deleted or had two owners, and if the figures do not count from the beginning on.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.storms.checks.commits import GivenUp
from groupstorm.storms.checks.verdicts import RECORDS_ADD_UP, Verdicts
from groupstorm.trace.events.member import PartitionsAssigned
from groupstorm.trace.events.scenario import PartitionsDeleted


class RepeatedRecords:
    """Follows the owners. ``owners`` is shared with `OwnedTime`, which reads a row after this.
    ``from_us``: the figures count from then on."""

    def __init__(self, verdicts: Verdicts, owners: Mapping[str, set[str]], from_us: int) -> None:
        self._verdicts = verdicts
        self._owners = owners
        self._from_us = from_us
        self._is_exact = from_us == 0
        self._reached: dict[str, int] = {}
        self._has_holes: set[str] = set()
        #: Owner and partition -> the range that the owner has to process again.
        self._again: dict[tuple[str, str], tuple[int, int]] = {}
        self._count = 0

    def deleted(self, _now_us: int, event: PartitionsDeleted) -> None:
        """Nothing is known of these any more."""
        self._is_exact = False
        self._has_holes.update(event.partitions)

    def taken(self, now_us: int, event: PartitionsAssigned) -> None:
        reached, member = self._reached, event.member
        for partition, position in zip(event.partitions, event.positions, strict=False):
            if partition in self._owners:
                self._is_exact = False
                if member in self._owners[partition]:
                    continue
            furthest = reached.setdefault(partition, position)
            if position > furthest:
                self._is_exact = False
                self._has_holes.add(partition)
            elif position < furthest and now_us >= self._from_us:
                self._again[member, partition] = (position, furthest)

    def given_up(self, _now_us: int, event: GivenUp) -> None:
        for partition, position in zip(event.partitions, event.positions, strict=False):
            if partition in self._owners and event.member in self._owners[partition]:
                self.stopped(event.member, partition, position)

    def stopped(self, member: str, partition: str, position: int) -> None:
        """An owner has stopped at this position."""
        if (member, partition) in self._again:
            begun, furthest = self._again.pop((member, partition))
            if partition not in self._has_holes:
                self._count += max(0, min(position, furthest) - begun)
        if position > self._reached.get(partition, 0):
            self._reached[partition] = position

    def finish(self, printed: int | None) -> None:
        """Compare with the figure of the run; None if there are no records."""
        if printed is not None and (printed < self._count or (self._is_exact and printed != self._count)):
            least = "" if self._is_exact else " or more"
            own = f"by the rows of the owners it is {self._count}{least}"
            self._verdicts.violated(RECORDS_ADD_UP, f"records_duplicated is {printed}, and {own}")
