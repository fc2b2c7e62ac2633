"""Requirements on figures, for gates in other people's CI: `unowned_max_seconds<5`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from groupstorm.problems import InputError
from groupstorm.storms.figures import Figures

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|==|<|>)\s*(-?\d+(?:\.\d+)?)\s*")
_NO_NUMBERS = ("answer", "invariants", "requests", "errors", "commits_rejected")


@dataclass(frozen=True, slots=True)
class Requirement:
    figure: str
    comparison: str
    limit: float

    def unmet(self, figures: Figures) -> str | None:
        """A sentence when ``figures`` do not meet it, else None."""
        value = getattr(figures, self.figure)
        if value is None:
            return (
                f"{self.figure} has no value in this run, but {self.comparison} {self.limit:g} was required"
            )
        if COMPARISONS[self.comparison](value, self.limit):
            return None
        return f"{self.figure} is {value:g}, but {self.comparison} {self.limit:g} was required"


def parse(text: str) -> Requirement:
    """A requirement as it is written on the command line. Raises InputError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--require {text!r}: expected FIGURE<NUMBER (or <=, >, >=, ==)")
    figure, comparison, limit = match.groups()
    names = [field.name for field in fields(Figures) if field.name not in _NO_NUMBERS]
    if figure not in names:
        raise InputError(f"--require {text!r}: {figure!r} is no figure: {', '.join(names)}")
    return Requirement(figure, comparison, float(limit))
