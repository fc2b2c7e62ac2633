"""`PartitionCodec` with numpy: the same results, several times as fast in large groups.

Most members of a group own and get partitions in one of few *layouts*: the same topics in the same
order, with the same numbers of partitions. Members of one layout have the same bytes but for the
partition numbers, so the codec reads and writes those alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from groupstorm.assignors.consumer.indexed import PartitionIndex
from groupstorm.assignors.leader.codec import ASSIGNMENT_HEADER, NO_USER_DATA, Owned, PartitionCodec
from groupstorm.assignors.userdata.wire import INT32

_BYTE_IN_INT32 = np.arange(INT32.size)
#: With fewer partitions per member a plain loop is faster.
_FEW = 24
#: The numbers of layouts that a codec keeps for writing and for reading, each some tens of bytes per
#: partition. To write, it looks a layout up; to read, it tries one after the other.
_MAX_WRITTEN = 64
_MAX_KNOWN = 4


class _Layout:
    """The bytes of topic partitions whose topics are fixed and whose partitions vary.

    ``topics``: one topic number per partition. ``blank``: the bytes with zeros for the partitions;
    ``places``: the positions of the partitions; ``order``: the order of the partitions there, None if
    they are grouped by topic already.
    """

    def __init__(self, topics: np.ndarray, topic_bytes: Sequence[bytes]) -> None:
        groups = list(dict.fromkeys(topics.tolist()))  # in the order of their first partitions
        rank: np.ndarray = np.empty(len(topic_bytes), np.intp)
        rank[groups] = np.arange(len(groups))
        ranks = rank[topics]
        sizes = np.bincount(ranks, minlength=len(groups))
        grouped = bool((ranks[1:] >= ranks[:-1]).all())
        self.order = None if grouped else np.argsort(ranks, kind="stable")
        names = [topic_bytes[topic] for topic in groups]
        blanks = {size: INT32.pack(size) + bytes(INT32.size * size) for size in set(sizes.tolist())}
        parts = [INT32.pack(len(groups))] * (1 + 2 * len(groups))
        parts[1::2] = names
        parts[2::2] = [blanks[size] for size in sizes.tolist()]
        self.blank = np.frombuffer(b"".join(parts), np.uint8)
        # a partition stands behind the partitions before it, the number of groups, and of every group
        # up to its own the name and the size
        headers = np.cumsum(np.fromiter(map(len, names), np.intp, len(names)) + INT32.size)
        starts = np.repeat(headers + INT32.size, sizes) + INT32.size * np.arange(len(topics))
        self.places = (starts[:, np.newaxis] + _BYTE_IN_INT32).ravel()


class _Known(NamedTuple):
    """A layout to recognise; ``fixed``: all bits except the partitions'. The rest is per partition."""

    layout: _Layout
    fixed: np.ndarray
    first: np.ndarray
    counts: np.ndarray


class ArrayCodec(PartitionCodec):
    """`PartitionCodec` that keeps layouts. The index numbers existing partitions only."""

    def __init__(self, index: PartitionIndex) -> None:
        super().__init__(index)
        self._first = np.array(index.first, np.intp)
        self._counts = np.array(index.counts, np.intp)
        numbers: np.ndarray = np.arange(len(index.topics), dtype=np.int32)
        self._topic_of: np.ndarray = np.repeat(numbers, self._counts)
        self._partition_of = (np.arange(index.size) - np.repeat(self._first, self._counts)).astype(">i4")
        self._written: dict[bytes, _Layout] = {}
        self._topics_read_last = b""
        self._known: list[_Known] = []

    def read(self, data: bytes, at: int) -> tuple[Owned, int]:
        for known in self._known:
            size = len(known.layout.blank)
            if size <= len(data) - at:
                numbers = self._recognise(np.frombuffer(data, np.uint8, size, at), known)
                if numbers is not None:
                    return Owned(numbers, len(numbers), nonexistent=False), at + size
        owned, end = super().read(data, at)
        if len(owned.numbers) == owned.listed >= _FEW:
            self._learn(owned.numbers)
        return owned, end

    @staticmethod
    def _recognise(section: np.ndarray, known: _Known) -> list[int] | None:
        """The partition numbers; None if the bytes have another layout or a partition does not exist."""
        if not np.array_equal(section & known.fixed, known.layout.blank):
            return None
        partitions = section[known.layout.places].view(">i4")
        if (partitions < 0).any() or (partitions >= known.counts).any():
            return None
        numbers: list[int] = (known.first + partitions).tolist()
        return numbers

    def _learn(self, numbers: list[int]) -> None:
        """Keep the layout if the last section that was read had it, too."""
        topics = self._topic_of[numbers]
        key = topics.tobytes()
        if key != self._topics_read_last:
            self._topics_read_last = key
            return
        layout = _Layout(topics, self._topic_bytes)
        if layout.order is None:
            fixed: np.ndarray = np.full(len(layout.blank), 0xFF, np.uint8)
            fixed[layout.places] = 0
            known = _Known(layout, fixed, self._first[topics], self._counts[topics])
            self._known = [known, *self._known[: _MAX_KNOWN - 1]]

    def write_assignments(self, assigned: Sequence[Sequence[int]]) -> list[bytes]:
        total = sum(map(len, assigned))
        if total < _FEW * len(assigned):
            return super().write_assignments(assigned)
        numbers = np.fromiter(chain.from_iterable(assigned), np.intp, total)
        topics = self._topic_of[numbers]
        partitions = self._partition_of[numbers]
        written: list[bytes] = []
        end = 0
        for mine in assigned:
            start, end = end, end + len(mine)
            written.append(self._write(topics[start:end], partitions[start:end]))
        return written

    def _write(self, topics: np.ndarray, partitions: np.ndarray) -> bytes:
        key = topics.tobytes()
        layout = self._written.get(key)
        if layout is None:
            if len(self._written) >= _MAX_WRITTEN:
                self._written.clear()
            layout = self._written[key] = _Layout(topics, self._topic_bytes)
        if layout.order is not None:
            partitions = partitions[layout.order]
        body = layout.blank.copy()
        body[layout.places] = partitions.view(np.uint8)
        return b"".join((ASSIGNMENT_HEADER, body.data, NO_USER_DATA))
