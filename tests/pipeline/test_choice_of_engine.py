"""Which engine computes an analysis, what it is asked for, and where its tables go; Spark is played."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from groupstorm.pipeline import analysis, session
from groupstorm.pipeline.analysis import Engine, analyze, weight
from groupstorm.pipeline.java import MINIMUM_JAVA
from groupstorm.pipeline.local import analyze_locally
from groupstorm.pipeline.results import Request
from groupstorm.problems import InputError
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.synthetic_rows import TracedRow
from tests.pipeline.traces import write_trace

CLUSTER = "spark://there:7077"


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    rows: list[TracedRow] = [
        (0, Source.WORLD, world_events.ScenarioStarted("g", "{}", ("t-0",), 10, 10)),
        (5, Source.WORLD, world_events.ScenarioEnded("g")),
    ]
    write_trace(rows, tmp_path / "run", with_figures=True)
    return Request({"run": tmp_path / "run"})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Spark was asked for: bytes and master of each session, and the names of written folders."""
    engine = pytest.importorskip("groupstorm.pipeline.spark", reason="needs PySpark")
    calls: list[Any] = []

    @contextmanager
    def play(trace_bytes: int, master: str) -> Iterator[str]:
        calls.append((trace_bytes, master))
        yield "session"

    def write(_spark: str, tables: str, _figures: Any, folder: Path) -> None:
        calls.append(tables)
        for name in ("figures", "intervals", "handovers", "rounds", "members"):
            (folder / name).mkdir()

    monkeypatch.setattr(session, "spark_session", play)
    monkeypatch.setattr(engine, "analyze_on_spark", lambda _spark, one: (analyze_locally(one)[0], "tables"))
    monkeypatch.setattr(engine, "write_tables", write)
    return calls


def weighing(monkeypatch: pytest.MonkeyPatch, trace_bytes: int) -> None:
    monkeypatch.setattr(analysis, "weight", lambda _traces: trace_bytes)


def test_the_local_engine_takes_traces_of_up_to_100_mb(
    request_: Request, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    weighing(monkeypatch, 100_000_000)
    assert analyze(request_).engine == "local"
    assert analyze(request_, Engine.SPARK).engine == "spark"
    weighing(monkeypatch, 100_000_001)
    assert analyze(request_, Engine.LOCAL).engine == "local"
    found = analyze(request_)
    assert (found.engine, found.confirmed, list(found.figures)) == ("spark", ["run"], ["run"])
    assert asked == [(100_000_000, "local[*]"), (100_000_001, "local[*]")]


def test_a_cluster_is_always_sparks(request_: Request, asked: list[Any]) -> None:
    assert analyze(request_, master=CLUSTER).engine == "spark"
    assert analyze(request_, Engine.SPARK, CLUSTER).engine == "spark"
    assert [master for _, master in asked] == [CLUSTER, CLUSTER]
    with pytest.raises(InputError, match="--engine local: expected no --master"):
        analyze(request_, Engine.LOCAL, CLUSTER)


def test_sparks_tables_are_written_if_a_folder_is_named(
    request_: Request, asked: list[Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    analyze(Request(request_.traces, out=out), Engine.SPARK)
    assert asked[1:] == ["tables"]
    assert sorted(folder.name for folder in out.iterdir()) == [
        "figures", "handovers", "intervals", "members", "rounds",
    ]  # fmt: skip


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
    monkeypatch.setattr(analysis, "analyze_locally", None)
    with pytest.raises(InputError, match=r"cannot be written: expected a folder that you may write to"):
        analyze(Request(request_.traces, out=tmp_path / "new" / "out"), Engine.LOCAL)


def test_spark_4_needs_java_17() -> None:
    assert MINIMUM_JAVA == 17
