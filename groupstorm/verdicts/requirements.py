"""Requirements on figures, for gates in other people's CI: `unowned_max_seconds<5`, `generations==0 for 99%`.

A limit may have a unit: `unowned_max_seconds<5m`. `for 99%`: of the runs, so many have to meet it; without it
all have to.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from groupstorm.figures.table import Figures
from groupstorm.problems import InputError, not_one_of
from groupstorm.units import UNITS, UNITS_US

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_FORM = re.compile(
    r"\s*(\w+)\s*(<=|>=|==|<|>)\s*(-?\d+(?:\.\d+)?)([a-z]*)\s*(?:\bfor\s+(\d+(?:\.\d+)?)\s*%)?\s*"
)
#: The unit of a figure by the end of its name, in microseconds.
_UNITS_US = {"_seconds": 1_000_000, "_ms": 1000}


@dataclass(frozen=True, slots=True)
class Requirement:
    """``limit`` in the figure's own unit. ``share``: of the runs, in per cent."""

    figure: str
    comparison: str
    limit: float
    share: Fraction = Fraction(100)

    def is_met(self, figures: Figures) -> bool:
        value = getattr(figures, self.figure)
        return value is not None and COMPARISONS[self.comparison](value, self.limit)

    def unmet(self, figures: Figures) -> str | None:
        """A sentence when ``figures`` do not meet it, else None."""
        if self.is_met(figures):
            return None
        value = getattr(figures, self.figure)
        if value is None:
            return (
                f"{self.figure} has no value in this run, but {self.comparison} {self.limit:g} was required"
            )
        return f"{self.figure} is {value:g}, but {self.comparison} {self.limit:g} was required"

    def unmet_by(self, runs: Mapping[str, Figures]) -> list[str]:
        """Sentences when too few of ``runs``, by their names, meet it."""
        if not runs:
            return []
        failing = {name: sentence for name, run in runs.items() if (sentence := self.unmet(run)) is not None}
        met = len(runs) - len(failing)
        if met * 100 >= self.share * len(runs):
            return []
        if self.share == 100:
            return [f"{name}: {sentence}" for name, sentence in failing.items()]
        return [f"{self} was required, but {met} of {len(runs)} runs meet it"]

    def __str__(self) -> str:
        share = "" if self.share == 100 else f" for {float(self.share):g}%"
        return f"{self.figure}{self.comparison}{self.limit:g}{share}"


def parse(text: str, option: str = "--require") -> Requirement:
    """A requirement as it is written on the command line. Raises InputError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(
            f"{option} {text!r}: expected FIGURE<NUMBER (or <=, >, >=, ==), a unit (5m) and for 99% if wanted"
        )
    figure, comparison, limit, unit, share = match.groups()
    names = figures_with_numbers()
    if figure not in names:
        raise InputError(f"{option} {text!r}: no such figure: {not_one_of(figure, names, 100)}")
    of_runs = Fraction(share) if share else Fraction(100)
    if of_runs > 100:
        raise InputError(f"{option} {text!r}: {share}%: expected 100% at most")
    return Requirement(figure, comparison, _limit(f"{option} {text!r}", figure, limit, unit), of_runs)


def figures_with_numbers() -> list[str]:
    """The names of the figures that have one number each."""
    return [field.name for field in fields(Figures) if str(field.type).split(" ")[0] in ("int", "float")]


def _limit(where: str, figure: str, number: str, unit: str) -> float:
    if not unit:
        return float(number)
    own = next((of_end for end, of_end in _UNITS_US.items() if figure.endswith(end)), None)
    if own is None:
        raise InputError(f"{where}: {figure} is no time: expected a number without {unit!r}")
    if unit not in UNITS_US:
        raise InputError(f"{where}: {unit!r} is no unit: expected one of {UNITS}")
    return float(Fraction(number) * UNITS_US[unit] / own)
