"""Finished runs read back from their folders: of one run, of several seeds, or of a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from groupstorm.figures import Figures
from groupstorm.figures.reasons import GapReasons, Reasons
from groupstorm.problems import InputError
from groupstorm.storms.runs.several import COMPARISON_FILE
from groupstorm.trace.reader import read_entries, trace_files
from groupstorm.yaml_documents import read_document


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run: its scenario as scenario.yaml has it, and its figures."""

    folder: Path
    scenario: Mapping[str, Any]
    figures: Figures

    def reasons(self) -> Reasons:
        """The reasons why partitions were un-owned, by the trace; none if the trace is gone."""
        gaps = GapReasons()
        try:
            trace_files(self.folder)
        except InputError:
            return Reasons()
        for _, entry in read_entries(self.folder):
            if entry is not None:
                gaps.add(*entry)
        return gaps.reasons()


def read_runs(folder: Path) -> dict[str, list[PastRun]]:
    """The runs in a folder by their variants, one of each seed. Raises InputError if there are none."""
    if (folder / "scenario.yaml").is_file():
        run = _read_run(folder)
        return {_variant(run): [run]}
    seeds = _runs_of_seeds(folder)
    if seeds:
        return {_variant(seeds[0]): seeds}
    comparison = folder / COMPARISON_FILE
    if not comparison.is_file():
        raise InputError(f"{folder}: not the folder of a run, of its seeds, or of a comparison")
    found = {}
    for name in _mapping(comparison, read_json(comparison).get("variants")):
        below = folder / name
        found[name] = [_read_run(below)] if (below / "scenario.yaml").is_file() else _runs_of_seeds(below)
        if not found[name]:
            raise InputError(f"{below}: {COMPARISON_FILE} names this variant, but its run is not there")
    return found


def _runs_of_seeds(folder: Path) -> list[PastRun]:
    below = [path for path in folder.glob("seed-*") if (path / "scenario.yaml").is_file()]
    return sorted(map(_read_run, below), key=lambda run: int(run.scenario.get("seed", 0)))


def _variant(run: PastRun) -> str:
    return str(run.scenario.get("variant", "default"))


def _read_run(folder: Path) -> PastRun:
    scenario, figures = folder / "scenario.yaml", folder / "figures.json"
    return PastRun(folder, _mapping(scenario, read_document(scenario)), _figures(figures))


def _figures(path: Path) -> Figures:
    return figures_of(_mapping(path, read_json(path)))


def figures_of(content: Mapping[str, Any]) -> Figures:
    """Figures from their JSON; None for those that an older version did not have."""
    known: dict[str, Any] = {field.name: content.get(field.name) for field in fields(Figures)}
    return Figures(**known)


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises InputError."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error


def _mapping(path: Path, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected names with values")
    return value


def pair(
    first: Mapping[str, Sequence[PastRun]], second: Mapping[str, Sequence[PastRun]]
) -> list[tuple[str, str]]:
    """The pairs of variants of two folders that are compared. Raises InputError if there is none.

    Two folders of one variant each are compared whatever their names; else variants of the same name are.
    """
    if len(first) == len(second) == 1:
        return [(next(iter(first)), next(iter(second)))]
    common = [(name, name) for name in first if name in second]
    if not common:
        raise InputError(f"no variant in common: {', '.join(first)} and {', '.join(second)}")
    return common
