"""Distributions of durations, drawn in integer arithmetic from their quantiles.

A distribution is written in milliseconds or with units: a number or `20s` (every draw gives it),
`{uniform: [a, b]}`, `{p50: a, p95: b}` or `{quantiles: {0: a, 50: b, 99.9: c, 100: d}}`; between quantiles it
is linear. With `p50` and the like, the least value is half the lowest one's, and the largest lies half the
distance between the two highest above the highest (`p0` and `p100` say otherwise).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.scenario.randomness import DRAW_SPAN
from groupstorm.units import duration_us

FORMS = "a number, 20s, {uniform: [a, b]}, {p50: a, p95: b} or {quantiles: {0: a, 50: b, 100: c}}"

#: A percentage and the duration there, in microseconds.
Point = tuple[Fraction, int]

_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")


class Distribution:
    """Durations in microseconds; `at(draw)` turns a draw of a `Stream` into one."""

    __slots__ = ("_bounds", "_pieces", "_quantiles", "as_written", "is_constant", "largest_us", "least_us")

    def __init__(self, quantiles: list[tuple[int, int]], as_written: Any) -> None:
        """``quantiles``: (share of DRAW_SPAN, microseconds), the shares rising from 0."""
        #: As the scenario has it, for the resolved scenario.
        self.as_written = as_written
        self.least_us = quantiles[0][1]
        self.largest_us = quantiles[-1][1]
        #: Every draw gives `largest_us`: none is needed.
        self.is_constant = quantiles[0][1] == self.largest_us
        #: Between two quantiles: share and duration at the lower one, and both differences.
        self._pieces = [(low, a, b - a, high - low) for (low, a), (high, b) in pairwise(quantiles)]
        if not self._pieces:
            self._pieces = [(0, self.largest_us, 0, 1)]
        self._bounds = [low for low, *_ in self._pieces[1:]]
        self._quantiles = quantiles

    def __reduce__(self) -> tuple[Any, ...]:
        """Runs travel between processes, and a compiled class cannot be pickled without this."""
        return Distribution, (self._quantiles, self.as_written)

    def at(self, draw: int) -> int:
        low, least_us, more_us, width = self._pieces[bisect_right(self._bounds, draw)]
        return least_us + more_us * (draw - low) // width

    def mean_and_variance(self) -> tuple[int, int]:
        """The mean in nanoseconds and the variance in square microseconds, rounded down."""
        if self.is_constant:
            return self.largest_us * 1000, 0
        twice = sum(width * (2 * a + more) for _, a, more, width in self._pieces)
        thrice = sum(width * (3 * a * (a + more) + more * more) for _, a, more, width in self._pieces)
        variance = (4 * thrice * DRAW_SPAN - 3 * twice * twice) // (12 * DRAW_SPAN * DRAW_SPAN)
        return 1000 * twice // (2 * DRAW_SPAN), variance


def parse(name: str, written: Any) -> Distribution:
    """Read a distribution. Raises InputError with the name of the setting."""
    if not isinstance(written, Mapping):
        return Distribution([(0, duration_us(name, written))], written)
    keys = [str(key) for key in written]
    if keys == ["uniform"]:
        return _from_points(name, _uniform(name, written["uniform"]), written)
    if keys == ["quantiles"] and isinstance(written["quantiles"], Mapping):
        return _from_points(name, _quantiles(name, written["quantiles"]), written)
    if len(keys) > 1 and all(_PERCENTILE.fullmatch(key) for key in keys):
        return _from_points(name, _percentiles(name, written), written)
    raise InputError(f"{name}: {dict(written)!r} is no distribution: expected {FORMS}")


def _uniform(name: str, written: Any) -> list[Point]:
    if not isinstance(written, list) or len(written) != 2:
        raise InputError(f"{name}: uniform: {written!r}: expected [least, most]")
    return [(Fraction(0), duration_us(name, written[0])), (Fraction(100), duration_us(name, written[1]))]


def _percentiles(name: str, written: Mapping[Any, Any]) -> list[Point]:
    points = sorted(
        (_percentage(f"{name}: {key}", str(key)[1:]), duration_us(f"{name}: {key}", value))
        for key, value in written.items()
    )
    (lowest, least_us), (_, below_us), (highest, most_us) = points[0], points[-2], points[-1]
    if lowest > 0:
        points.insert(0, (Fraction(0), least_us // 2))
    if highest < 100:
        points.append((Fraction(100), most_us + (most_us - below_us) // 2))
    return points


def _quantiles(name: str, written: Mapping[Any, Any]) -> list[Point]:
    points = sorted(
        (_percentage(f"{name}: quantiles", percent), duration_us(f"{name}: quantiles: {percent}", value))
        for percent, value in written.items()
    )
    if len(points) < 2 or points[0][0] != 0 or points[-1][0] != 100:
        raise InputError(f"{name}: quantiles: must begin at 0 and end at 100")
    return points


def _percentage(where: str, written: Any) -> Fraction:
    try:
        percent = Fraction(str(written)) if not isinstance(written, bool) else Fraction(-1)
    except ValueError:
        percent = Fraction(-1)
    if not 0 <= percent <= 100:
        raise InputError(f"{where}: {written!r} is no percentage from 0 to 100")
    return percent


def _from_points(name: str, points: list[Point], written: Any) -> Distribution:
    for (below, low), (percent, high) in pairwise(points):
        if percent == below:
            raise InputError(f"{name}: {float(percent):g} %: two values of one percentage")
        if high < low:
            raise InputError(f"{name}: the value at {float(percent):g} % is lower than the one before it")
    return Distribution([(int(percent * DRAW_SPAN / 100), value) for percent, value in points], written)
