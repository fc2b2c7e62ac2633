"""Finding traces, and reading what lies there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from groupstorm.pipeline.analysis import Engine, analyze
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import Request
from groupstorm.problems import InputError
from groupstorm.trace.parquet import arrow_schema
from groupstorm.trace.schema import VERSION_KEY
from tests.figures.synthetic import trace
from tests.pipeline.traces import write_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = '{"seq":0,"time_us":0,"source":"world","event":"scenario_ended","group":"g"}\n'
NEXT = '{"seq":1,"time_us":3,"source":"world","event":"scenario_ended","group":"g"}\n'


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
    """Spark reads paths as patterns and names files by URLs."""
    from groupstorm.pipeline.read import read_traces

    names = ["a b", "a+b", "50%", "[x]{y,z}*?", "größe", "a\\b"]
    for name in names:
        write_trace(trace(1, actions=1), tmp_path / name)
    rows = read_traces(spark, find_traces([tmp_path]))
    assert sorted(row["run"] for row in rows.rows.select("run").distinct().collect()) == sorted(names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ROW + '{"seq":1\n', r"trace.jsonl: line 2: not JSON"),
        (ROW + ROW[:20], r"trace.jsonl: line 2: the file ends inside this line"),
        (ROW + NEXT.replace("3,", '"soon",', 1), "line 2: not a row of a trace: row 1 .*'soon'"),
        (ROW + '{"seq":1,"time_us":3,"source":"world","group":"g"}\n', "line 2: not a row of a trace"),
        (ROW + NEXT.replace('"seq":1,', ""), "line 2: not a row of a trace: row None .*: seq: None"),
        (ROW + NEXT.replace("world", "me"), "line 2: not a row of a trace: .* source: 'me': expected one of"),
        (ROW + NEXT.replace("scenario_ended", "group_deleted"), "line 2: .* cause: None: expected a text"),
        (ROW + NEXT.replace('"g"', '"\udcff"'), "line 2: not a line of text"),
        ("\udc80\udcff\x00" * 99, "line 1: not a line of text"),
        ('{"groupstorm.trace.schema":3}\n' + ROW, "version 3 of the trace schema; .* reads versions 1 and 2"),
        ("", "no rows"),
    ],
)
def test_what_is_no_trace(engine: str, tmp_path: Path, content: str, message: str) -> None:
    """Both engines refuse it with the same sentence."""
    (tmp_path / "trace.jsonl").write_text(content, "utf-8", "surrogateescape")
    with pytest.raises(InputError, match=message):
        analyze(Request({"run": tmp_path}), Engine(engine))


def test_another_version_of_parquet(engine: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs groupstorm[parquet]")
    from pyarrow import parquet

    schema = arrow_schema().with_metadata({VERSION_KEY: "3"})
    parquet.write_table(pyarrow.Table.from_pylist([json.loads(ROW)], schema), tmp_path / "trace.parquet")
    with pytest.raises(InputError, match=r"version 3 of the trace schema; .* reads versions 1 and 2"):
        analyze(Request({"run": tmp_path}), Engine(engine))


def test_unknown_columns_and_events_change_nothing(engine: str, tmp_path: Path) -> None:
    figures = write_trace(trace(1), tmp_path / "run")
    file = tmp_path / "run" / "trace.jsonl"
    lines = file.read_text("utf-8").splitlines()
    end = json.loads(lines[-1])
    unknown = {**end, "seq": end["seq"] + 1, "event": "lunch", "source": "member", "place": "canteen"}
    odd = [line[:-1] + ',"colour":["red"]}' for line in lines]
    version = json.dumps({VERSION_KEY: 1})
    file.write_text("\n".join([version, *odd, json.dumps(unknown), ""]), "utf-8")
    analysis = analyze(Request({"run": tmp_path / "run"}), Engine(engine))
    assert analysis.figures["run"].to_json() == figures.to_json()
