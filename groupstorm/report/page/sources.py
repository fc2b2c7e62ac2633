"""The sources of a report: traces by name, the figures of other seeds, comparisons and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupstorm.figures import Figures
from groupstorm.pipeline.read import find_traces
from groupstorm.problems import InputError
from groupstorm.report.sweeps import SWEEP_FILE
from groupstorm.storms.runs.several import COMPARISON_FILE, read_json, read_runs
from groupstorm.verdicts.measures import BY_KEY


@dataclass(slots=True)
class Sources:
    """``traces``: run name -> trace. ``seeds``: run name -> figures of all seeds, if there are several.

    ``answer``: of a comparison; "" if there is none, or more than one. ``rank``: its weights, if it has
    a ranking of its own. ``sweeps``: their contents, by path.
    """

    traces: dict[str, Path] = field(default_factory=dict)
    seeds: dict[str, list[Figures]] = field(default_factory=dict)
    answer: str = ""
    rank: Mapping[str, float] | None = None
    sweeps: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def find_sources(paths: Sequence[Path]) -> Sources:
    """Raises InputError for a path with neither a trace nor a comparison nor a sweep."""
    found = Sources()
    singles: list[Path] = []
    comparisons = []
    for path in paths:
        sweep = path / SWEEP_FILE if path.is_dir() else path
        if sweep.name == SWEEP_FILE and sweep.is_file():
            found.sweeps[str(path)] = _read_sweep(sweep)
        elif (path / COMPARISON_FILE).is_file():
            comparisons.append(path)
        else:
            singles.append(path)
    if singles:
        found.traces |= find_traces(singles)
    for path in comparisons:
        for variant, runs in read_runs(path).items():
            name = variant if len(paths) == 1 else f"{path.name}/{variant}"
            found.traces[name] = runs[0].folder
            if len(runs) > 1:
                found.seeds[name] = [run.figures for run in runs]
    if len(comparisons) == 1 == len(paths):
        comparison = _read_object(comparisons[0] / COMPARISON_FILE)
        found.answer, found.rank = str(comparison.get("answer", "")), _ranking(comparison)
    return found


def _ranking(comparison: Mapping[str, Any]) -> Mapping[str, float] | None:
    """The figures by which the comparison ranks, as far as this version knows them."""
    rank = comparison.get("rank")
    return {key: rank[key] for key in rank if key in BY_KEY} if isinstance(rank, dict) else None


def _read_sweep(file: Path) -> Mapping[str, Any]:
    content = _read_object(file)
    for name in ("preset", "over", "points", "knees", "figure", "answer"):
        if name not in content:
            raise InputError(f"{file}: not a sweep that groupstorm has written: {name} is missing")
    return content


def _read_object(file: Path) -> Mapping[str, Any]:
    content = read_json(file)
    if not isinstance(content, dict):
        raise InputError(f"{file}: expected a JSON object")
    return content
