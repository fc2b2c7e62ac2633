"""Records: how many were processed, how many more than once, how many never."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Covered:
    """The positions of one partition that were processed: disjoint ascending ranges.

    ``first``: from which one on positions that nobody processes are skipped. ``skipped_before``: how many
    were, before the window.
    """

    first: int
    furthest: int
    skipped_before: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        """Add [start, end) to the covered ranges; ranges that touch become one."""
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
        """How many positions between the first and the furthest end are not covered."""
        return self.furthest - self.first - self.size(self.first)

    def size(self, least: int = 0) -> int:
        """How many positions from ``least`` on are covered."""
        return sum(max(0, end - max(start, least)) for start, end in zip(self.starts, self.ends, strict=True))


class RecordSums:
    """Adds up the position ranges of owner intervals.

    In a window of time only what its owners process counts. It counts as processed again if it was processed
    before the window, too: a crash at the window's beginning leaves such records.
    """

    def __init__(self) -> None:
        self.processed = 0
        #: Of partitions that were deleted: positions that were processed, and that were not.
        self._covered_gone = 0
        self._skipped_gone = 0
        self._covered: dict[str, _Covered] = {}
        #: The same of all partitions at the window's beginning.
        self._covered_before = 0
        self._skipped_before = 0

    def begin_window(self) -> None:
        """Count from now on. All intervals have ended or begin here."""
        self.processed = 0
        self._covered_before = self._all_covered
        self._skipped_before = self._all_skipped
        for one in self._covered.values():
            one.skipped_before = one.skipped

    def begin(self, partition: str, position: int, first: int) -> None:
        """An interval begins. The partition's first one skips the records from ``first`` on."""
        if partition not in self._covered:
            self._covered[partition] = _Covered(first, position)

    def end(self, partition: str, start: int, end: int) -> None:
        """An interval is over: it processed [start, end)."""
        covered = self._covered[partition]
        covered.furthest = max(covered.furthest, end)
        if end > start:
            self.processed += end - start
            covered.add(start, end)

    def forget(self, partition: str) -> None:
        """The partition was deleted: positions of another one of its name are other records."""
        covered = self._covered.pop(partition, None)
        if covered is not None:
            self._covered_gone += covered.size()
            self._skipped_gone += covered.skipped

    @property
    def duplicated(self) -> int:
        return self.processed - (self._all_covered - self._covered_before)

    @property
    def skipped(self) -> int:
        return max(0, self._all_skipped - self._skipped_before)

    @property
    def skipped_most(self) -> str | None:
        """The partition, of those that exist, with the most skipped records, of several the first by name."""
        skipped = {name: one.skipped - one.skipped_before for name, one in self._covered.items()}
        most = max(skipped.values(), default=0)
        return min(name for name, count in skipped.items() if count == most) if most > 0 else None

    @property
    def _all_covered(self) -> int:
        return self._covered_gone + sum(one.size() for one in self._covered.values())

    @property
    def _all_skipped(self) -> int:
        return self._skipped_gone + sum(one.skipped for one in self._covered.values())
