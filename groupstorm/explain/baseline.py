"""The rate of rebalances of a group when it is quiet, and the hours in which it had more of them."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from groupstorm.explain.history import History
from groupstorm.history.percentiles import nearest_rank

_MINUTE_US: Final = 60_000_000
#: The group's time is cut into slices of the longest of these lengths of which it has at least `SLICES_MIN`.
SLICES_US: Final = (60 * _MINUTE_US, 10 * _MINUTE_US, _MINUTE_US)
SLICES_MIN: Final = 4
#: Quiet are the slices with the fewest rebalances, so many in a hundred.
QUIET_PERCENT: Final = 25
#: A slice stands out if it has more than so many times the baseline, and at least so many more.
TIMES: Final = 2
MORE: Final = 2


class Baseline(NamedTuple):
    """``per_slice``: so many rebalances the quiet slices of ``slice_us`` have at most; None if the time is
    too short for one.

    ``busy``: the slices that stand out: when they begin, and their rebalances.
    """

    slice_us: int
    slices: int
    per_slice: int | None
    busy: tuple[tuple[int, int], ...]


def baseline(history: History) -> Baseline:
    """The lower quartile over the slices (nearest rank): deployments do not move it if a quarter of the
    time has none."""
    from_us = max(history.from_us, history.first_us)
    lasted_us = history.to_us - from_us
    slice_us = next((one for one in SLICES_US if lasted_us >= SLICES_MIN * one), None)
    if slice_us is None:
        return Baseline(SLICES_US[-1], 0, None, ())
    slices = lasted_us // slice_us + (lasted_us % slice_us > 0)
    counts = Counter(
        (one.begun_us - from_us) // slice_us for one in history.rebalances if one.begun_us >= from_us
    )
    # a damaged time may make years of it, so slices without a rebalance are counted and not listed
    empty, rank = slices - len(counts), nearest_rank(slices, QUIET_PERCENT)
    quiet = 0 if rank <= empty else sorted(counts.values())[rank - empty - 1]
    busy = [
        (from_us + number * slice_us, count)
        for number, count in sorted(counts.items())
        if count > TIMES * quiet and count >= quiet + MORE
    ]
    return Baseline(slice_us, slices, quiet, tuple(busy))
