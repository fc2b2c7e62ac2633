"""The state of one partition, and the times without an owner: their sum, the longest, percentiles, and those
that deployments and crashes began.

When a gap begins, ends and counts is the rule of `ownership`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from groupstorm.history.causes import Origin
from groupstorm.history.frontier import Frontier
from groupstorm.history.records import Owner


@dataclass(slots=True, eq=False)
class Partition:
    """The state of one partition at the present row."""

    name: str
    accounted_us: int
    #: Its part of the lag; None: no row says that there are records.
    frontier: Frontier | None = None
    #: Its records count as processed or skipped: it has had an owner.
    has_records: bool = False
    owners: list[Owner] = field(default_factory=list)  # in the order in which they were assigned
    processing: int = 0
    gap_from_us: int | None = None
    #: When the gap began, even if it counts only from `gap_from_us` on.
    gap_since_us: int = 0
    gap_member: str | None = None
    gap_callback_us: int = 0
    gap_origin: Origin = Origin.OTHER
    longest_gap_us: int = 0
    #: Members that gave it up since it was assigned last.
    revoked_from: list[str] = field(default_factory=list)


#: Looked up on the class, a member costs as much as a call before Python 3.12.
_DEPLOY: Final = Origin.DEPLOY
_CRASH: Final = Origin.CRASH


class Gaps(NamedTuple):
    """Over single gaps, in microseconds; ``longest_of``: the partition of the longest, "" without one.

    ``deploy``, ``crash``: the sums of those that deployments and crashes began.
    """

    total: int
    longest: int
    p50: int
    p95: int
    p99: int
    longest_of: str
    deploy: int
    crash: int


class ClosedGap(NamedTuple):
    """A partition had no owner from ``from_us`` to ``to_us``; the group existed for ``gap_us`` of that time.

    ``old_owner`` None: the partition was created, or is yet to get its first owner (``is_first``).
    ``new_owner`` None: until the partition was deleted, or until the end of the trace. ``since_us``: when it
    began, whatever part of the time counts.
    """

    partition: str
    from_us: int
    to_us: int
    gap_us: int
    old_owner: str | None
    new_owner: str | None
    is_first: bool
    since_us: int


#: Takes the time of a row and its event.
Handler = Callable[[int, Any], object]


class OwnershipListener(Protocol):
    """Hears of each interval and gap while its row is taken, whatever part of the time counts.

    ``handlers``: the rows that it takes itself, each before it hears what follows from it.
    """

    @property
    def handlers(self) -> Mapping[type, Handler]: ...

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        """``position`` None: no row says where."""

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        """At the end of the trace the position is the model's; None if the partition was deleted."""

    def gap_closed(self, gap: ClosedGap) -> None:
        """A time without an owner is over. It may have had no length."""


class GapSums:
    """The gaps that have ended, of all partitions of a group."""

    def __init__(self) -> None:
        self._all_us = array("q")
        self._deploy_us = 0
        self._crash_us = 0

    def add(self, partition: Partition, gap_us: int) -> None:
        """A gap of ``partition`` has ended."""
        self._all_us.append(gap_us)
        if gap_us > partition.longest_gap_us:  # noqa: PLR1730  (as in `Frontier.look_back`)
            partition.longest_gap_us = gap_us
        if partition.gap_origin is _DEPLOY:
            self._deploy_us += gap_us
        elif partition.gap_origin is _CRASH:
            self._crash_us += gap_us

    def figures(self, partitions: Iterable[Partition]) -> Gaps:
        """The figures of the gaps; ``partitions``: all that these may be of."""
        gaps = sorted(self._all_us)
        longest = gaps[-1] if gaps else 0
        names = [one.name for one in partitions if longest and one.longest_gap_us == longest]
        p50, p95, p99 = [percentile(gaps, percent) for percent in (50, 95, 99)]
        worst = min(names, default="")
        return Gaps(sum(gaps), longest, p50, p95, p99, worst, self._deploy_us, self._crash_us)


def percentile(ascending: list[int], percent: int) -> int:
    """The smallest value that at least ``percent`` of 100 values do not exceed (nearest rank); 0 of none."""
    if not ascending:
        return 0
    return ascending[nearest_rank(len(ascending), percent) - 1]


def nearest_rank(count: int, percent: int) -> int:
    """The place, from 1, of a percentile among ``count`` ascending values."""
    return max(1, -(-count * percent // 100))
