"""The detail of some rows is a JSON object. The schema says only that it is a text: what else it may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows
from tests.whatif.storms import drafted, storm

FIRST = {"event": "scenario_started", "source": "world"}
OTHERS: list[dict[str, Any]] = [
    {"event": "group_imported", "source": "coordinator", "cause": "members"},
    {"event": "member_configured", "source": "world", "member": "member-0"},
    {"event": "broker_configured", "source": "world"},
    {"event": "work_assigned", "source": "world", "member": "member-0", "member_id": "a", "tasks": ["t"]},
]
DETAILS = [
    "nonsense",
    "[" * 100_000,
    "[]",
    "5",
    "{}",
    '{"settings": [], "figures_from": "x", "revoked": [[]]}',
]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    run = storm(tmp_path_factory.mktemp("odd") / "run", "rolling-deploy", "eager", members=2)
    return [dict(row) for row in read_rows(run)]


def trace(folder: Path, lines: list[dict[str, Any]], number: int, row: dict[str, Any]) -> Path:
    changed = [*lines]
    kept = {name: lines[number][name] for name in ("seq", "time_us", "group")}
    changed[number] = (lines[number] if row["event"] == lines[number]["event"] else kept) | row
    (folder / "trace.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in changed), "utf-8")
    return folder


@pytest.mark.parametrize("row", [FIRST, *OTHERS], ids=lambda row: str(row["event"]))
@pytest.mark.parametrize("detail", DETAILS, ids=lambda detail: detail[:20])
def test_what_is_no_object_says_nothing(
    tmp_path: Path, lines: list[dict[str, Any]], row: dict[str, Any], detail: str
) -> None:
    odd = trace(tmp_path, lines, 0 if row in (FIRST, OTHERS[0]) else 1, row | {"detail": detail})
    drafted(odd)
    explain(odd)
    assert list(story(read_rows(odd), Selection()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"client_profile": 4}, "client_profile: 4: expected one or more names"),
        ({"member_settings": [{"members": 4}]}, "member_settings: 1: "),
    ],
)
def test_settings_of_another_type_are_refused(
    tmp_path: Path, lines: list[dict[str, Any]], settings: dict[str, Any], message: str
) -> None:
    odd = trace(tmp_path, lines, 0, FIRST | {"detail": json.dumps({"settings": settings})})
    with pytest.raises(InputError, match=f"^row 0, scenario_started: {message}"):
        drafted(odd)
