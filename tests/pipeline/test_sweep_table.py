"""`runs.parquet`: a row per run, with types that a reader can rely on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from groupstorm.figures import Figures
from groupstorm.pipeline.sweep import FIRST_COLUMNS, TABLE_FILE, runs_table, write_runs_table
from groupstorm.problems import OutputError
from groupstorm.storms.runs.sweep import Outcome, Sweep, parse_axis
from groupstorm.storms.runs.sweep_runs import Plan, run_one
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.setting_names import SETTINGS
from tests.command import ROOT

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")


def sweep(*over: str) -> Sweep:
    axes = tuple(parse_axis(text, load("cold-start")) for text in over)
    return Sweep("cold-start", None, axes, 3, 2, {"partitions": 4})


def outcomes(wanted: Sweep) -> list[Outcome]:
    plan = Plan(wanted, wanted.points())
    return plan.outcomes({order.key: run_one(order) for order in plan.orders})


def test_a_row_per_run_has_every_setting_and_every_figure() -> None:
    wanted = sweep("members=2,3", "session.timeout.ms=20s,1h")
    found = outcomes(wanted)
    rows: list[dict[str, Any]] = runs_table(wanted, found).to_pylist()
    assert [(row["point"], row["seed"], row["session.timeout.ms"]) for row in rows] == [
        ("members=2, session.timeout.ms=20s", 3, 20_000),
        ("members=2, session.timeout.ms=20s", 4, 20_000),
        ("members=2, session.timeout.ms=1h", None, None),
        ("members=3, session.timeout.ms=20s", 3, 20_000),
        ("members=3, session.timeout.ms=20s", 4, 20_000),
        ("members=3, session.timeout.ms=1h", None, None),
    ]
    assert [row["members"] for row in rows] == [2, 2, None, 3, 3, None]
    assert rows[2]["refused"] == found[1].refused
    assert rows[0]["refused"] is None
    assert (rows[0]["broken"], rows[0]["variant"]) == ([], next(iter(load("cold-start").variants)))
    for name, value in found[2].figures[4].to_json().items():
        assert rows[4][name] == ([*value.items()] if isinstance(value, dict) else value), name
    assert set(rows[0]) >= {setting.name for setting in SETTINGS if setting.in_files}


def test_no_two_columns_have_one_name() -> None:
    names = [*FIRST_COLUMNS, *(setting.name for setting in SETTINGS), *Figures.__annotations__]
    assert len(set(names)) == len(names)


def test_the_page_on_sweeps_names_the_columns() -> None:
    wanted = sweep("members=2")
    page = (ROOT / "docs" / "sweeps.md").read_text()
    for field in list(runs_table(wanted, outcomes(wanted)).schema)[: len(FIRST_COLUMNS)]:
        type_ = re.sub(r"<.*: ", "<", str(field.type))
        assert f"| `{field.name}` | {type_} | " in page


def test_values_of_a_setting_that_are_not_of_one_type_are_text() -> None:
    wanted = sweep("start_ms=1500,{p50: 1s, p95: 2s}")
    column = runs_table(wanted, outcomes(wanted)).column("start_ms")
    assert column.to_pylist() == ["1500"] * 2 + ['{"p50": "1s", "p95": "2s"}'] * 2


def test_types_follow_the_values() -> None:
    wanted = sweep("members=2")
    types = {field.name: str(field.type) for field in runs_table(wanted, outcomes(wanted)).schema}
    wished = {
        "members": "int64", "seed": "int64", "usd_per_gb_each_way": "double", "enable.auto.commit": "bool",
        "partition.assignment.strategy": "string", "broken": "list<element: string>", "lag_peak": "int64",
    }  # fmt: skip
    assert {name: types[name].replace("item", "element") for name in wished} == wished


def test_an_invariant_that_broke_is_named() -> None:
    wanted = sweep("members=2")
    (found,) = outcomes(wanted)
    for figures in found.figures.values():
        assert isinstance(figures.invariants, dict)
        figures.invariants["group_settles"] = "at 3 s: no"
    assert runs_table(wanted, [found]).column("broken").to_pylist() == [["group_settles"]] * 2


def test_the_file_is_whole_or_not_there(tmp_path: Path) -> None:
    from pyarrow import parquet

    wanted = sweep("members=2")
    found = outcomes(wanted)
    write_runs_table(wanted, found, tmp_path / TABLE_FILE)
    assert parquet.read_table(tmp_path / TABLE_FILE).equals(runs_table(wanted, found))
    assert [file.name for file in tmp_path.iterdir()] == [TABLE_FILE]
    with pytest.raises(OutputError, match=r"runs\.parquet: cannot be written"):
        write_runs_table(wanted, found, tmp_path / "gone" / TABLE_FILE)
