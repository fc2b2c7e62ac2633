"""Static members: a coordinator does not say when they stop, nor whether a process was started again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from groupstorm.explain.findings import Finding
from tests.explain.explaining import END_OF_FORMED, FORMED, added, explained, trace_of

Row = dict[str, Any]
Rows = list[Row]


def static_group(*names: str) -> Rows:
    return [*FORMED[:2], *(added(0.2, name, f"{name}-1", name) for name in names), *FORMED[3:]]


def taken_over(s: float, name: str, number: int = 2) -> Row:
    """Process ``number`` of a static member takes the place of the one before it."""
    ids = {"member_id": f"{name}-{number}", "previous_member_id": f"{name}-{number - 1}", "instance": name}
    return {"s": s, "event": "member_replaced", "member": name, "generation": 1} | ids


def closed(s: float, name: str) -> Row:
    row = {"s": s, "source": "member", "event": "member_closed", "member": name, "cause": "silent"}
    return row | {"member_id": f"{name}-1"}


def found_in(folder: Path, rows: Sequence[Row]) -> list[Finding]:
    return explained(
        trace_of(folder, [*sorted(rows, key=lambda row: float(row["s"])), END_OF_FORMED])
    ).findings


@pytest.mark.parametrize("apart_s", [30, 0])
def test_members_whose_stop_no_row_says_are_not_said_to_stop_at_once_nor_in_turn(
    tmp_path: Path, apart_s: int
) -> None:
    """Six members join at 0.2 s and are back from 3,000 s on. Their last sign of life is no stop: any order of
    stops fits."""
    back = [taken_over(3_000 + apart_s * number, name) for number, name in enumerate("bcdefg")]
    (finding,) = found_in(tmp_path, [*static_group(*"bcdefg"), *back])
    assert finding.pattern.name == "deploy-wave"
    assert finding.match.sentence == (
        "6 members stopped and came back or were replaced, in 1 wave (back from 50 min on); 6 of them as static "
        "members that say nothing when they stop."
    )
    assert finding.match.unknown == "when each of them stopped, so whether several were away at once"


@pytest.mark.parametrize(
    ("stop_after_s", "name", "how"),
    [(30, "deploy-wave", "one after the other"), (1, "aligned-restart", "at the same time")],
)
def test_members_whose_own_rows_say_when_they_stopped(
    tmp_path: Path, stop_after_s: int, name: str, how: str
) -> None:
    """Each is back 20 s after it stops: with 30 s in between one is away at a time, with 1 s all six are."""
    rows = static_group(*"bcdefg")
    for number, member in enumerate("bcdefg"):
        stop_s = 3_000 + stop_after_s * number
        rows += [closed(stop_s, member), taken_over(stop_s + 20, member)]
    (finding,) = found_in(tmp_path, rows)
    assert finding.pattern.name == name
    assert f"6 members stopped and came back or were replaced, {how}," in finding.match.sentence
    assert not finding.match.unknown


def test_restarts_of_the_same_members_are_not_more_members(tmp_path: Path) -> None:
    """Three members are back at 1,000 s and again at 3,000 s: six restarts."""
    rows = [
        taken_over(s + number, name, process)
        for process, s in ((2, 1_000), (3, 3_000))
        for number, name in enumerate("bcd")
    ]
    (finding,) = found_in(tmp_path, [*static_group(*"bcd"), *rows])
    assert "3 members stopped and came back or were replaced 6 times, in 2 waves" in finding.match.sentence
