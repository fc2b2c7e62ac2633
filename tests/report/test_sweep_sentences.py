"""Sentences of a sweep on the curve along its first setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from groupstorm.figures import FiguresAccumulator
from groupstorm.report.sweeps import sweep_answer, sweep_grid
from groupstorm.storms.runs.sweep import Axis, Outcome, Point, Sweep
from groupstorm.verdicts.requirements import Requirement, parse

NOTHING = FiguresAccumulator().figures()
MEMBERS = (2, 3, 4, 5, 6)


def sentences(figure: str, values: tuple[float, ...], goals: Sequence[Requirement] = ()) -> list[str]:
    """Return the sentences of a sweep over the members, one run for each of them."""
    axis = Axis("members", tuple(map(str, MEMBERS)), MEMBERS)
    outcomes: list[Outcome] = []
    for members, value in zip(MEMBERS, values, strict=True):
        changed: dict[str, Any] = {figure: value}
        outcomes.append(
            Outcome(Point((str(members),), {"members": members}), {0: replace(NOTHING, **changed)})
        )
    sweep = Sweep("cold-start", None, (axis,), 0, 1, {})
    return sweep_answer(sweep, outcomes, goals, figure)


@pytest.mark.parametrize(
    ("figure", "values", "sentence"),
    [
        ("unowned_partition_seconds", (70.0, 70.0, 70.0, 70.0, 70.0),
         "members makes no difference (un-owned time, in all: 70.0 s)."),
        ("unowned_partition_seconds", (50.0, 40.0, 30.0, 20.0, 10.0),
         "no knee over members (un-owned time, in all: 50.0 s at 2, 10.0 s at 6)."),
        ("unowned_partition_seconds", (100.0, 30.0, 28.0, 26.0, 24.0),
         "the knee is at members=3 (un-owned time, in all: 30.0 s; 100 s at 2, 24.0 s at 6)."),
        ("rounds_per_change", (2.5,) * 5, "members makes no difference (rounds_per_change: 2.500)."),
    ],
)  # fmt: skip
def test_a_curve_is_told_in_one_sentence(figure: str, values: tuple[float, ...], sentence: str) -> None:
    assert sentences(figure, values) == [sentence]


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        ("<7", "members=5 is the largest with which generations<7 is met (2 smaller values of 3 as well)."),
        ("<2", "members=2 is the largest with which generations<2 is met."),
        (">2", "members=6 is the smallest from which on generations>2 is met."),
        ("<1", "no members up to 6 meets generations<1; 2 comes nearest, in 0% of the seeds."),
    ],
)
def test_a_goal_that_the_largest_value_misses_may_be_met_by_others(goal: str, sentence: str) -> None:
    curve = (1.0, 9.0, 2.0, 2.0, 9.0)
    assert sentences("generations", curve, [parse(f"generations{goal}")])[:1] == [sentence]


def test_a_mark_says_whether_the_configuration_or_the_emulation_is_wrong() -> None:
    axis = Axis("members", ("2", "3"), (2, 3))
    sweep = Sweep("cold-start", None, (axis,), 0, 1, {})

    def notes(*verdicts: dict[str, str]) -> list[str]:
        outcomes = [
            Outcome(point, {0: replace(NOTHING, invariants=found)})
            for point, found in zip(sweep.points(), verdicts, strict=True)
        ]
        return [*sweep_grid(sweep, outcomes, [], everything=False).notes]

    livelock, fault = {"group_settles": "livelock: 3 rounds"}, {"one_owner_per_generation": "two"}
    assert notes({}, livelock) == ["! the group cannot settle in some of these runs (livelock: 3 rounds)"]
    assert notes(livelock, fault) == ["! an invariant broke in some of these runs"]
    assert notes({}, {}) == []


def test_points_whose_consumers_ended_are_named() -> None:
    dead = replace(NOTHING, unowned_partition_seconds=1.0, consumers_failed={"FENCED_INSTANCE_ID": 1})
    axis = Axis("session.timeout.ms", ("20s", "30s"), (20_000, 30_000))
    points = [
        Point((label,), {axis.name: value}) for label, value in zip(axis.labels, axis.values, strict=True)
    ]
    outcomes = [Outcome(point, {0: dead}) for point in points]
    assert sweep_answer(Sweep("cold-start", None, (axis,), 0, 1, {}), outcomes, [], None)[-1].startswith(
        "Not ranked are session.timeout.ms=20s and session.timeout.ms=30s: consumers ended with FENCED_"
    )
    outcomes[1] = Outcome(points[1], {0: replace(dead, consumers_failed={})})
    sweep, goal = Sweep("cold-start", None, (axis,), 0, 1, {}), [parse("unowned_partition_seconds<2")]
    grid = sweep_grid(sweep, outcomes, goal, everything=False)
    assert [(row.mark, row.cells[0]) for row in grid.rows] == [("!", "0%"), ("", "100%")]
    assert "! in some of these runs consumers ended with FENCED_INSTANCE_ID" in grid.notes[0]
    answer = sweep_answer(sweep, outcomes, goal, None)
    assert answer[0].startswith("session.timeout.ms=30s is the smallest from which on")


def test_what_all_points_that_meet_a_goal_share_is_to_be_set_too() -> None:
    """They all have max.poll.records=50; the default was run, and misses the goal."""
    axes = (
        Axis("max.poll.records", ("50", "500"), (50, 500)),
        Axis("session.timeout.ms", ("20s", "45s"), (20_000, 45_000)),
    )
    sweep = Sweep("rolling-deploy", "cooperative", axes, 0, 1, {})
    outcomes = [
        Outcome(point, {0: replace(NOTHING, unowned_partition_seconds=value)})
        for point, value in zip(sweep.points(), (100.0, 400.0, 500.0, 900.0), strict=True)
    ]
    said = sweep_answer(sweep, outcomes, [parse("unowned_partition_seconds<450")], None)
    assert "Recommendation: max.poll.records=50, session.timeout.ms=20s." in said
    assert "Set session.timeout.ms=20s, max.poll.records=50." in said
    assert not any(sentence.startswith("None of these has the defaults") for sentence in said)


def test_of_values_that_no_seed_meets_a_goal_with_the_one_that_misses_it_least_is_nearest() -> None:
    curve = (131.0, 90.0, 47.0, 52.0, 60.0)
    assert sentences("unowned_max_seconds", curve, [parse("unowned_max_seconds<30")])[:1] == [
        "no members up to 6 meets unowned_max_seconds<30; 4 comes nearest, in 0% of the seeds."
    ]
