"""A topic that no complete assignment has any more needs no owner from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.importing import client_line, figures, generation, import_texts, rows
from tests.imports.test_comings import uuid

PLAN = {"a": "old-0, t-0", "b": "old-1, t-1"}
WITHOUT = {"a": "t-0", "b": "t-1"}


def ids(plan: dict[str, str], process: int = 1) -> dict[str, str]:
    return {name: f"{name}-{uuid(process)}" for name in plan}


def round_at(
    second: float, number: int, plan: dict[str, str], protocol: str = "range", process: int = 1
) -> str:
    """A round of members that gave everything up before it, unless they are cooperative; "a" leads."""
    text = ""
    named = ids(plan, process)
    for name, member_id in named.items():
        got = generation(number, member_id, protocol)
        text += client_line(second + 0.1, f"Successfully joined group with generation {got}", name)
    given = ", ".join(f"{named[name]}=Assignment(partitions=[{has}])" for name, has in plan.items())
    finished = f"Finished assignment for group at generation {number}: {{{given}}}"
    text += client_line(second + 0.2, finished, "a")
    for name, member_id in named.items():
        got = generation(number, member_id, protocol)
        text += client_line(second + 0.3, f"Successfully synced group in generation {got}", name)
    return text


def takes(second: float, plan: dict[str, str]) -> str:
    return "".join(
        client_line(second, f"Adding newly assigned partitions: {has}", name) for name, has in plan.items()
    )


def gives_up(second: float, plan: dict[str, str], again: bool = True) -> str:
    said = [
        client_line(second, f"Revoke previously assigned partitions {has}", name)
        + (client_line(second, "(Re-)joining group", name) if again else "")
        for name, has in plan.items()
    ]
    return "".join(said)


START = round_at(0, 1, PLAN) + takes(0.4, PLAN)


def imported(folder: Path, text: str) -> list[tuple[float, tuple[str, ...]]]:
    """When topics were gone, and which."""
    lines = sorted(text.splitlines(keepends=True), key=lambda line: line[:25])
    import_texts(folder, {"all.log": "".join(lines)})
    return [
        (round(row["time_us"] / 1e6, 3), tuple(row["topics"])) for row in rows(folder, "partitions_deleted")
    ]


def test_a_topic_that_its_members_give_up_is_gone_from_then_on(tmp_path: Path) -> None:
    text = START + gives_up(60, PLAN) + round_at(61, 2, WITHOUT) + takes(61.4, WITHOUT)
    text += gives_up(1800, WITHOUT) + round_at(1801, 3, WITHOUT) + takes(1801.4, WITHOUT)
    assert imported(tmp_path, text) == [(59.9, ("old",))]
    found = figures(tmp_path)["g"]
    assert found.unowned_partition_seconds == pytest.approx(5.6)  # t-0 and t-1, twice 1.4 s
    assert "un-owned for 5.6 s in all" in found.answer


def test_a_topic_that_is_back_later_had_no_owner(tmp_path: Path) -> None:
    text = START + gives_up(60, PLAN) + round_at(61, 2, WITHOUT) + takes(61.4, WITHOUT)
    text += gives_up(100, WITHOUT) + round_at(101, 3, PLAN) + takes(101.4, PLAN)
    assert imported(tmp_path, text) == []
    assert figures(tmp_path)["g"].unowned_max_seconds == pytest.approx(41.4)


def test_since_when_new_partitions_wait_is_not_known(tmp_path: Path) -> None:
    text = START + gives_up(60, PLAN) + round_at(61, 2, {**PLAN, "b": "old-1, t-1, new-0, new-1"})
    assert imported(tmp_path, text + takes(61.4, PLAN | {"b": "old-1, t-1, new-0, new-1"})) == []
    (missing,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "topics"]
    assert missing["detail"].startswith("for how long new-0 and 1 more waited for the first owner")
    assert "at least" in figures(tmp_path)["g"].answer


def test_a_topic_that_a_member_takes_later_is_not_gone(tmp_path: Path) -> None:
    """No complete assignment says so: the leader's log ends before."""
    text = START + gives_up(60, PLAN) + round_at(61, 2, WITHOUT) + takes(61.4, WITHOUT)
    assert imported(tmp_path, text + takes(100, {"b": "old-1"})) == []


def test_what_a_cooperative_member_has_to_give_up_first_is_not_gone(tmp_path: Path) -> None:
    """The log ends before the second round, which gives it to another member."""
    protocol = "cooperative-sticky"
    text = round_at(0, 1, PLAN, protocol) + takes(0.4, PLAN) + round_at(60, 2, WITHOUT, protocol)
    text += gives_up(60.4, {"a": "old-0", "b": "old-1"})
    assert imported(tmp_path, text) == []
    assert imported(tmp_path, text + round_at(61, 3, WITHOUT, protocol)) == [(60.1, ("old",))]


def test_whether_a_topic_needs_an_owner_whose_members_have_gone_is_not_known(tmp_path: Path) -> None:
    text = START + gives_up(60, PLAN) + round_at(61, 2, WITHOUT, process=2) + takes(61.4, WITHOUT)
    text += gives_up(1800, WITHOUT) + round_at(1801, 3, WITHOUT, process=2) + takes(1801.4, WITHOUT)
    assert [topics for _, topics in imported(tmp_path, text)] == [("old",)]
    (missing,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "topics"]
    assert missing["detail"].startswith("whether old still needs an owner (no assignment has it")
    assert "for at least 5.6 s in all" in figures(tmp_path)["g"].answer
