"""Which part of a compacted log may be cleaned, and whether it is time to (LogCleanerManager, LogToClean)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from groupstorm.broker.log.columns import LogBatches
from groupstorm.broker.topic_configs import LogSettings


class Cleanable(NamedTuple):
    """The cleaner looks for newer records of each key from ``first_dirty_offset`` to before ``end_offset``.
    It cleans everything in front of ``end_offset``."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    """In front of the first dirty offset."""
    dirty_bytes: int
    is_overdue: bool
    """Records have been dirty for longer than max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, settings: LogSettings) -> bool:
        if self.is_overdue and self.dirty_bytes:
            return True
        return self.dirty_ratio > settings.min_cleanable_dirty_ratio


def cleanable(
    batches: LogBatches,
    segments: list[int],
    first_dirty_offset: int,
    last_stable_offset: int,
    settings: LogSettings,
    now_ms: int,
) -> Cleanable:
    """``segments``: the offsets at which they begin.

    Only whole segments are cleaned: not the active one, not the one with the last stable offset, and none
    whose records are younger than min.compaction.lag.ms.
    """
    end_offset = min(_segment_with(segments, last_stable_offset), segments[-1])
    dirty = [base for base in segments if base >= _segment_with(segments, first_dirty_offset)]
    lag_ms = settings.min_compaction_lag_ms
    for base, next_base in pairwise(dirty):
        if lag_ms > 0 and _newest_ms(batches, base, next_base) > now_ms - lag_ms:
            end_offset = min(end_offset, base)
            break
    end_offset = max(end_offset, first_dirty_offset)
    first, last = batches.from_base(first_dirty_offset), batches.from_base(end_offset)
    oldest_ms = min((at for base in dirty[:-1] if (at := _first_ms(batches, base)) > 0), default=now_ms)
    return Cleanable(
        first_dirty_offset,
        end_offset,
        batches.size_of(0, first),
        batches.size_of(first, last),
        oldest_ms < now_ms - settings.max_compaction_lag_ms,
    )


def _segment_with(segments: list[int], offset: int) -> int:
    """The base of the segment that holds this offset."""
    return segments[max(0, bisect_right(segments, offset) - 1)]


def _newest_ms(batches: LogBatches, base: int, next_base: int) -> int:
    first, last = batches.from_base(base), batches.from_base(next_base)
    return max(batches.columns.max_timestamps_ms[first:last], default=0)


def _first_ms(batches: LogBatches, base: int) -> int:
    """The time of a segment's first batch."""
    first = batches.from_base(base)
    return batches.columns.max_timestamps_ms[first] if first < len(batches) else 0
