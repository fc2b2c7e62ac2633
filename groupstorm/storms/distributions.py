"""Distributions of durations, drawn in integer arithmetic from their quantiles.

A distribution is written in milliseconds: a number (always that), `{uniform: [a, b]}`,
`{p50: a, p95: b}` or `{quantiles: {0: a, 50: b, 95: c, 100: d}}`; between quantiles it is linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.randomness import DRAW_SPAN

FORMS = "a number, {uniform: [a, b]}, {p50: a, p95: b} or {quantiles: {0: a, 50: b, 100: c}}"


class Distribution:
    """Durations in microseconds; `at(draw)` turns a draw of a `Stream` into one."""

    __slots__ = ("_bounds", "_pieces", "_quantiles", "as_written", "is_constant", "largest_us")

    def __init__(self, quantiles: list[tuple[int, int]], as_written: Any) -> None:
        """``quantiles``: (share of DRAW_SPAN, microseconds), the shares rising from 0."""
        #: What the scenario said, for the resolved scenario.
        self.as_written = as_written
        self.largest_us = quantiles[-1][1]
        #: Every draw gives `largest_us`: none is needed.
        self.is_constant = quantiles[0][1] == self.largest_us
        #: Between two quantiles: from which share and duration on, how far both go up.
        self._pieces = [(low, a, b - a, high - low) for (low, a), (high, b) in pairwise(quantiles)]
        if not self._pieces:
            self._pieces = [(0, self.largest_us, 0, 1)]
        self._bounds = [low for low, *_ in self._pieces[1:]]
        self._quantiles = quantiles

    def __reduce__(self) -> tuple[Any, ...]:
        """Runs travel between processes; a compiled class has to say how it is made again."""
        return Distribution, (self._quantiles, self.as_written)

    def at(self, draw: int) -> int:
        low, least_us, more_us, width = self._pieces[bisect_right(self._bounds, draw)]
        return least_us + more_us * (draw - low) // width


def parse(name: str, written: Any) -> Distribution:
    """A distribution from a scenario's value. Raises InputError naming the setting."""
    if isinstance(written, Mapping) and len(written) >= 1:
        keys = {str(key) for key in written}
        if keys == {"uniform"}:
            return _from_points(name, _uniform(name, written["uniform"]), written)
        if keys == {"p50", "p95"}:
            p50, p95 = duration_us(name, written["p50"]), duration_us(name, written["p95"])
            points = [(0, p50 // 2), (50, p50), (95, p95), (100, p95 + (p95 - p50) // 2)]
            return _from_points(name, points, written)
        if keys == {"quantiles"} and isinstance(written["quantiles"], Mapping):
            return _from_points(name, _quantiles(name, written["quantiles"]), written)
        raise InputError(f"{name}: {dict(written)!r} is no distribution: expected {FORMS}")
    return Distribution([(0, duration_us(name, written))], written)


def duration_us(name: str, written: Any) -> int:
    """Milliseconds as written (a fraction is fine) -> microseconds. Raises InputError."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        raise InputError(f"{name}: {written!r} is no duration: expected milliseconds, or {FORMS}")
    try:
        value = Decimal(str(written)) * 1000
    except InvalidOperation as error:
        raise InputError(f"{name}: {written!r} is no number of milliseconds") from error
    if not value.is_finite() or value < 0:
        raise InputError(f"{name}: {written!r}: a duration cannot be negative or infinite")
    return int(value)


def _uniform(name: str, written: Any) -> list[tuple[int, int]]:
    if not isinstance(written, list) or len(written) != 2:
        raise InputError(f"{name}: uniform: {written!r}: expected [least, most] in milliseconds")
    return [(0, duration_us(name, written[0])), (100, duration_us(name, written[1]))]


def _quantiles(name: str, written: Mapping[Any, Any]) -> list[tuple[int, int]]:
    points = []
    for percent, value in written.items():
        if isinstance(percent, bool) or not isinstance(percent, int) or not 0 <= percent <= 100:
            raise InputError(f"{name}: quantiles: {percent!r} is no whole percentage from 0 to 100")
        points.append((percent, duration_us(name, value)))
    points.sort()
    if len(points) < 2 or points[0][0] != 0 or points[-1][0] != 100:
        raise InputError(f"{name}: quantiles: must begin at 0 and end at 100")
    return points


def _from_points(name: str, points: list[tuple[int, int]], written: Any) -> Distribution:
    for (_, low), (percent, high) in pairwise(points):
        if high < low:
            raise InputError(f"{name}: the value at {percent} % is lower than the one before it")
    return Distribution([(percent * DRAW_SPAN // 100, value) for percent, value in points], written)
