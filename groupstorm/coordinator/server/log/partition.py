"""The log of one partition: batches and their offsets."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from groupstorm.coordinator.server.log.batches import Batch, placed_at
from groupstorm.coordinator.server.log.producers import Producers

#: There is one broker and it never loses its partitions.
LEADER_EPOCH = 0
NO_TIMESTAMP = -1
NO_OFFSET = -1


class TimedOffset(NamedTuple):
    """An offset and the timestamp by which it was found; -1 and -1 where there is none."""

    timestamp_ms: int
    offset: int


class PartitionLog:
    """Batches in the order of their offsets. All offsets are those of Kafka: the end is the next one's."""

    __slots__ = ("_base_offsets", "_batches", "_last_offsets", "_max_timestamps_ms", "_retention_bytes",
                 "end_offset", "producers", "size_bytes", "start_offset")  # fmt: skip

    def __init__(self, retention_bytes: int = -1) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        self.producers = Producers()
        self._retention_bytes = retention_bytes
        self._batches: list[bytes] = []
        self._base_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self._max_timestamps_ms: list[int] = []

    def append(self, batch: Batch) -> int:
        """Write a batch and give its base offset; a repetition gives the old one and writes nothing.

        Raises BatchError for an idempotent producer whose sequence does not follow.
        """
        repeated = self.producers.repeated(batch)
        if repeated is not None:
            return repeated
        self.producers.check(batch)
        base_offset = self.end_offset
        data = placed_at(batch, base_offset, LEADER_EPOCH)
        self._batches.append(data)
        self._base_offsets.append(base_offset)
        self._last_offsets.append(base_offset + batch.last_offset_delta)
        self._max_timestamps_ms.append(batch.max_timestamp_ms)
        self.end_offset = base_offset + batch.last_offset_delta + 1
        self.size_bytes += len(data)
        self.producers.appended(batch, base_offset)
        self._retain()
        return base_offset

    def _retain(self) -> None:
        """Drop the oldest batches above log.retention.bytes, never the last one."""
        if self._retention_bytes < 0:
            return
        dropped = 0
        while self.size_bytes > self._retention_bytes and dropped < len(self._batches) - 1:
            self.size_bytes -= len(self._batches[dropped])
            dropped += 1
        if dropped:
            for column in (self._batches, self._base_offsets, self._last_offsets, self._max_timestamps_ms):
                del column[:dropped]
            self.start_offset = self._base_offsets[0]

    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> list[bytes]:
        """Whole batches from the one that holds ``offset``, together of at most ``max_bytes``.

        ``at_least_one``: the first batch comes whatever its size, so that a consumer whose limits are
        smaller than a batch goes on (KIP-74).
        """
        first = bisect_left(self._last_offsets, offset)
        taken: list[bytes] = []
        left = max_bytes
        for index in range(first, len(self._batches)):
            batch = self._batches[index]
            if len(batch) > left and (taken or not at_least_one):
                break
            taken.append(batch)
            left -= len(batch)
        return taken

    def readable_bytes(self, offset: int, max_bytes: int) -> int:
        """How much there is from ``offset`` on, counted up to ``max_bytes``."""
        total = 0
        for index in range(bisect_left(self._last_offsets, offset), len(self._batches)):
            total += len(self._batches[index])
            if total >= max_bytes:
                return max_bytes
        return total

    def has_offset(self, offset: int) -> bool:
        """Whether a consumer may fetch from here; the end is a place to wait at."""
        return self.start_offset <= offset <= self.end_offset

    def at_timestamp(self, timestamp_ms: int) -> TimedOffset:
        """The first batch with a record of that time or later, by the batch's maximum timestamp.

        Kafka finds the record inside the batch; here batches stay opaque and the batch's first offset
        stands for it, which is never behind the record that was asked for.
        """
        for index, max_timestamp_ms in enumerate(self._max_timestamps_ms):
            if max_timestamp_ms >= timestamp_ms:
                return TimedOffset(max_timestamp_ms, self._base_offsets[index])
        return TimedOffset(NO_TIMESTAMP, NO_OFFSET)

    def at_max_timestamp(self) -> TimedOffset:
        """The batch with the highest timestamp, the earliest of several (KIP-734)."""
        if not self._batches:
            return TimedOffset(NO_TIMESTAMP, NO_OFFSET)
        highest = max(self._max_timestamps_ms)
        index = self._max_timestamps_ms.index(highest)
        return TimedOffset(highest, self._base_offsets[index])
