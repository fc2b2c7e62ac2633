"""Whether the figures of two runs of one scenario agree, one in virtual and one in real time."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.figures.table import Figures

#: Times may differ by the larger of these two.
TOLERATED_SHARE = 0.1
TOLERATED_MS = 200.0

#: Figures that are one time, not a sum of many -> milliseconds in one of their unit.
TIMES = {
    "unowned_max_seconds": 1000,
    "unowned_p50_seconds": 1000,
    "unowned_p95_seconds": 1000,
    "nobody_consuming_seconds": 1000,
    "rebalance_latency_avg_ms": 1,
    "rebalance_latency_max_ms": 1,
    "settled_after_ms": 1,
}
#: Figures that have to be equal.
COUNTS = ("generations",)


class Judged(NamedTuple):
    """One figure of both runs."""

    figure: str
    virtual: float | None
    real: float | None
    agrees: bool


def judge(virtual: Figures, real: Figures) -> list[Judged]:
    """Every figure that is compared: counts have to be equal, times near each other."""
    judged = []
    for figure in COUNTS:
        one, other = getattr(virtual, figure), getattr(real, figure)
        judged.append(Judged(figure, one, other, one == other))
    for figure, milliseconds in TIMES.items():
        one, other = getattr(virtual, figure), getattr(real, figure)
        judged.append(Judged(figure, one, other, _near(one, other, milliseconds)))
    return judged


def _near(one: float | None, other: float | None, milliseconds: int) -> bool:
    if one is None or other is None:
        return one is other
    tolerated = max(TOLERATED_SHARE * max(abs(one), abs(other)), TOLERATED_MS / milliseconds)
    return abs(one - other) <= tolerated


def agreement_answer(judged: list[Judged]) -> str:
    """In a sentence."""
    differing = [one.figure for one in judged if not one.agrees]
    rule = "generations equal, every time within the larger of 10 % and 200 ms"
    if not differing:
        return f"Virtual and real time agree: {rule}."
    return f"Virtual and real time differ beyond the rule ({rule}) in {', '.join(differing)}."
