"""`groupstorm replay` compares every row, and both ends of the trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from groupstorm.problems import CheckFailed
from groupstorm.storms.runs.several import compare_rows
from tests.command import groupstorm

Lines = list[str]


def numbered(line: str, seq: int) -> str:
    return json.dumps(json.loads(line) | {"seq": seq}) + "\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    answer = groupstorm("run", "cold-start", "--set", "members=3", "--out", "x", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    return folder / "x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[:-1], "was missing, is {"),
        (lambda lines: [*lines, numbered(lines[-1], len(lines))], "is missing"),
        (lambda lines: lines[1:], "row 0 differs"),
        (lambda lines: [], "row 0 differs: was missing"),
    ],
    ids=["last row missing", "a row too many", "first row missing", "empty"],
)
def test_a_trace_of_another_length_differs(
    recorded: Path, tmp_path: Path, change: Callable[[Lines], Lines], told: str
) -> None:
    for file in recorded.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    trace = tmp_path / "trace.jsonl"
    lines = trace.read_text("utf-8").splitlines(keepends=True)
    trace.write_text("".join(change(lines)), "utf-8")
    answer = groupstorm("replay", ".", cwd=tmp_path)
    assert answer.returncode == 1, answer.stderr
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr


def test_two_long_texts_are_told_from_where_they_differ() -> None:
    first = {"time_us": 0, "event": "scenario_started", "detail": f"{'x' * 500}45000"}
    with pytest.raises(CheckFailed, match=r"was .*\.\.\.x{40}45000'}, is .*\.\.\.x{40}10000'}"):
        compare_rows([first], [first | {"detail": f"{'x' * 500}10000"}], "a")
