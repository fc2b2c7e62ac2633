"""Randomness by counter, and distributions of durations that are drawn with it.

A draw depends on the seed, a stream's name and an index, never on earlier draws: if one mode skips a draw
(for a heartbeat that is only computed), no other draw changes. All arithmetic is on integers: the same seed
gives the same numbers in any process on any machine.

A distribution is written in milliseconds or with units: a number or `20s` or `{exactly: 20s}` (every draw
gives it), `{uniform: [a, b]}`, `{p50: a, p95: b}` or `{quantiles: {0: a, 50: b, 99.9: c, 100: d}}`; between
quantiles it is linear. With `p50` and the like, the least value is half the lowest one's, and the largest
lies half the distance between the two highest above the highest (`p0` and `p100` say otherwise).

Of what never takes equally long twice (the start of a pod), a single number is the median: see `SPREAD`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from groupstorm.problems import InputError
from groupstorm.units import duration_us

if TYPE_CHECKING:
    from mypy_extensions import i64


# SplitMix64 is arithmetic of 64 bits. Intermediate values may exceed 64 bits: the low 64 bits of the result
# do not depend on the high ones. If the module is compiled, values are signed 64-bit integers. So the
# constants are signed, and a shift to the right masks the bits that it needs.
_GOLDEN: Final = -0x61C8_8646_80B5_83EB  # 2^64 / golden ratio
_FIRST: Final = -0x40A7_B892_E31B_1A47
_SECOND: Final = -0x6B2F_B644_ECCE_EE15

#: Draws lie in [0, DRAW_SPAN).
DRAW_BITS: Final = 32
DRAW_SPAN: Final = 1 << DRAW_BITS


class Stream:
    """The random numbers of one purpose: `at(k)` is the k-th, in any order and as often as wanted."""

    __slots__ = ("_base",)

    def __init__(self, seed: int, *name: str | int) -> None:
        text = "/".join(str(part) for part in (seed, *name))
        digest = blake2b(text.encode(), digest_size=8).digest()
        self._base: i64 = int.from_bytes(digest, "big", signed=True)

    def at(self, index: i64) -> int:
        """An integer in [0, DRAW_SPAN), from SplitMix64's finaliser; ``index`` has at most 63 bits."""
        z: i64 = self._base + index * _GOLDEN
        z = (z ^ (z >> 30 & 0x3_FFFF_FFFF)) * _FIRST
        z = (z ^ (z >> 27 & 0x1F_FFFF_FFFF)) * _SECOND
        return (z ^ (z >> 31 & 0x1_FFFF_FFFF)) >> 32 & 0xFFFF_FFFF

    def pair(self, index: i64) -> tuple[int, int]:
        """Two integers in [0, DRAW_SPAN) for the price of one; the first is `at(index)`."""
        z: i64 = self._base + index * _GOLDEN
        z = (z ^ (z >> 30 & 0x3_FFFF_FFFF)) * _FIRST
        z = (z ^ (z >> 27 & 0x1F_FFFF_FFFF)) * _SECOND
        z ^= z >> 31 & 0x1_FFFF_FFFF
        return z >> 32 & 0xFFFF_FFFF, z & 0xFFFF_FFFF


FORMS = (
    "a number, 20s, {exactly: 20s}, {uniform: [a, b]}, {p50: a, p95: b} or {quantiles: {0: a, 50: b, 100: c}}"
)

#: Quantiles of a duration that varies and that is written as one number, in per cent of it. Pods that take
#: exactly equally long move in step: one round serves many of them, which no cluster shows.
SPREAD: Final = ((0, 90), (50, 100), (95, 110), (100, 120))

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


def parse_distribution(name: str, written: Any) -> Distribution:
    """Read a distribution. Raises InputError with the name of the setting."""
    if not isinstance(written, Mapping):
        return Distribution([(0, duration_us(name, written))], written)
    keys = [str(key) for key in written]
    if keys == ["exactly"]:
        return Distribution([(0, duration_us(name, written["exactly"]))], written)
    if keys == ["uniform"]:
        return _from_points(name, _uniform(name, written["uniform"]), written)
    if keys == ["quantiles"] and isinstance(written["quantiles"], Mapping):
        return _from_points(name, _quantiles(name, written["quantiles"]), written)
    if len(keys) > 1 and all(_PERCENTILE.fullmatch(key) for key in keys):
        return _from_points(name, _percentiles(name, written), written)
    raise InputError(f"{name}: {dict(written)!r} is no distribution: expected {FORMS}")


def parse_varying(name: str, written: Any) -> Distribution:
    """As `parse_distribution`, but a single number has the quantiles of `SPREAD`."""
    if isinstance(written, Mapping):
        return parse_distribution(name, written)
    middle_us = duration_us(name, written)
    points = [(Fraction(share), middle_us * percent // 100) for share, percent in SPREAD]
    return _from_points(name, points, written) if middle_us else parse_distribution(name, written)


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
