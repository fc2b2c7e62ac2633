"""How a figure varies over several seeds, and whether two variants differ by more than that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """Values of one figure in the runs of one variant; of an even number the median lies between the two."""

    least: float
    median: float
    most: float

    def holds(self, value: float) -> bool:
        return self.least <= value <= self.most


def spread_of(values: Iterable[Any]) -> Spread | None:
    """Of those values that are numbers; None if there is none."""
    numbers = sorted(value for value in values if is_number(value))
    return Spread(numbers[0], median(numbers), numbers[-1]) if numbers else None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def within_spread(one: Spread, other: Spread) -> bool:
    """Whether seeds alone may explain the difference: one's median lies in the other's range."""
    return one.holds(other.median) or other.holds(one.median)


def all_within_spread(spreads: Sequence[Spread]) -> bool:
    """Whether no two of them differ by more than their seeds do."""
    return all(
        within_spread(one, other) for number, one in enumerate(spreads) for other in spreads[number + 1 :]
    )
