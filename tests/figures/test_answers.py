"""Sentences say what the figures say, whatever these are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupstorm.storms.figures import Figures, FiguresAccumulator, answer, compare_answer
from groupstorm.storms.figures.wording import seconds

NOTHING = FiguresAccumulator().figures()


def figures(**changes: Any) -> Figures:
    return replace(NOTHING, **changes)


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
            invariants={"one_owner": "held", "settles": "did not"},
        )
    )
    assert told == (
        "1 generation; partitions were un-owned for 1,234 s in all, 3.4 s at the longest; "
        "for 250 ms nobody consumed anything; two members worked on one partition for 2.0 s in all; "
        "20 partitions moved, 4 of them needlessly; 1,200 records processed again and 1 record skipped; "
        "violated: settles."
    )


@pytest.mark.parametrize(
    ("moves", "wasted", "said"),
    [
        (0, 0, "nothing moved for good"),
        (5, 0, "5 partitions moved, as few as a balanced group can do with"),
        (5, -2, "5 partitions moved, 2 fewer than balance would have taken"),
        (1, None, "1 partition moved."),
    ],
)
def test_answer_about_moves(moves: int, wasted: int | None, said: str) -> None:
    assert said in answer(figures(moves=moves, moves_wasted=wasted))


def test_seconds() -> None:
    told = [seconds(value) for value in (0, 0.0001, 0.0625, 0.9996, 1, 59.94, 99.96, 123.4, 5200)]
    assert told == ["0 s", "less than 1 ms", "62 ms", "1.0 s", "1.0 s", "59.9 s", "100 s", "123 s", "5,200 s"]


def test_comparison_ranks_and_gives_ratios() -> None:
    said = compare_answer(
        {
            "eager": figures(unowned_partition_seconds=5200.0, nobody_consuming_seconds=310.0),
            "cooperative": figures(unowned_partition_seconds=61.0, nobody_consuming_seconds=0.0),
            "static": figures(unowned_partition_seconds=488.0, nobody_consuming_seconds=0.0),
        }
    )
    assert said == (
        "Under cooperative partitions were un-owned for 61.0 s in all, "
        "under static for 488 s (8.0 times as long), under eager for 5,200 s (85 times as long). "
        "The widest other difference is nobody consuming at all: "
        "cooperative and static 0 s, eager 310 s."
    )


def test_comparison_of_ties_zeros_and_nulls() -> None:
    equal = figures(unowned_partition_seconds=2.0)
    assert compare_answer({"a": equal, "b": equal}) == (
        "Under a and b partitions were un-owned for 2.0 s in all. "
        "They do not differ in anything else that is compared here."
    )
    assert compare_answer({"a": figures(unowned_partition_seconds=0.0), "b": equal}) == (
        "Under a partitions were un-owned at no time, under b for 2.0 s."
    )
    said = compare_answer(
        {"a": figures(generations=3), "b": figures(unowned_partition_seconds=1.0, generations=6)}
    )
    assert said == (
        "Under b partitions were un-owned for 1.0 s in all, "
        "under a there was no time at which every partition had an owner. "
        "The widest other difference is generations: a 3, b 6 (2.0 times as much)."
    )
    assert compare_answer({"a": NOTHING}) == (
        "Under a there was no time at which every partition had an owner."
    )
    assert compare_answer({}) == "There is nothing to compare."
    near = compare_answer({"a": equal, "b": figures(unowned_partition_seconds=2.1)})
    assert "1.05 times as long" in near
