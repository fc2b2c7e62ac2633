"""Helpers of the tests of lanes: traces of storms, of hand-written rows, of the coordinator alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from groupstorm.explain.explanation import Explanation, explain
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.report.lanes.picture import Picture, Recording, picture
from groupstorm.trace.reader import Row, read_rows
from groupstorm.trace.rows import as_mapping
from tests.figures.tracing import Trace


def write_rows(folder: Path, rows: Iterable[Row]) -> Path:
    """A trace of these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(dict(row) | {"seq": seq}) for seq, row in enumerate(rows))
    (folder / "trace.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def written(folder: Path, trace: Trace) -> Path:
    """A hand-written trace in a folder."""
    rows = sorted(trace.rows, key=lambda row: row[0])
    return write_rows(folder, (as_mapping(seq, *row) for seq, row in enumerate(rows)))


def of_coordinator(run: Path, folder: Path) -> Path:
    """Return what `serve --trace` would have written of a storm: the rows of the coordinator."""
    return write_rows(folder, (row for row in read_rows(run) if row["source"] == "coordinator"))


def recorded(trace: Path, window: Window = WHOLE) -> tuple[Explanation, Recording]:
    """The explanation and the lanes of a trace with one group."""
    found: list[Recording] = []

    def reader(_group: str, _from_us: int) -> Recording:
        found.append(Recording())
        return found[-1]

    (one,) = explain(trace, window=window, reader=reader)
    return one, found[0]


def drawn(trace: Path, width: int = 80, window: Window = WHOLE) -> Picture:
    return picture(*recorded(trace, window), width, window.from_us)


def cells(one: Picture) -> dict[str, str]:
    """Label -> what is drawn behind it."""
    return {line.label.strip(): line.cells for line in one.lines}
