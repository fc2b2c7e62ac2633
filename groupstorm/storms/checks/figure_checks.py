"""Un-owned time and records that are processed again, added up a second time beside the figures.

The figures sum up single gaps; here the number of partitions without an owner is summed over time. From the
first `member_started` on a partition is owned, or un-owned, or it does not exist, or the group does not.

The figures keep the ranges that were processed; here an owner that begins in front of the furthest position
so far processes what lies between again. The sum is a lower bound where records were skipped, where a
partition was deleted or had two owners, and if the figures do not count from the beginning on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupstorm.figures.table import Figures
from groupstorm.history.causes import ASKED_TO_STOP, process_of
from groupstorm.storms.checks.commits import GivenUp
from groupstorm.storms.checks.verdicts import RECORDS_ADD_UP, TIMES_ADD_UP, Verdicts
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.events.scenario import (
    PartitionsCreated,
    PartitionsDeleted,
    RecordRatesChanged,
    ScenarioStarted,
    StepTaken,
)

_SECOND = 1_000_000


class OwnedTime:
    """Follows the owners of all partitions. ``members`` is shared with the other checks: the ids that are in
    the group. ``from_us``: the figures count from then on."""

    def __init__(self, verdicts: Verdicts, members: set[str], from_us: int) -> None:
        self._verdicts = verdicts
        self._members = members
        self._from_us = from_us
        self._partitions: set[str] = set()
        self.owners: dict[str, set[str]] = {}
        self._has_begun = False
        self._has_group = True
        self._now_us = self._unowned_us = self._crashed_us = 0
        #: The gaps that are open, by the unowned time that counted when they began; the longest closed one.
        self._counted_us = self._longest_us = 0
        self._open: dict[str, int] = {}
        #: The growth of the slowest log in records a second, and the most that arrived for all open gaps.
        self._record_rate = self._waited = 0
        self._open_since_us = 0
        #: Partitions whose last owner crashed as a member that was not asked to stop.
        self._crashed: set[str] = set()
        #: Those whose last owner closed.
        self._closed: set[str] = set()
        self._closed_us = 0
        self._stopping: set[str] = set()

    def _advance(self, now_us: int) -> None:
        """Add the time since the last row that has changed what is owned."""
        if now_us == self._now_us:
            return
        since_us = self._now_us
        if since_us < self._from_us:
            since_us = min(self._from_us, now_us)
        passed_us, self._now_us = now_us - since_us, now_us
        if passed_us and self._has_begun and self._has_group:
            self._counted_us += passed_us
            self._unowned_us += passed_us * (len(self._partitions) - len(self.owners))
            self._crashed_us += passed_us * len(self._crashed)
            self._closed_us += passed_us * len(self._closed)

    def group_created(self, now_us: int, _event: coordinator_events.GroupCreated) -> None:
        self._advance(now_us)
        self._has_group = True

    def group_deleted(self, now_us: int, _event: coordinator_events.GroupDeleted) -> None:
        self._advance(now_us)
        self._has_group = False

    def created(self, now_us: int, event: ScenarioStarted | PartitionsCreated) -> None:
        self._advance(now_us)
        self._partitions.update(event.partitions)
        self._begin_gaps(event.partitions)

    def scenario_started(self, _now_us: int, event: ScenarioStarted) -> None:
        self._record_rate = event.record_rate

    def rates_changed(self, _now_us: int, event: RecordRatesChanged) -> None:
        self._record_rate = min(self._record_rate, min(event.rates) // 1000)

    def _begin_gaps(self, partitions: Iterable[str]) -> None:
        new = [one for one in partitions if one not in self.owners and one not in self._open]
        self._open.update((one, self._counted_us) for one in new)
        self._open_since_us += self._counted_us * len(new)

    def _end_gaps(self, partitions: Iterable[str]) -> None:
        waits_us = self._counted_us * len(self._open) - self._open_since_us
        self._waited = max(self._waited, self._record_rate * waits_us // _SECOND)
        begun = [since_us for one in partitions if (since_us := self._open.pop(one, None)) is not None]
        self._open_since_us -= sum(begun)
        self._longest_us = max(self._longest_us, self._counted_us - min(begun, default=self._counted_us))

    def deleted(self, now_us: int, event: PartitionsDeleted) -> None:
        self._advance(now_us)
        self._end_gaps(event.partitions)
        for partition in event.partitions:
            self._partitions.discard(partition)
            self._crashed.discard(partition)
            self._closed.discard(partition)
            self.owners.pop(partition, None)

    def taken(self, now_us: int, event: events.PartitionsAssigned) -> None:
        self._advance(now_us)
        partitions, member, all_owners = event.partitions, event.member, self.owners
        self._partitions.update(partitions)
        self._crashed.difference_update(partitions)
        self._closed.difference_update(partitions)
        self._end_gaps(partitions)
        for partition in partitions:
            if partition in all_owners:
                all_owners[partition].add(member)
            else:
                all_owners[partition] = {member}

    def given_up(self, now_us: int, event: GivenUp) -> None:
        self._advance(now_us)
        all_owners, alone = self.owners, {event.member}
        without_owner: list[str] = []
        for partition in event.partitions:
            if partition not in all_owners:
                continue
            if all_owners[partition] == alone:
                del all_owners[partition]
                without_owner.append(partition)
            else:
                all_owners[partition].discard(event.member)
        self._begin_gaps(without_owner)
        if isinstance(event, events.PartitionsRevoked) and event.cause == "close":
            self._stopping.add(process_of(event.member))
            self._closed.update(without_owner)
        elif without_owner and self._is_crash(event):
            self._crashed.update(without_owner)

    def _is_crash(self, event: GivenUp) -> bool:
        """A process that is closing, or was asked to stop, does not crash if it breaks off."""
        is_crash = isinstance(event, events.MemberCrashed) and event.member_id in self._members
        return is_crash and process_of(event.member) not in self._stopping

    def step_taken(self, _now_us: int, event: StepTaken) -> None:
        if event.member is not None and event.detail == ASKED_TO_STOP:
            self._stopping.add(process_of(event.member))

    def started(self, now_us: int, event: events.MemberStarted) -> None:
        self._advance(now_us)
        self._has_begun = True
        self._stopping.discard(process_of(event.member))

    def finish(self, now_us: int, figures: Figures) -> None:
        """Compare with the figures of the run, in seconds: of all gaps, of the longest one, and of those that
        crashes and deployments began. These two begin more gaps than single rows say."""
        self._advance(now_us)
        unowned, longest = figures.unowned_partition_seconds, figures.unowned_max_seconds
        self._end_gaps(tuple(self._open))
        if self._has_begun and (unowned is None or round(unowned * _SECOND) != self._unowned_us):
            self._differs("unowned_partition_seconds", unowned, self._unowned_us)
        if figures.lag_peak is not None and figures.lag_peak < self._waited:
            own = f"{self._waited} records arrived for partitions without an owner"
            self._verdicts.violated(RECORDS_ADD_UP, f"lag_peak is {figures.lag_peak}, and {own}")
        if longest is not None and round(longest * _SECOND) != self._longest_us:
            self._differs("unowned_max_seconds", longest, self._longest_us)
        for name, printed, own_us in (
            ("crash_unowned_partition_seconds", figures.crash_unowned_partition_seconds, self._crashed_us),
            ("deploy_unowned_partition_seconds", figures.deploy_unowned_partition_seconds, self._closed_us),
        ):
            if printed is not None and round(printed * _SECOND) < own_us:
                self._differs(name, printed, own_us)

    def _differs(self, name: str, printed: float | None, own_us: int) -> None:
        own = f"the rows of the owners add up to {own_us / _SECOND:.6f} s"
        self._verdicts.violated(TIMES_ADD_UP, f"{name} is {printed}, and {own}")


class RepeatedRecords:
    """Adds up what owners process again. ``owners`` is shared with `OwnedTime`, which reads a row after this.
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

    def taken(self, now_us: int, event: events.PartitionsAssigned) -> None:
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
                self._stopped(event.member, partition, position)

    def at_end(self, member: str, partition: str, position: int) -> None:
        """An owner is at this position as the run ends. The figures, which know no row of it, place it by its
        rate: perhaps elsewhere in what it processes again."""
        if position < self._again.get((member, partition), (0, 0))[1]:
            self._is_exact = False
            del self._again[member, partition]
        self._stopped(member, partition, position)

    def _stopped(self, member: str, partition: str, position: int) -> None:
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
