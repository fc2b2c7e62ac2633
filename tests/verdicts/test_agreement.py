"""When two runs of one scenario agree: one in virtual time, one in real time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.verdicts.comparison import COUNTS, TIMES, agreement_answer, judge

COMPARED = {*COUNTS, *TIMES}


def figures(**values: float | None) -> Figures:
    """Return the figures of an empty trace, but for what is named."""
    return replace(FiguresAccumulator().figures(), **values)  # type: ignore[arg-type]  # names and types vary


def differing(virtual: Figures, real: Figures) -> list[str]:
    return [one.figure for one in judge(virtual, real) if not one.agrees]


def test_every_figure_is_judged_once() -> None:
    judged = judge(figures(generations=3), figures(generations=3))
    assert {one.figure for one in judged} == COMPARED
    assert len(judged) == len(COMPARED)
    assert judged[0] == ("generations", 3, 3, True)


@pytest.mark.parametrize("figure", sorted(COMPARED))
def test_a_figure_that_one_run_does_not_have_differs(figure: str) -> None:
    known, unknown = figures(**{figure: 0}), figures(**{figure: None})
    assert differing(known, unknown) == [figure]
    assert differing(unknown, known) == [figure]
    assert differing(unknown, unknown) == []
    assert differing(known, known) == []


def test_counts_are_equal() -> None:
    assert differing(figures(generations=100), figures(generations=101)) == ["generations"]


@pytest.mark.parametrize("figure", sorted(TIMES))
def test_times_are_near(figure: str) -> None:
    """Within 200 ms, or a tenth of the longer one. The unit of a figure is in its name."""
    unit = 1000 if figure.endswith("_ms") else 1
    for virtual, real, agree in (
        (0, 0.2, True), (0, 0.201, False), (0.2, 0, True), (1, 1.2, True), (1, 1.201, False),
        (90, 100, True), (89.9, 100, False), (100, 90, True), (100, 89.9, False),
    ):  # fmt: skip
        found = differing(figures(**{figure: virtual * unit}), figures(**{figure: real * unit}))
        assert (found == []) == agree, (virtual, real)


def test_the_answer_names_what_differs() -> None:
    same, other = figures(generations=1), figures(generations=2, unowned_max_seconds=5.0)
    assert agreement_answer(judge(same, same)) == (
        "Virtual and real time agree: generations equal, every time within the larger of 10 % and 200 ms."
    )
    assert agreement_answer(judge(same, other)).endswith(" in generations, unowned_max_seconds.")
