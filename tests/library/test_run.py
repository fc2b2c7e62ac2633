"""`groupstorm.run` and `read`: what the command writes, without a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import pytest

import groupstorm
from groupstorm.library import RunResult
from groupstorm.library.run_result import TableName
from groupstorm.pipeline.analysis import Engine, analyze
from groupstorm.pipeline.results import TABLES, Request
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_rows
from tests.command import groupstorm as command
from tests.library.results import FEW, FEW_OPTIONS, SCENARIO


@pytest.fixture(scope="module")
def result() -> RunResult:
    return groupstorm.run(SCENARIO, "eager", 3, FEW)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    ran = command(
        "run", SCENARIO, "--variant", "eager", "--seed", "3", *FEW_OPTIONS, "--out", "run", cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    return folder / "run"


def test_it_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    groupstorm.run(SCENARIO, settings=FEW)
    assert [*tmp_path.iterdir()] == []


def test_figures_answer_and_rows_are_those_of_the_command(result: RunResult, written: Path) -> None:
    figures = json.loads((written / "figures.json").read_text())
    assert json.loads(json.dumps(result.figures.to_json())) == figures
    assert result.answer == figures["answer"]
    assert [*result.rows] == [*read_rows(written)]
    assert [*result.rows] == [*result.rows], "rows can be read again"
    assert (result.name, result.variant, result.seed) == (SCENARIO, "eager", 3)
    assert result.groups == ("storm",)
    assert (result.violations, result.assignor_failure) == ({}, None)


def test_saved_files_are_those_of_the_command(result: RunResult, written: Path, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "a" / "saved")
    assert {path.name for path in folder.iterdir()} == {path.name for path in written.iterdir()}
    for name in ("trace.jsonl", "scenario.yaml", "figures.json"):
        assert (folder / name).read_bytes() == (written / name).read_bytes()
    assert command("replay", str(folder), cwd=tmp_path).returncode == 0


def test_a_run_that_is_read_is_the_one_that_was_saved(result: RunResult, written: Path) -> None:
    read = groupstorm.read(written)
    assert isinstance(read, RunResult)
    assert repr(read) == repr(result) == "<RunResult rolling-deploy (eager), seed 3>"
    assert json.loads(json.dumps(read.scenario)) == json.loads(json.dumps(result.scenario))
    assert (read.figures, read.answer, [*read.rows]) == (result.figures, result.answer, [*result.rows])
    assert str(read) == str(result)
    for table in get_args(TableName):
        assert read.to_arrow(table) == result.to_arrow(table)


def test_tables_are_those_of_analyze(result: RunResult, written: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'groupstorm[parquet]'")
    analyze(Request({"run": written}, out=tmp_path / "tables"), Engine.LOCAL)
    for name in TABLES:
        analyzed = parquet.read_table(tmp_path / "tables" / name / "part-00000.parquet")
        assert result.to_arrow(cast(TableName, name)).num_rows > 3
        order = [(column, "ascending") for column in TABLES[name]]
        kept, found = result.to_arrow(cast(TableName, name)), analyzed.drop_columns(["run"])
        assert kept.sort_by(order) == found.sort_by(order)  # a file's rows stand in the order of their ends
    figures = parquet.read_table(tmp_path / "tables" / "figures" / "part-00000.parquet")
    assert result.to_arrow("figures") == figures.drop_columns(["run"])


@pytest.mark.slow
def test_tables_of_a_long_trace_are_complete(tmp_path: Path) -> None:
    """An analysis hands rows of tables on while it reads: of a trace of 20,000 rows, several times."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'groupstorm[parquet]'")
    result = groupstorm.run("rolling-deploy", settings={"members": 35, "partitions": 70})
    assert sum(1 for _ in result.rows) > 15_000
    analyze(Request({"run": result.save(tmp_path / "run")}, out=tmp_path / "tables"), Engine.LOCAL)
    for name in TABLES:
        order = [(column, "ascending") for column in TABLES[name]]
        found = parquet.read_table(tmp_path / "tables" / name).drop_columns(["run"])
        assert result.to_arrow(cast(TableName, name)).sort_by(order) == found.sort_by(order)


def test_pandas_keeps_whole_numbers_and_maps(result: RunResult) -> None:
    pytest.importorskip("pandas", reason="pip install 'groupstorm[pandas]'")
    rows = result.to_pandas()
    assert [*rows["seq"]] == [*range(len(rows))]
    assert str(rows["generation"].dtype) == "Int64"
    assert rows["generation"].isna().any()
    figures = result.to_pandas("figures")
    assert figures["requests"][0] == result.figures.requests


def test_a_run_replays(result: RunResult, written: Path, tmp_path: Path) -> None:
    count = len([*result.rows])
    assert result.replay() == count
    changed = result.save(tmp_path / "changed")
    lines = (changed / "trace.jsonl").read_text().splitlines(keepends=True)
    lines[5] = lines[5].replace('"time_us":', '"time_us":1')
    lines[6:] = []
    (changed / "trace.jsonl").write_text("".join(lines))
    read = groupstorm.read(changed)
    assert isinstance(read, RunResult)
    with pytest.raises(CheckFailed, match="rolling-deploy: row 5 differs"):
        read.replay()


def test_a_saved_run_can_be_saved_elsewhere(written: Path, tmp_path: Path) -> None:
    read = groupstorm.read(written)
    assert isinstance(read, RunResult)
    copy = read.save(tmp_path / "copy")
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == {
        path.name: path.read_bytes() for path in written.iterdir()
    }
    with pytest.raises(InputError, match=r"trace_format: 'parquet': .* has trace\.jsonl"):
        read.save(tmp_path / "other", trace_format="parquet")
    with pytest.raises(InputError, match="the run's files are there already"):
        read.save(written)
    assert (written / "trace.jsonl").is_file()


def test_parquet_is_read_back(result: RunResult, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'groupstorm[parquet]'")
    read = groupstorm.read(result.save(tmp_path / "run", trace_format="parquet"))
    assert isinstance(read, RunResult)
    assert [*read.rows] == [*result.rows]
    assert read.to_arrow() == result.to_arrow()
    assert command("replay", "run", cwd=tmp_path).returncode == 0


def test_a_notebook_shows_the_answer_and_a_table(result: RunResult) -> None:
    shown = result._repr_html_()
    assert "<caption>rolling-deploy (eager), seed 3</caption>" in shown
    assert f"<td>{result.figures.generations}</td>" in shown
    assert shown.endswith(f"<p>{result.answer}</p>")
    printed = str(result).splitlines()
    assert printed[0] == "rolling-deploy (eager), seed 3"
    assert max(map(len, printed)) <= 80


def test_progress_is_the_virtual_time() -> None:
    seen: list[tuple[int, None]] = []
    groupstorm.run(SCENARIO, settings=FEW, progress=lambda done, of: seen.append((done, of)))
    assert seen[0] == (1, None)
    assert seen == sorted(seen)
    assert seen[-1][0] > 60


def test_a_scenario_file_and_its_seed(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("seed: 9\nsettings: {members: 2, partitions: 4}\nsteps: [{at_ms: 0, do: start}]\n")
    result = groupstorm.run(file)
    assert (result.name, result.variant, result.seed) == ("scenario", "default", 9)
    assert groupstorm.run(file, seed=2).seed == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"scenario": "nowhere"}, "nowhere: neither a preset"),
        ({"variant": "lazy"}, "variant: 'lazy' is not one of eager, cooperative, static, consumer"),
        ({"seed": -1}, "seed: -1: expected a whole number from 0"),
        ({"variant": ["eager"]}, "variant: ['eager']: expected a text"),
        ({"seed": 1.5}, "seed: 1.5: expected a whole number from 0"),
        ({"settings": {"members": "many"}}, "settings: members: 'many' is no whole number"),
        ({"settings": {"enable.auto.commit": "true"}}, "settings: enable.auto.commit: 'true', a str, is"),
        ({"settings": {"member": 3}}, "settings: member: no such setting"),
        ({"settings": ["members=3"]}, "settings: ['members=3']: expected names with values"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as raised:
        groupstorm.run(**{"scenario": SCENARIO, **arguments})
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


def test_numbers_of_a_data_frame_are_numbers() -> None:
    one: int = pytest.importorskip("numpy", reason="pip install 'groupstorm[pandas]'").int64(3)
    result = groupstorm.run(SCENARIO, seed=one, settings={**FEW, "members": one})
    assert result.seed == 3
    assert result.scenario is not None
    assert result.scenario["settings"]["members"] == 3
    result.replay()


def test_a_table_that_is_none(result: RunResult) -> None:
    table: Any = "owners"
    with pytest.raises(InputError, match="table: 'owners' is not one of rows, figures, intervals"):
        result.to_arrow(table)


def test_settings_are_not_changed() -> None:
    """The scenario is read anew each time, and the user's dictionary is left as it is."""
    settings = dict(FEW)
    groupstorm.run(SCENARIO, settings=settings)
    assert settings == FEW
    assert load(SCENARIO).settings["members"] == 40
