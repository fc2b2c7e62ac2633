"""Records: how many were processed, how many more than once, how many never.

The model (`docs/figures.md`): every partition gets ``record_rate`` records a second from time 0
on; its owner processes ``process_rate`` a second until it stands at the end of the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from groupstorm.storms.figures.totals import MICRO


@dataclass(frozen=True, slots=True)
class RecordModel:
    """The two rates of a scenario, in records per partition and second."""

    record_rate: int
    process_rate: int

    def position(self, start: int, started_us: int, now_us: int) -> int:
        """Where an owner stands that has processed from ``start`` since ``started_us``."""
        log_end = self.record_rate * now_us // MICRO
        return max(start, min(log_end, start + self.process_rate * (now_us - started_us) // MICRO))


@dataclass(slots=True)
class _Covered:
    """The positions of one partition that were processed: disjoint ascending ranges."""

    first_start: int
    furthest: int
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        """Unite [start, end) with what is there; ranges that touch become one."""
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

    def size(self, least: int = 0) -> int:
        """How many positions from ``least`` on are covered."""
        return sum(max(0, end - max(start, least)) for start, end in zip(self.starts, self.ends, strict=True))


class RecordSums:
    """Adds up the position ranges of owner intervals."""

    def __init__(self) -> None:
        self.processed = 0
        self._covered: dict[str, _Covered] = {}

    def begin(self, partition: str, position: int) -> None:
        """An interval begins: skipped records count from the first interval's start."""
        if partition not in self._covered:
            self._covered[partition] = _Covered(position, position)

    def end(self, partition: str, start: int, end: int) -> None:
        """An interval is over: it processed [start, end)."""
        covered = self._covered[partition]
        covered.furthest = max(covered.furthest, end)
        if end > start:
            self.processed += end - start
            covered.add(start, end)

    @property
    def duplicated(self) -> int:
        return self.processed - sum(covered.size() for covered in self._covered.values())

    @property
    def skipped(self) -> int:
        return sum(
            covered.furthest - covered.first_start - covered.size(covered.first_start)
            for covered in self._covered.values()
        )
