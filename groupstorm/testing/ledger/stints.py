"""Stints: how long an instance worked on a partition without having got it anew.

An instance that goes on after its partition has gone to another one is still in its old stint: that is how it
is told from one that has got the partition back. The committed offset over time belongs to it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from groupstorm.testing.ledger.entries import Commit, History, Moment, Processing


@dataclass(slots=True)
class Stint:
    """The processings of one instance in one partition, in the order of their beginnings.

    ``since``: when it got the partition or started, if that is known; else when it began its first record.
    """

    by: str
    partition: str
    since: Moment
    processings: list[Processing]

    @property
    def begun(self) -> Moment:
        return self.processings[0].begun

    @property
    def ended(self) -> Moment:
        """The last moment at which the instance is known to have worked on a record of the partition."""
        return max((one.last for one in self.processings), key=lambda moment: moment.earliest_us)


class Stints:
    """The stints of a history, by partition. Processings of unknown instances are in none."""

    def __init__(self, history: History, committed: Mapping[str, CommittedOffsets]) -> None:
        self._committed = committed
        self._knows_owners = history.knows_owners
        self._fresh: dict[tuple[str, str], list[Moment]] = defaultdict(list)
        for got in history.assigned:
            self._fresh[got.partition, got.by].append(got.at)
        for started in history.started:
            self._fresh["", started.by].append(started.at)
        for moments in self._fresh.values():
            moments.sort()
        self.by_partition: dict[str, list[Stint]] = defaultdict(list)
        self._of_processing: dict[Processing, Stint] = {}
        ordered: dict[str, list[Processing]] = defaultdict(list)
        for one in sorted(history.processings, key=lambda one: one.begun):
            if one.by:
                ordered[one.partition].append(one)
        for partition, processings in ordered.items():
            self.by_partition[partition] = self._of(partition, processings)

    def of(self, one: Processing) -> Stint | None:
        """The stint of a processing; None if nobody says whose it is."""
        return self._of_processing.get(one)

    def _since(self, partition: str, one: Processing) -> Moment:
        """When the instance got the partition, before it began this record."""
        got = [moment for moment in self._fresh.get((partition, one.by), ()) if moment.is_before(one.begun)]
        return got[-1] if got else one.begun

    def _of(self, partition: str, processings: Sequence[Processing]) -> list[Stint]:
        found: list[Stint] = []
        current: dict[str, Stint] = {}
        previous = ""
        for one in processings:
            stint = current.get(one.by)
            if stint is None or self._is_fresh(stint, one, interrupted=previous != one.by):
                stint = current[one.by] = Stint(one.by, partition, self._since(partition, one), [])
                found.append(stint)
            stint.processings.append(one)
            self._of_processing[one] = stint
            previous = one.by
        return found

    def _is_fresh(self, stint: Stint, one: Processing, interrupted: bool) -> bool:
        """Whether the instance may have got the partition, or started, since its last record.

        If nobody tells the owners, an instance that comes after another one may have got the partition if it
        begins at an offset that may have been the committed one.
        """
        since = stint.processings[-1].begun
        if any(self._happened(since, one.begun, key) for key in ((stint.partition, one.by), ("", one.by))):
            return True
        if self._knows_owners or not interrupted:
            return False
        within = Moment(since.earliest_us, one.begun.latest_us)
        return one.offset in self._committed[stint.partition].possible_at(within)

    def _happened(self, since: Moment, until: Moment, key: tuple[str, str]) -> bool:
        """Whether the instance may have got the partition between two moments."""
        moments = self._fresh.get(key, ())
        first = bisect_left(moments, since.earliest_us, key=lambda moment: moment.latest_us)
        return first < len(moments) and moments[first].earliest_us <= until.latest_us


#: The committed offset of a group that has not committed any: every offset is beyond it.
NOTHING = -1


class CommittedOffsets:
    """The commits of one partition, in the order of their times."""

    def __init__(self, commits: Iterable[Commit] = ()) -> None:
        self._commits = sorted(commits, key=lambda one: one.at)
        self._farthest = list(accumulate((one.offset for one in self._commits), max))
        self._earliest = [one.at.earliest_us for one in self._commits]
        #: Behind each commit: the latest time that it or an earlier one may have.
        self._latest = list(accumulate((one.at.latest_us for one in self._commits), max))

    def first_beyond(self, offset: int) -> Commit | None:
        """The first commit that says that the record at ``offset`` is done."""
        found = bisect_right(self._farthest, offset)
        return self._commits[found] if found < len(self._commits) else None

    def possible_at(self, when: Moment) -> Sequence[int]:
        """The committed offsets that the group may have had within ``when``, the oldest first."""
        until = bisect_right(self._earliest, when.latest_us)
        first = until
        while first and self._latest[first - 1] >= when.earliest_us:
            first -= 1
        before = self._commits[first - 1].offset if first else NOTHING
        return (before, *(one.offset for one in self._commits[first:until]))

    def last_before(self, when: Moment) -> Commit | None:
        """The last commit that is surely before ``when``."""
        sure = [one for one in self._commits if one.at.is_before(when)]
        return sure[-1] if sure else None


def by_partition(commits: Iterable[Commit]) -> Mapping[str, CommittedOffsets]:
    """A partition without commits has an empty one."""
    found: dict[str, list[Commit]] = defaultdict(list)
    for one in commits:
        found[one.partition].append(one)
    made: dict[str, CommittedOffsets] = defaultdict(CommittedOffsets)
    made.update((partition, CommittedOffsets(those)) for partition, those in found.items())
    return made
