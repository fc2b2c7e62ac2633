"""The figures of a run: computed from its trace, one row after the other, in one pass.

`docs/figures.md` defines each figure. The rules of owners, gaps, rounds and progress are those of
`groupstorm.history`; here are their totals and the words for them. Storms and both engines of
`groupstorm analyze` compute figures with this package, and with nothing else.
"""

from __future__ import annotations

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.answer import answer
from groupstorm.figures.table import Figures

__all__ = ["Figures", "FiguresAccumulator", "answer"]
