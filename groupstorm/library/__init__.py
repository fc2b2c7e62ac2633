"""groupstorm from Python: storms, comparisons and sweeps as objects, without a folder.

`groupstorm.run`, `compare`, `sweep` and `read` are the functions of this room. docs/library.md shows them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupstorm.library.comparison import Comparison, compare
from groupstorm.library.run_result import OnDisk, RunResult, run
from groupstorm.library.sweep_result import Knee, SweepResult, sweep
from groupstorm.problems import InputError
from groupstorm.report.sweeps import SWEEP_FILE
from groupstorm.storms.runs.several import COMPARISON_FILE, PastRun, read_json, read_runs
from groupstorm.trace.reader import SUFFIXES, trace_files
from groupstorm.verdicts.comparison import compare_answer

__all__ = ["Comparison", "Knee", "RunResult", "SweepResult", "compare", "read", "run", "sweep"]


def read(path: str | os.PathLike[str], group: str | None = None) -> RunResult | Comparison | SweepResult:
    """Read what a command or `save` wrote: a run, its seeds, a comparison, a sweep, or any trace.

    ``path``: a folder of `groupstorm run`, `compare`, `sweep`, `import`, `capture` or `serve --trace`, or
    one of its files. ``group``: the group that counts, if a trace has several.

    Figures of runs are those of figures.json; of other traces they are computed from the rows.
    Raises `groupstorm.problems.InputError`, which names the file and what was expected.

    >>> import groupstorm
    >>> folder = groupstorm.run("cold-start", settings={"members": 12}).save("cold-start")
    >>> groupstorm.read(folder)
    <RunResult cold-start (delay-3s), seed 0>
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: {path!r}: expected a path")
    place = Path(path)
    if place.name in (SWEEP_FILE, COMPARISON_FILE) and place.is_file():
        place = place.parent
    found = _read_summary(place)
    if found is None:
        return _read_run(place, group)
    if group is not None:
        raise InputError(f"group: {group!r}: {place} has runs of one group each: expected no group")
    return found


def _read_summary(place: Path) -> Comparison | SweepResult | None:
    """A result of several runs; None if there is one run, or a trace."""
    if (place / SWEEP_FILE).is_file():
        return _read_sweep(place / SWEEP_FILE)
    if place.suffix in SUFFIXES or (place / "scenario.yaml").is_file():
        return None
    if place.is_dir() and not any(place.glob("trace*")):
        return _read_comparison(place)
    return None


def _read_sweep(file: Path) -> SweepResult:
    content = read_json(file)
    try:
        return SweepResult(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{file}: not a sweep of this version: {error}") from error


def _read_comparison(folder: Path) -> Comparison:
    past = read_runs(folder)
    runs = {variant: [_past(one) for one in each] for variant, each in past.items()}
    file = folder / COMPARISON_FILE
    if not file.is_file():
        figures = {variant: [run.figures for run in each] for variant, each in runs.items()}
        return Comparison(runs, compare_answer(figures), None)
    content: dict[str, Any] = read_json(file)
    return Comparison(runs, str(content.get("answer", "")), content)


def _past(run: PastRun, groups: Sequence[str] = ()) -> RunResult:
    figures = None if groups else run.figures
    return RunResult(OnDisk(run.folder), scenario=run.scenario, figures=figures, groups=groups)


def _read_run(place: Path, group: str | None) -> RunResult:
    groups = () if group is None else (group,)
    if (place / "scenario.yaml").is_file():
        ((run,),) = read_runs(place).values()
        result = _past(run, groups)
    else:
        trace_files(place)  # raises if there is none
        result = RunResult(OnDisk(place), scenario=None, figures=None, groups=groups)
    result.check_groups()
    return result
