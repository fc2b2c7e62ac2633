"""Merges state batches of the share coordinator (Kafka: PersisterStateBatchCombiner)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from groupstorm.share_records.ports import StateBatch
from groupstorm.share_records.states import RecordState


def merge(stored: Sequence[StateBatch], new: Sequence[StateBatch], start: int) -> list[StateBatch]:
    """State batches without overlaps, from the start offset on; equal neighbours are joined.

    Of several states of a record the one with the highest delivery count holds, and of these the highest
    state. A write that comes late therefore undoes nothing.
    """
    batches = [
        one if start <= one.first_offset else one._replace(first_offset=start)
        for one in (*stored, *new)
        if one.last_offset >= start
    ]
    if len(batches) < 2:
        return batches
    # at each offset, priorities begin and end: the batches sorted by count, then by state, both descending
    changes = sorted(
        change
        for first, last, state, count in batches
        for change in ((first, 1, -count, -state), (last + 1, 0, -count, -state))
    )
    merged: list[StateBatch] = []
    active: Counter[tuple[int, int]] = Counter()
    queue: list[tuple[int, int]] = []
    opened = changes[0][0]
    for offset, begins, *priority in changes:
        if offset > opened:
            while queue and not active[queue[0]]:
                heappop(queue)
            if queue:
                _append(merged, opened, offset - 1, *queue[0])
            opened = offset
        one = (priority[0], priority[1])
        active[one] += 1 if begins else -1
        if begins:
            heappush(queue, one)
    return merged


def _append(merged: list[StateBatch], first: int, last: int, count: int, state: int) -> None:
    one = StateBatch(first, last, RecordState(-state), -count)
    if merged:
        before = merged[-1]
        if before.last_offset + 1 == first and before[2:] == one[2:]:
            merged[-1] = one._replace(first_offset=before.first_offset)
            return
    merged.append(one)
