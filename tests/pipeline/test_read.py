"""Finding traces, and reading what lies there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from groupstorm.pipeline.read import find_traces
from groupstorm.problems import InputError
from tests.figures.synthetic import trace
from tests.pipeline.traces import write_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = '{"seq":0,"time_us":0,"source":"world","event":"scenario_ended","group":"g"}'


def touch(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("", "utf-8")
    return file


def test_runs_are_named_by_their_folders(tmp_path: Path) -> None:
    for variant in ("static", "eager"):
        touch(tmp_path / "compare" / variant / "trace.jsonl")
    touch(tmp_path / "run-1" / "trace.parquet")
    touch(tmp_path / "served" / "trace-000000.jsonl")
    alone = touch(tmp_path / "alone.jsonl")
    run = tmp_path / "run-1"
    found = find_traces([tmp_path / "compare", run, tmp_path / "served", alone])
    assert list(found) == ["eager", "static", "run-1", "served", "alone"]
    assert found["eager"] == tmp_path / "compare" / "eager"
    assert find_traces([run / "trace.parquet"]) == {"run-1": run / "trace.parquet"}


def test_equal_names_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for folder in ("one/eager", "two/eager"):
        touch(tmp_path / folder / "trace.jsonl")
    found = find_traces([tmp_path / "one", tmp_path / "two"])
    assert list(found) == [str(tmp_path / "one" / "eager"), str(tmp_path / "two" / "eager")]
    with pytest.raises(InputError, match="named twice"):
        find_traces([tmp_path / "one", tmp_path / "one"])


def test_paths_without_a_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no trace found"):
        find_traces([tmp_path])
    with pytest.raises(InputError, match="no such file or folder"):
        find_traces([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="not a trace"):
        find_traces([touch(tmp_path / "figures.json")])


def test_odd_path_names(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes paths as patterns and tells them as URLs."""
    from groupstorm.pipeline.read import read_traces

    names = ["a b", "a+b", "50%", "[x]{y,z}*?", "größe", "a\\b"]
    for name in names:
        write_trace(trace(1, actions=1), tmp_path / name)
    rows = read_traces(spark, find_traces([tmp_path]))
    assert sorted(row["run"] for row in rows.select("run").distinct().collect()) == sorted(names)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([ROW, '{"seq":1'], r"trace.jsonl: line 2: not JSON"),
        ([ROW, '{"seq":1,"time_us":"soon","source":"world","event":"scenario_ended","group":"g"}'], "'soon'"),
        ([ROW, '{"seq":1,"time_us":3,"source":"world","group":"g"}'], "line 2: not a row of a trace"),
        ([ROW, '{"time_us":3,"source":"world","event":"scenario_ended","group":"g"}'], "no seq"),
        ([], "no rows"),
    ],
)
def test_what_is_no_trace(spark: SparkSession, tmp_path: Path, lines: list[str], message: str) -> None:
    from groupstorm.pipeline.read import read_traces

    (tmp_path / "trace.jsonl").write_text("".join(line + "\n" for line in lines), "utf-8")
    with pytest.raises(InputError, match=message):
        read_traces(spark, find_traces([tmp_path]))
