"""Sentences say what the figures say, whatever these are."""

from __future__ import annotations

import pytest

from groupstorm.figures import answer
from tests.verdicts.test_comparison import NOTHING, figures


def test_answer_of_nothing() -> None:
    assert (
        answer(NOTHING)
        == "0 generations; at no time did every partition have an owner; the group never settled."
    )


def test_answer_tells_the_worst() -> None:
    told = answer(
        figures(
            generations=1,
            unowned_partition_seconds=1234.5,
            unowned_max_seconds=3.4,
            nobody_consuming_seconds=0.25,
            dual_owner_seconds=2.0,
            moves=20,
            moves_wasted=4,
            records_duplicated=1200,
            records_skipped=1,
            skipped_worst_partition="t-3",
            invariants={"one_owner": "held", "settles": "did not"},
        )
    )
    assert told == (
        "1 generation; partitions were un-owned for 20 min 34 s in all, 3.4 s at the longest; "
        "for 250 ms nobody consumed anything; two members worked on one partition for 2.0 s in all; "
        "20 partitions moved, 4 of them needlessly; 1,200 records processed again and 1 record skipped, "
        "in t-3 (auto.offset.reset=earliest reads it); violated: settles."
    )


def test_of_logs_two_owners_are_an_upper_bound_and_nobody_consuming_a_lower_one() -> None:
    """No log says that a member stands still."""
    told = answer(figures(nobody_consuming_seconds=0.25, dual_owner_seconds=2.0), unknown_pauses=True)
    assert "for at least 250 ms nobody consumed anything" in told
    assert "two members worked on one partition for at most 2.0 s in all" in told


def test_a_group_that_cannot_settle_is_no_violation_unless_something_else_broke() -> None:
    livelock = {"group_settles": "livelock: 3 rounds", "parked_requests_answered": "a JoinGroup"}
    told = answer(figures(invariants=livelock))
    assert told.endswith("; this configuration cannot settle (livelock: 3 rounds).")
    late = answer(figures(invariants={"group_settles": "settled late: 13 minutes"}))
    assert late.endswith("; this configuration settles late (settled late: 13 minutes).")
    broken = answer(figures(invariants=livelock | {"one_owner": "two"}))
    assert broken.endswith("; violated: group_settles, parked_requests_answered, one_owner.")


@pytest.mark.parametrize(
    ("moves", "wasted", "said"),
    [
        (0, 0, "nothing moved for good"),
        (5, 0, "5 partitions moved, as few as a balanced group can do with"),
        (5, 1, "5 partitions moved, 1 of them needlessly"),
        (1, None, "1 partition moved."),
    ],
)
def test_answer_about_moves(moves: int, wasted: int | None, said: str) -> None:
    assert said in answer(figures(moves=moves, moves_wasted=wasted))
