"""The committed offset of a partition over time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from groupstorm.testing.ledger.entries import Commit, Moment

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
