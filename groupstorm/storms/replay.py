"""Replays: a run's own scenario, run again and compared row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import Row, read_rows, trace_files


def replay(folder: Path, exact: bool, overrides: Mapping[str, Any]) -> int:
    """Run ``folder``'s scenario.yaml again; returns the number of rows.

    Raises CheckFailed naming the first row that differs, InputError for a folder that is no run's.
    """
    scenario_file = folder / "scenario.yaml"
    if not scenario_file.is_file():
        raise InputError(f"{folder}: no scenario.yaml in it: not the folder of a run")
    (trace,) = trace_files(folder)[:1]
    scenario = load(str(scenario_file)).resolve(None, None, overrides)
    with TemporaryDirectory(prefix="groupstorm-replay-") as temporary:
        again = run(scenario, Path(temporary) / "again", trace.suffix.removeprefix("."), exact)
        return compare_rows(read_rows(trace), read_rows(again.trace), str(folder))


def compare_rows(before: Iterable[Row], after: Iterable[Row], name: str) -> int:
    """How many rows there are. Raises CheckFailed for the first that differs; ``name``: the run's."""
    count = 0
    for old, new in zip_longest(before, after):
        if old != new:
            raise CheckFailed(f"{name}: row {count} differs: was {_shown(old)}, is {_shown(new)}")
        count += 1
    return count


def _shown(row: Row | None) -> str:
    return "missing" if row is None else str(dict(row))
