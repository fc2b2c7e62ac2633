"""Ranges of offsets, both ends included."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter

Range = tuple[int, int]
_last = itemgetter(1)


def rest_of(first: int, last: int, gone: Sequence[Range]) -> Iterator[Range]:
    """The parts of a range that lie in none of the others, which ascend and do not overlap."""
    for index in range(bisect_left(gone, first, key=_last), len(gone)):
        if gone[index][0] > last:
            break
        if first < gone[index][0]:
            yield first, gone[index][0] - 1
        first = gone[index][1] + 1
    if first <= last:
        yield first, last
