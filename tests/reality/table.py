"""The table "how far is the answer from reality": five real runs beside ten seeds in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.world.simulation import simulate
from tests.reality.cases import CASES, FIGURES, Case
from tests.reality.measure import Measured
from tests.storms.storms_in_memory import MemorySink

_SHARE = 0.1
#: Virtual runs of each case: the first five have the times of the real ones, and the others later ones.
SEEDS = range(10)

INSIDE, NEAR, OUTSIDE, UNKNOWN = "inside", "near", "outside", "not known"


class Line(NamedTuple):
    """One figure of one case: the values of the virtual seeds and of the real runs, in order."""

    case: str
    library: str
    figure: str
    virtual: Sequence[float]
    real: Sequence[float]

    @property
    def verdict(self) -> str:
        """Inside: one side's median is in the other's range. Near: the medians are as good as equal."""
        if not self.real or not self.virtual:
            return UNKNOWN
        ours, theirs = median(self.virtual), median(self.real)
        if self.virtual[0] <= theirs <= self.virtual[-1] or self.real[0] <= ours <= self.real[-1]:
            return INSIDE
        tolerated = max(FIGURES[self.figure], _SHARE * max(abs(ours), abs(theirs)))
        return NEAR if abs(ours - theirs) <= tolerated else OUTSIDE


def lines(measured: Measured) -> Iterator[Line]:
    """All lines of the cases that were measured, in the order of `CASES`."""
    for case in CASES:
        for name in case.libraries:
            runs = measured.get(case.name, {}).get(name, {})
            if runs:
                yield from _lines_of(case, name, [*runs.values()])


def _lines_of(case: Case, name: str, real: Sequence[Mapping[str, float | None]]) -> Iterator[Line]:
    virtual = [_virtual(case, name, seed) for seed in SEEDS]
    for figure in FIGURES:
        yield Line(case.name, name, figure, _sorted(virtual, figure), _sorted(real, figure))


def _sorted(runs: Sequence[Mapping[str, float | None]], figure: str) -> list[float]:
    return sorted(value for run in runs if (value := run[figure]) is not None)


def _virtual(case: Case, name: str, seed: int) -> Mapping[str, float | None]:
    scenario = case.scenario(name, seed)
    return simulate(scenario, chosen_assignors(scenario), MemorySink()).to_json()


def markdown(all_lines: Sequence[Line]) -> list[str]:
    """The summary by figure, then the medians that are neither inside nor near."""
    return [*_summary(all_lines), "", *_outside(all_lines)]


def _summary(all_lines: Sequence[Line]) -> Iterator[str]:
    yield "| figure | of cases and libraries | inside | near | outside |"
    yield "|---|---:|---:|---:|---:|"
    for figure in FIGURES:
        of_figure = [line.verdict for line in all_lines if line.figure == figure]
        counts = [of_figure.count(verdict) for verdict in (INSIDE, NEAR, OUTSIDE)]
        yield f"| `{figure}` | {sum(counts)} | {' | '.join(map(str, counts))} |"


def _outside(all_lines: Sequence[Line]) -> Iterator[str]:
    yield "| outside | library | figure | real | virtual |"
    yield "|---|---|---|---:|---:|"
    for line in all_lines:
        if line.verdict == OUTSIDE:
            cells = (line.case, line.library, f"`{line.figure}`", _spread(line.real), _spread(line.virtual))
            yield f"| {' | '.join(cells)} |"


def _spread(values: Sequence[float]) -> str:
    """The median and the range of values in order."""
    if not values:
        return "-"
    if values[0] == values[-1]:
        return _number(values[0])
    return f"{_number(median(values))} ({_number(values[0])} to {_number(values[-1])})"


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
