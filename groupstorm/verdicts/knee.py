"""Where a figure stops improving as a setting grows: the knee of a sweep.

With a goal, the knee is the smallest value from which on every larger value meets the goal. Without one it is
the point that lies furthest from the straight line between the first and the last, both axes from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

#: A curve that stays nearer to its chord than this has no knee.
LEAST_DISTANCE = 0.1


def first_that_meets(met: Sequence[bool]) -> int | None:
    """The place of the knee by a goal; ``met`` in the order of rising values. None if the largest misses."""
    tail = sum(1 for _ in takewhile(bool, reversed(met)))
    return len(met) - tail if tail else None


def furthest_from_chord(values: Sequence[float], figures: Sequence[float]) -> int | None:
    """The place of the knee of a curve; ``values`` rise. None if there is no bend."""
    if len(values) < 3:
        return None
    width, height = values[-1] - values[0], max(figures) - min(figures)
    if width <= 0 or height <= 0:
        return None
    slope = (figures[-1] - figures[0]) / height
    distances = [
        abs((figure - figures[0]) / height - slope * (value - values[0]) / width)
        for value, figure in zip(values, figures, strict=True)
    ]
    most = max(distances)
    return distances.index(most) if most >= LEAST_DISTANCE else None
