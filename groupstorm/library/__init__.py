"""groupstorm from Python: storms, comparisons and sweeps as objects, without a folder.

`groupstorm.run`, `compare`, `sweep` and `read` are the functions of this room. docs/library.md shows them.
"""

from __future__ import annotations

from groupstorm.library.comparison import Comparison, compare
from groupstorm.library.reading import read
from groupstorm.library.run_result import RunResult, run
from groupstorm.library.sweep_result import Knee, SweepResult, sweep

__all__ = ["Comparison", "Knee", "RunResult", "SweepResult", "compare", "read", "run", "sweep"]
