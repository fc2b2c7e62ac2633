"""The segments of a log, and the part of them that may be compacted (LogCleanerManager, LogToClean).

Nothing is kept in segments here: a segment is the offset at which Kafka would begin a new file. The newest
one, the active segment, is not compacted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from groupstorm.broker.log.columns import LogBatches
from groupstorm.broker.topic_configs import LogSettings


class Segments:
    """The offsets at which the segments of one log begin."""

    __slots__ = ("_active_bytes", "_active_since_ms", "bases")

    def __init__(self) -> None:
        self.bases = [0]
        self._active_bytes = 0
        self._active_since_ms = 0

    @property
    def active_base(self) -> int:
        return self.bases[-1]

    def appending(self, base_offset: int, size: int, max_timestamp_ms: int, settings: LogSettings) -> None:
        """Begin a new segment in front of this batch if the batch would make the active one too large, or is
        too much newer than the first batch of the active one (LogSegment.shouldRoll)."""
        if self._active_bytes:
            waited_ms = max_timestamp_ms - self._active_since_ms if self._active_since_ms >= 0 else 0
            is_full = self._active_bytes > settings.segment_bytes - size
            if is_full or waited_ms > settings.longest_segment_ms:
                self.bases.append(base_offset)
                self._active_bytes = 0
        if not self._active_bytes:
            self._active_since_ms = max_timestamp_ms
        self._active_bytes += size

    def begin_at(self, offset: int) -> None:
        """Forget the segments in front of this offset, the beginning of the log."""
        while len(self.bases) > 1 and self.bases[1] <= offset:
            del self.bases[0]
        self.bases[0] = max(self.bases[0], offset)

    def merge(self, until: int) -> None:
        """Compaction makes one segment of those in front of this offset, which is the base of another one."""
        self.bases = [self.bases[0], *(base for base in self.bases[1:] if base >= until)]

    def restore(self, bases: Sequence[int], batches: LogBatches) -> None:
        """Take the segments of a log that has these batches."""
        self.bases = list(bases)
        first = batches.from_base(self.active_base)
        self._active_bytes = batches.size_of(first, len(batches))
        stamps_ms = batches.columns.max_timestamps_ms
        self._active_since_ms = stamps_ms[first] if first < len(stamps_ms) else 0


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
