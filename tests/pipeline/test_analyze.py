"""`groupstorm analyze` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groupstorm.cli.commands import app
from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.pipeline.analysis import compare_with_files
from groupstorm.pipeline.results import SlowHandover, figures_schema, why
from groupstorm.problems import CheckFailed, InputError
from tests.figures.synthetic import trace
from tests.figures.tracing import coordinator_trace
from tests.pipeline.traces import write_trace
from tests.processes import run_process


def test_figures_as_json_and_compared_with_the_files(engine: str, tmp_path: Path) -> None:
    """Three traces: a right figures.json beside one, a wrong one beside another, none beside the last."""
    right = write_trace(trace(0), tmp_path / "right", with_figures=True)
    wrong = write_trace(trace(3), tmp_path / "wrong")
    changed = json.dumps(wrong.to_json() | {"generations": -1})
    (tmp_path / "wrong" / "figures.json").write_text(changed, "utf-8")
    one, other = coordinator_trace("range"), coordinator_trace("cooperative-sticky")
    theirs = [(at, source, event._replace(group="h")) for at, source, event in other.rows]  # type: ignore[attr-defined]  # named tuples
    write_trace(sorted([*one.rows, *theirs], key=lambda row: row[0]), tmp_path / "served")

    result = CliRunner().invoke(app, ["analyze", str(tmp_path), "--json", "--engine", engine])
    assert json.loads(result.stdout) == {
        "right": right.to_json(),
        "served:g": one.figures().to_json(),
        "served:h": other.figures().to_json(),
        "wrong": wrong.to_json(),
    }
    assert isinstance(result.exception, CheckFailed)
    file = tmp_path / "wrong" / "figures.json"
    assert str(result.exception) == f"{file}: generations: -1, but the trace gives {wrong.generations}"


def test_tables_for_people_and_as_parquet(engine: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip(
        "pyarrow.parquet", reason="needs pyarrow: pip install 'groupstorm[parquet]'"
    )
    figures = write_trace(trace(2), tmp_path / "stormy", with_figures=True)
    out = tmp_path / "tables"
    arguments = ["analyze", str(tmp_path / "stormy"), "--out", str(out), "--slowest", "2", "--engine", engine]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    for text in (
        "stormy",
        "generations",
        "Slowest handovers: stormy",
        "Rounds by cause",
        "figures.json says the same",
    ):
        assert text in result.stdout
    check = ["analyze", str(tmp_path / "stormy"), "--check", "--engine", engine]
    checked = CliRunner().invoke(app, check, catch_exceptions=False)
    assert checked.stdout == "Computed anew from the traces: the same figures in 1 of 1 run.\n"
    [row] = parquet.read_table(out / "figures").to_pylist()
    assert row["run"] == "stormy"
    assert row["answer"] == figures.answer
    assert dict(row["requests"]) == figures.requests
    handovers = parquet.read_table(out / "handovers").to_pylist()
    assert sum(one["gap_us"] for one in handovers) / 1_000_000 == figures.unowned_partition_seconds
    for table in ("intervals", "rounds", "members"):
        assert parquet.read_table(out / table).num_rows > 0
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0  # replaces the tables


def test_figures_file_that_is_none(tmp_path: Path) -> None:
    figures = FiguresAccumulator().figures()
    for content in ("{", "[]"):
        (tmp_path / "figures.json").write_text(content, "utf-8")
        with pytest.raises(InputError, match="not the figures of a run"):
            compare_with_files({"run": figures}, {"run": tmp_path})


def test_a_figure_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    """Whether it is null or not, in the file or in this version."""
    figures = FiguresAccumulator().figures()
    assert figures.lag_peak is None
    written = figures.to_json() | {"fortune": None}
    del written["lag_peak"], written["generations"]
    file = tmp_path / "figures.json"
    file.write_text(json.dumps(written), "utf-8")
    assert compare_with_files({"run": figures}, {"run": tmp_path}) == (
        [],
        [
            f"{file}: generations: is missing, but the trace gives 0",
            f"{file}: lag_peak: is missing, but the trace gives None",
            f"{file}: fortune: None, but there is no such figure",
        ],
    )
    file.write_text(json.dumps(figures.to_json()), "utf-8")
    assert compare_with_files({"run": figures}, {"run": tmp_path}) == (["run"], [])


def test_no_trace_is_found_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(InputError, match="no trace found"):
        CliRunner().invoke(app, ["analyze", str(tmp_path)], catch_exceptions=False)


def test_missing_spark_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(trace(0, actions=1), tmp_path / "run")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(InputError, match=r"pip install 'groupstorm\[spark\]'"):
        CliRunner().invoke(app, ["analyze", str(tmp_path), "--engine", "spark"], catch_exceptions=False)


def test_out_holds_something_else(tmp_path: Path) -> None:
    write_trace(trace(0, actions=1), tmp_path / "run")
    (tmp_path / "out" / "rounds").mkdir(parents=True)
    with pytest.raises(InputError, match="no table of an earlier analysis"):
        CliRunner().invoke(
            app, ["analyze", str(tmp_path / "run"), "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        CliRunner().invoke(
            app, ["analyze", str(tmp_path / "run"), "--out", str(tmp_path / "file")], catch_exceptions=False
        )


def handover(
    ended_by: str,
    cause: str | None = None,
    new_owner: str | None = "b",
    generations: int | None = 1,
    round_us: int | None = 2_000_000,
) -> SlowHandover:
    return SlowHandover("r", "t-0", 1, 1_000_000, 5_000_000, "a", new_owner, generations, ended_by, cause, round_us, "left")  # fmt: skip  # noqa: E501


def test_why() -> None:
    assert why(handover("member_crashed", new_owner="b", generations=2)) == (
        "a crashed; the round that ended it began 1.0 s later (left); b took it 2 generations later"
    )
    assert why(handover("member_crashed", round_us=100_950_000)) == (
        "a crashed; the next round began 100 s later (left); the group had no members meanwhile, which does "
        "not count; b took it"
    )
    assert why(handover("partitions_revoked", "rebalance", round_us=1_000_000)) == (
        "a gave up everything to join again; in a round because of left; b took it"
    )
    assert why(handover("partitions_lost", "poll-timeout", None, None, None)) == (
        "a was out of the group (poll-timeout); nobody took it"
    )
    assert why(handover("partitions_revoked", "close", "a", 0, None)) == "a closed; a got it back"
    assert why(handover("partitions_created", None, "b", None, None)) == "it was created; b took it"


def test_the_table_of_figures_has_a_column_for_each() -> None:
    columns = figures_schema().split(", ")
    assert columns[0] == "generations bigint"
    assert "lag_recovery_seconds double" in columns
    assert "commits_rejected map<string, bigint>" in figures_schema()
    assert all(f", {name} " in f", {figures_schema()}" for name in Figures.__annotations__)


def test_the_local_engine_imports_nothing_heavy(tmp_path: Path) -> None:
    write_trace(trace(0, actions=1), tmp_path / "run")
    program = (
        "import sys\n"
        "from groupstorm.cli.app import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*{'pyspark', 'pandas', 'pyarrow', 'groupstorm.storms'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", program, "analyze", str(tmp_path / "run"), "--json"]
    done = run_process(command, capture_output=True, text=True, check=False)
    figures, heavy = done.stdout.splitlines()
    assert json.loads(figures)["run"]["generations"] >= 1, done.stderr
    assert heavy == ""
