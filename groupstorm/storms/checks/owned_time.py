"""The time in which partitions had no owner, added up a second time beside the figures.

From the first row on after which every partition has an owner, a partition is owned, or un-owned, or it does
not exist, or the group does not. The figures sum up single gaps. Here the number of partitions without an
owner is summed over time: the rest of the run's length is the time in which they were owned.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.storms.checks.committed_positions import GivenUp
from groupstorm.storms.checks.verdicts import TIMES_ADD_UP, Verdicts
from groupstorm.trace.events import member as events
from groupstorm.trace.events.scenario import StepTaken

_SECOND = 1_000_000
_ASKED_TO_STOP = "SIGTERM"


class OwnedTime:
    """Follows the owners of all partitions. ``members`` is shared with the other checks: the ids that are in
    the group. ``from_us``: the figures count from then on."""

    def __init__(self, verdicts: Verdicts, members: set[str], from_us: int) -> None:
        self._verdicts = verdicts
        self._members = members
        self._from_us = from_us
        self._partitions: set[str] = set()
        self.owners: dict[str, set[str]] = {}
        self._is_complete = False
        self.has_group = True
        self._now_us = self._unowned_us = self._crashed_us = 0
        #: Partitions whose last owner crashed as a member that was not asked to stop.
        self._crashed: set[str] = set()
        self._stopping: set[str] = set()

    def advance(self, now_us: int) -> None:
        """Add the time since the last row."""
        passed_us = now_us - max(self._now_us, min(self._from_us, now_us))
        self._now_us = now_us
        if passed_us and self._is_complete and self.has_group:
            self._unowned_us += passed_us * (len(self._partitions) - len(self.owners))
            self._crashed_us += passed_us * len(self._crashed)

    def created(self, partitions: Iterable[str]) -> None:
        self._partitions.update(partitions)

    def deleted(self, partitions: Iterable[str]) -> None:
        for partition in partitions:
            self._partitions.discard(partition)
            self._crashed.discard(partition)
            self.owners.pop(partition, None)
        self._see_completion()

    def taken(self, event: events.PartitionsAssigned) -> None:
        for partition in event.partitions:
            self._partitions.add(partition)
            self.owners.setdefault(partition, set()).add(event.member)
            self._crashed.discard(partition)
        self._see_completion()

    def _see_completion(self) -> None:
        self._is_complete = self._is_complete or len(self.owners) == len(self._partitions) > 0

    def given_up(self, event: GivenUp) -> None:
        for partition in event.partitions:
            owners = self.owners.get(partition, set())
            owners.discard(event.member)
            if partition in self.owners and not owners:
                del self.owners[partition]
                if self._is_crash(event):
                    self._crashed.add(partition)

    def _is_crash(self, event: GivenUp) -> bool:
        """A process that is closing, or was asked to stop, does not crash if it breaks off."""
        if isinstance(event, events.PartitionsRevoked) and event.cause == "close":
            self._stopping.add(event.member)
        is_crash = isinstance(event, events.MemberCrashed) and event.member_id in self._members
        return is_crash and event.member not in self._stopping

    def step_taken(self, event: StepTaken) -> None:
        if event.member is not None and event.detail == _ASKED_TO_STOP:
            self._stopping.add(event.member)

    def started(self, member: str) -> None:
        self._stopping.discard(member)

    def finish(self, now_us: int, unowned: float | None, crashed: float | None) -> None:
        """Compare with the figures of the run, in seconds: of all gaps, and of those that crashes began."""
        self.advance(now_us)
        if self._is_complete and (unowned is None or round(unowned * _SECOND) != self._unowned_us):
            self._differs("unowned_partition_seconds", unowned, self._unowned_us)
        if crashed is not None and round(crashed * _SECOND) < self._crashed_us:
            self._differs("crash_unowned_partition_seconds", crashed, self._crashed_us)

    def _differs(self, name: str, printed: float | None, own_us: int) -> None:
        own = f"the rows of the owners add up to {own_us / _SECOND:.6f} s"
        self._verdicts.violated(TIMES_ADD_UP, f"{name} is {printed}, and {own}")
