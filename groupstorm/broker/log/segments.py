"""Where a log would begin a new segment file. The newest segment, the active one, is not compacted.

Nothing is kept in segments here: a segment is the offset at which it begins.
"""

from __future__ import annotations

from collections.abc import Sequence

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
