"""The figures of a run: computed from its trace, one row after the other, in one pass.

`docs/figures.md` says what each figure is. Here are the rules, one file per idea; `groupstorm.pipeline`
computes the same figures on Spark, and a test holds the two together.
"""

from __future__ import annotations

from groupstorm.storms.figures.accumulator import FiguresAccumulator, figures_by_group
from groupstorm.storms.figures.answer import answer
from groupstorm.storms.figures.comparison import compare_answer
from groupstorm.storms.figures.table import Figures

__all__ = ["Figures", "FiguresAccumulator", "answer", "compare_answer", "figures_by_group"]
