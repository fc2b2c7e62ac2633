"""The local engine at the edges: the first instant, deletions before owners are complete, several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import TABLES
from groupstorm.pipeline.trace_fold import read_groups
from groupstorm.problems import InputError
from groupstorm.trace.reader import read_entries
from tests.figures.tracing import SECOND, Trace, coordinator_trace
from tests.pipeline.traces import write_trace


def tables_of(trace: Trace, folder: Path, table: str) -> list[dict[str, Any]]:
    write_trace(trace.rows, folder)
    content = read_groups(read_entries(folder))
    rows = [row for tables in content.tables.values() for row in tables.rows(table)]
    return [dict(zip(TABLES[table], row, strict=True)) for row in rows]


def test_a_trace_that_ends_at_its_first_instant_is_one(tmp_path: Path) -> None:
    trace = Trace.begun("t-0")
    assert tables_of(trace, tmp_path / "r", "handovers") == []


def test_a_group_that_is_created_was_not_away_before(tmp_path: Path) -> None:
    trace = coordinator_trace("cooperative-sticky")
    trace.rows[:0] = []
    created = Trace(has_member_rows=False)
    created.create(0, "join")
    created.rows += trace.rows
    created.sync(14, "b", 2, "t-1")
    gaps = tables_of(created, tmp_path / "r", "handovers")
    assert [(gap["partition"], gap["gap_us"]) for gap in gaps] == [("t-1", SECOND)]


def test_a_file_that_is_named_like_a_trace_is_no_folder_of_runs(tmp_path: Path) -> None:
    trace = Trace.begun("t-0")
    write_trace(trace.rows, tmp_path / "all" / "run")
    (tmp_path / "all" / "empty").mkdir()
    (tmp_path / "all" / "empty" / "notes.txt").write_text("no trace")
    assert list(find_traces([tmp_path / "all"])) == ["run"]
    with pytest.raises(InputError, match="neither in it nor below it"):
        find_traces([tmp_path / "all" / "empty"])
