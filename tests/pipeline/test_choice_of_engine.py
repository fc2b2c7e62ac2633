"""The weight of a trace, which decides on the engine, and a folder that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groupstorm.pipeline.analysis import Engine, analyze, weight
from groupstorm.pipeline.results import Request
from groupstorm.problems import InputError
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.synthetic_rows import TracedRow
from tests.pipeline.traces import write_trace


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    rows: list[TracedRow] = [
        (0, Source.WORLD, world_events.ScenarioStarted("g", "{}", ("t-0",), 10, 10)),
        (5, Source.WORLD, world_events.ScenarioEnded("g")),
    ]
    write_trace(rows, tmp_path / "run", with_figures=True)
    return Request({"run": tmp_path / "run"})


def test_a_byte_of_parquet_weighs_as_much_as_twenty_of_json_lines(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "trace-000000.jsonl").write_bytes(b"1234567")
    (tmp_path / "one" / "trace-000001.jsonl").write_bytes(b"123")
    (tmp_path / "trace.parquet").write_bytes(b"12")
    assert weight({"one": tmp_path / "one"}) == 10
    assert weight({"one": tmp_path / "one", "two": tmp_path / "trace.parquet"}) == 10 + 2 * 20


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_computed(
    request_: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == tmp_path and mode == os.W_OK))
    with pytest.raises(InputError, match=r"cannot be written: expected a folder that you may write to"):
        analyze(Request(request_.traces, out=tmp_path / "new" / "out"), Engine.LOCAL)
