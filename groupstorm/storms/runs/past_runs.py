"""Finished runs: read back from their folders, and run again to compare them row by row.

A folder holds one run, those of several seeds, or a comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.runs.run import run
from groupstorm.storms.runs.run_folder import real_time_options
from groupstorm.storms.runs.several import COMPARISON_FILE
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import Row, read_entries, read_rows, trace_files
from groupstorm.yaml_documents import read_document

#: Keys that name a row, and how much of a row is printed.
_SHOWN = frozenset({"time_us", "event", "member"})
_MOST_CHARACTERS = 300
#: So much of what two texts have in common is printed before their difference.
_KEPT_CHARACTERS = 40


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
        figures = FiguresAccumulator(listener=gaps)
        figures.add_all(entry for _, entry in read_entries(self.folder) if entry is not None)
        figures.figures()  # which closes the gaps that are open
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
    found = figures_of(_mapping(figures, read_json(figures)))
    return PastRun(folder, _mapping(scenario, read_document(scenario)), found)


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


def replay(folder: Path, exact: bool, overrides: Mapping[str, Any]) -> int:
    """Run ``folder``'s scenario.yaml again; returns the number of rows.

    Raises CheckFailed naming the first row that differs, InputError for a folder that is no run's.
    """
    scenario_file = folder / "scenario.yaml"
    if not scenario_file.is_file():
        raise InputError(f"{folder}: no scenario.yaml in it: not the folder of a run")
    options = real_time_options(folder)
    if options:
        raise InputError(
            f"{folder}: ran in real time ({' '.join(options)}): no such run repeats to the event; "
            f"`groupstorm run {scenario_file} {' '.join(options)}` takes the same steps"
        )
    (trace,) = trace_files(folder)[:1]
    scenario = load(str(scenario_file)).resolve(None, None, overrides)
    with TemporaryDirectory(prefix="groupstorm-replay-") as temporary:
        again = run(scenario, Path(temporary) / "again", trace.suffix.removeprefix("."), exact)
        return compare_rows(read_rows(trace), read_rows(again.trace), str(folder))


def compare_rows(before: Iterable[Row], after: Iterable[Row], name: str) -> int:
    """Count the rows. Raises CheckFailed for the first that differs; ``name``: the run's."""
    count = 0
    for old, new in zip_longest(before, after):
        if old != new:
            raise CheckFailed(f"{name}: row {count} differs: was {_shown(old, new)}, is {_shown(new, old)}")
        count += 1
    return count


def _shown(row: Row | None, other: Row | None) -> str:
    """``row``, or what differs from ``other`` in it if both are of one event."""
    if row is None:
        return "missing"
    if other is None or row.get("event") != other.get("event"):
        return _short(row)
    differing = {key: value for key, value in row.items() if other.get(key) != value or key in _SHOWN}
    return _short({key: _from_difference(value, other.get(key)) for key, value in differing.items()})


def _from_difference(value: Any, other: Any) -> Any:
    """Cut what a text begins with as the other one does, but for the last characters of that."""
    if not isinstance(value, str) or not isinstance(other, str):
        return value
    alike = next((n for n, (one, two) in enumerate(zip(value, other, strict=False)) if one != two), 0)
    return f"...{value[alike - _KEPT_CHARACTERS :]}" if alike > _KEPT_CHARACTERS else value


def _short(row: Row) -> str:
    text = str(dict(row))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
