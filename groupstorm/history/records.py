"""Records: how many were processed, how many more than once, how many never; and their model: where the logs
of partitions end, and where their owners stand, between two rows.

`docs/figures.md` ("The model of records") is the definition. Rates are records per 1,000 seconds and times
microseconds, so that a position that grows is a whole number of billionths of a record at every microsecond.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

#: Parts of a record. A rate of one record per 1,000 seconds is one part a microsecond.
NANO = 1_000_000_000
#: The first row of a trace has rates per second.
THOUSAND = 1000


class Line:
    """A position that grows: whole records ``position`` at ``from_us``, from then on by ``rate``. It is the
    line of one owner or log: no other line equals it."""

    __slots__ = ("from_us", "position", "rate")

    position: int
    from_us: int
    rate: int

    def __init__(self, position: int, from_us: int, rate: int) -> None:
        self.position = position
        self.from_us = from_us
        self.rate = rate

    def exact(self, now_us: int) -> int:
        """The position at ``now_us``, in billionths of a record."""
        return self.position * NANO + self.rate * (now_us - self.from_us)

    def base(self) -> int:
        """Return the value that `exact` would have at time 0 if the line had always been this one."""
        return self.position * NANO - self.rate * self.from_us


class Owner(Line):
    """One open owner interval: the offset at which it began, and the line along which its owner goes on.

    ``counted_from``: its offset at the beginning of the window, if it began before.
    """

    __slots__ = ("counted_from", "first_position", "member", "paused")

    member: str
    first_position: int
    paused: bool
    counted_from: int | None

    def __init__(
        self,
        member: str,
        first_position: int,
        position: int,
        from_us: int,
        rate: int,
        paused: bool = False,
        counted_from: int | None = None,
    ) -> None:
        self.member = member
        self.first_position = first_position
        self.position = position
        self.from_us = from_us
        self.rate = rate
        self.paused = paused
        self.counted_from = counted_from

    def go_on(self, position: int, now_us: int, rate: int) -> None:
        """Go on from here along another line."""
        self.position = position
        self.from_us = now_us
        self.rate = rate


class RecordModel:
    """The logs of one group's partitions, and how fast an owner processes if no row has said so.

    ``record_rate``, ``process_rate``: those of the trace's first row, in records per partition and second.
    """

    def __init__(self, record_rate: int, process_rate: int) -> None:
        self.process_rate = process_rate * THOUSAND
        self._from_the_start = Line(0, 0, record_rate * THOUSAND)
        self._logs: dict[str, Line] = {}

    def log(self, partition: str) -> Line:
        """The present end of a partition's log."""
        return self._logs.get(partition, self._from_the_start)

    def change_log(self, partition: str, log: Line) -> None:
        """The log ends there from now on."""
        self._logs[partition] = log

    def forget_log(self, partition: str) -> None:
        """The partition was deleted: one of its name that is created later has the first row's rate."""
        self._logs.pop(partition, None)

    def position(self, partition: str, owner: Line, now_us: int) -> int:
        """The offset that an owner on the line ``owner`` has reached: at most the log's end."""
        reached = min(self.log(partition).exact(now_us), owner.exact(now_us))
        return max(owner.position, reached // NANO)


@dataclass(slots=True)
class _Covered:
    """The positions of one partition that were processed: disjoint ascending ranges.

    ``first``: from which one on positions that nobody processes are skipped. ``behind_start``: from which one
    on they are skipped while the group lives; those before it its first owner skipped as the group began.
    """

    first: int
    furthest: int
    behind_start: int
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        """Add [start, end) to the covered ranges; ranges that touch become one."""
        self.furthest = max(self.furthest, end)
        if end <= start:
            return
        if self.ends and self.starts[-1] <= start <= self.ends[-1]:
            self.ends[-1] = max(self.ends[-1], end)
            return
        first = bisect_left(self.ends, start)
        behind = bisect_right(self.starts, end)
        if first < behind:
            start = min(start, self.starts[first])
            end = max(end, self.ends[behind - 1])
        self.starts[first:behind] = [start]
        self.ends[first:behind] = [end]

    @property
    def skipped(self) -> int:
        """Count the positions between the first and the furthest end that are not covered."""
        return self.furthest - self.first - self.size(self.first)

    @property
    def skipped_at_start(self) -> int:
        """Count those of `skipped` that its first owner skipped as the group began."""
        before = self.size(self.first) - self.size(self.behind_start)
        return self.behind_start - self.first - before

    def size(self, least: int = 0) -> int:
        """The number of positions from ``least`` on that are covered."""
        return sum(max(0, end - max(start, least)) for start, end in zip(self.starts, self.ends, strict=True))

    def copy(self) -> _Covered:
        return _Covered(self.first, self.furthest, self.behind_start, [*self.starts], [*self.ends])


class RecordSums:
    """Adds up the position ranges of owner intervals.

    In a window of time only what its owners process counts. It counts as processed again if it was processed
    before the window, too: a crash at the window's beginning leaves such records.
    """

    def __init__(self) -> None:
        self.processed = 0
        #: Counts for partitions that were deleted: positions that were processed for the first time, that
        #: were skipped, and those of these that were skipped as the group began.
        self._first_gone = self._skipped_gone = self._skipped_at_start_gone = 0
        self._covered: dict[str, _Covered] = {}
        #: The part of it that was covered before the window.
        self._before: dict[str, _Covered] = {}

    def begin_window(self) -> None:
        """Count from now on. An interval that is open has a part before the window: see `end`."""
        self.processed = self._first_gone = self._skipped_gone = self._skipped_at_start_gone = 0
        self._before = {name: covered.copy() for name, covered in self._covered.items()}

    def begin(self, partition: str, position: int, first: int, *, begins_group: bool) -> None:
        """An interval begins. The partition's first one skips the records from ``first`` on.

        ``begins_group``: the partition has waited for an owner since the group began.
        """
        if partition not in self._covered:
            self._covered[partition] = _Covered(first, position, position if begins_group else first)

    def end(self, partition: str, start: int, end: int, counted_from: int | None = None) -> None:
        """An interval is over: it processed [start, end).

        ``counted_from``: its position at the beginning of the window, by the model of positions, if it began
        before that. The model may be ahead of the application by what is in hand: no further than ``end``.
        """
        covered = self._covered[partition]
        if start < end and covered.ends and covered.furthest == start == covered.ends[-1]:
            covered.ends[-1] = covered.furthest = end  # the usual case: it began where the last one stopped
        else:
            covered.add(start, end)
        if counted_from is not None:
            counted_from = min(max(start, counted_from), end)
            self._before[partition].add(start, counted_from)
            start = counted_from
        if start < end:
            self.processed += end - start

    def forget(self, partition: str) -> None:
        """The partition was deleted: positions of another one of its name are other records."""
        if partition in self._covered:
            self._first_gone += self._first(partition)
            self._skipped_gone += self._skipped(partition)
            self._skipped_at_start_gone += self._skipped_at_start(partition)
            del self._covered[partition]
            self._before.pop(partition, None)

    @property
    def duplicated(self) -> int:
        return self.processed - self._first_gone - sum(map(self._first, self._covered))

    @property
    def skipped(self) -> int:
        return self._skipped_gone + sum(map(self._skipped, self._covered))

    @property
    def skipped_at_start(self) -> int:
        return self._skipped_at_start_gone + sum(map(self._skipped_at_start, self._covered))

    @property
    def skipped_most(self) -> str | None:
        """The partition, of those that exist, with the most skipped records, of several the first by name."""
        skipped = {name: self._skipped(name) for name in self._covered}
        most = max(skipped.values(), default=0)
        return min(name for name, count in skipped.items() if count == most) if most > 0 else None

    def _first(self, partition: str) -> int:
        """Count the positions that were processed in the window and not before."""
        before = self._before.get(partition)
        return self._covered[partition].size() - (0 if before is None else before.size())

    def _skipped(self, partition: str) -> int:
        """Count the positions that were skipped in the window; what was skipped before may be read in it."""
        before = self._before.get(partition)
        return max(0, self._covered[partition].skipped - (0 if before is None else before.skipped))

    def _skipped_at_start(self, partition: str) -> int:
        """Count them in the window; a partition that was owned before it has none."""
        return 0 if partition in self._before else self._covered[partition].skipped_at_start
