"""Records that are processed again, and moves that nothing asked for: what is just enough, what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groupstorm.explain.history import History
from groupstorm.explain.patterns.group import needless_moves, uncommitted
from tests.explain.explaining import END_OF_FORMED, FORMED, explained, storm, trace_of


def revoked(s: float, member: str, positions: list[int], committed: list[int]) -> dict[str, Any]:
    return {
        "s": s,
        "source": "member",
        "event": "partitions_revoked",
        "member": member,
        "member_id": f"{member}-1",
        "generation": 1,
        "cause": "assignment",
        "partitions": [f"t-{number}" for number in range(len(positions))],
        "positions": positions,
        "committed": committed,
        "duration_us": 0,
    }


def history_of(folder: Path, *rows: dict[str, Any]) -> History:
    return explained(trace_of(folder, [*FORMED, *rows, END_OF_FORMED])).history


def processed(history: History, records: int) -> History:
    assert history.figures is not None
    history.figures = replace(history.figures, records_processed=records)
    return history


def test_what_had_no_commit_is_counted_for_each_member(tmp_path: Path) -> None:
    history = history_of(tmp_path, revoked(40, "a", [100, 50], [90, 50]), revoked(41, "b", [7], [5]))
    found = uncommitted(processed(history, 120))
    assert found is not None
    assert found.sentence == (
        "12 processed records had no commit when the members gave up their partitions "
        "(10% of all processed records)."
    )
    assert found.members == ("a", "b")
    assert [row["time_us"] for row in found.evidence] == [40_000_000, 41_000_000]
    assert not found.rebalances  # what they cost belongs to what began them


def test_the_next_owner_shows_a_commit_that_came_within_the_callback(tmp_path: Path) -> None:
    """The next owner of t-0 has none of 10 records again, that of t-1 has all 8."""
    taken = {
        "s": 42, "source": "member", "event": "partitions_assigned", "member": "b", "member_id": "b-1",
        "generation": 2, "partitions": ["t-0", "t-1"], "positions": [100, 42], "duration_us": 0,
    }  # fmt: skip
    history = history_of(tmp_path, revoked(40, "a", [100, 50], [90, 42]), taken)
    assert (history.uncommitted.records.total(), [*history.uncommitted.members]) == (8, ["a"])


def test_records_before_an_owner_began_are_not_its_own(tmp_path: Path) -> None:
    """Nobody commits: the next owner begins at 110, where `auto.offset.reset` says."""
    taken = {
        "s": 42, "source": "member", "event": "partitions_assigned", "member": "b", "member_id": "b-1",
        "generation": 2, "partitions": ["t-0"], "positions": [110], "duration_us": 0,
    }  # fmt: skip
    history = history_of(tmp_path, revoked(40, "a", [100], [0]), taken, revoked(50, "b", [130], [0]))
    found = uncommitted(processed(history, 120))
    assert found is not None
    assert found.sentence.endswith("partitions (100% of all processed records).")
    fewer = uncommitted(processed(history, 60))  # as figures count from later on
    assert fewer is not None
    assert fewer.sentence == "120 processed records had no commit when the members gave up their partitions."


def test_less_than_a_tenth_is_what_every_application_has(tmp_path: Path) -> None:
    history = history_of(tmp_path, revoked(40, "a", [100], [88]))
    assert uncommitted(processed(history, 120)) is not None
    assert uncommitted(processed(history, 121)) is None
    assert uncommitted(processed(history, 0)) is None


def test_a_partition_that_was_deleted_has_no_next_owner(tmp_path: Path) -> None:
    """Nobody processes the 10 records of t-0 again; those of t-1 of b are."""
    deleted = {"s": 39, "source": "world", "event": "partitions_deleted", "partitions": ["t-0"]}
    rows = [deleted | {"topics": ["t"]}, revoked(40, "a", [100], [90]), revoked(41, "b", [0, 50], [0, 43])]
    found = uncommitted(processed(history_of(tmp_path, *rows), 70))
    assert found is not None
    assert found.sentence.startswith("7 processed records had no commit")
    assert found.members == ("b",)
    assert [row["member"] for row in found.evidence] == ["b"]
    assert uncommitted(processed(history_of(tmp_path, *rows), 71)) is None


def test_a_commit_beyond_the_position_takes_nothing_from_the_others(tmp_path: Path) -> None:
    history = history_of(tmp_path, revoked(40, "a", [10, 100], [90, 88]))
    assert history.uncommitted.records.total() == 12


def test_first_rows_and_the_last_are_kept(tmp_path: Path) -> None:
    history = history_of(tmp_path, *(revoked(40 + at, "a", [2], [1]) for at in range(6)))
    kept = [row["time_us"] // 1_000_000 for row in history.uncommitted.rows]
    assert (history.uncommitted.records.total(), kept) == (6, [40, 41, 42, 45])


@pytest.mark.parametrize(
    ("moves", "least", "is_named"),
    [(20, 10, True), (21, 11, False), (10, 0, True), (9, 0, False), (30, 20, False), (0, 0, False)],
)
def test_half_of_the_moves_and_ten_are_needless(
    tmp_path: Path, moves: int, least: int, is_named: bool
) -> None:
    history = history_of(tmp_path)
    assert history.figures is not None
    history.figures = replace(
        history.figures, moves=moves, moves_lower_bound=least, moves_wasted=moves - least
    )
    found = needless_moves(history)
    assert (found is not None) is is_named
    if found is not None:
        assert found.sentence == (
            f"{moves} partitions moved to another member; balance needed {least} of these moves."
        )
    history.figures = replace(history.figures, moves_wasted=None)
    assert needless_moves(history) is None


@pytest.mark.slow
def test_the_shootout_names_the_assignor_that_keeps_nothing(tmp_path: Path) -> None:
    """A churn of 12 members: range gives partitions away that it could have kept, sticky does not."""
    settings = {"members": 12, "partitions": 6}
    for variant, is_named in (("range", True), ("sticky", False)):
        found = explained(storm(tmp_path / variant, "assignor-shootout", variant, settings))
        assert ("needless-moves" in [one.pattern.name for one in found.findings]) is is_named
