"""Replays: a run's own scenario, run again and compared row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.runs.run import run
from groupstorm.storms.runs.run_folder import real_time_options
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import Row, read_rows, trace_files

#: Keys that name a row, and how much of a row is printed.
_SHOWN = frozenset({"time_us", "event", "member"})
_MOST_CHARACTERS = 300


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
    return _short({key: value for key, value in row.items() if other.get(key) != value or key in _SHOWN})


def _short(row: Row) -> str:
    text = str(dict(row))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
