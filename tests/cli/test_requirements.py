"""`--require`: which side of each comparison holds, the limit itself included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupstorm.cli.failed_runs import requirements_of
from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.problems import InputError
from groupstorm.verdicts.requirements import COMPARISONS, parse


@pytest.fixture(scope="module")
def figures() -> Figures:
    return replace(FiguresAccumulator().figures(), generations=3)


@pytest.mark.parametrize(
    ("comparison", "met"),
    [
        ("<", {4}),
        ("<=", {3, 4}),
        ("==", {3}),
        (">=", {2, 3}),
        (">", {2}),
    ],
)
def test_three_generations(figures: Figures, comparison: str, met: set[int]) -> None:
    limits = {limit for limit in (2, 3, 4) if parse(f"generations{comparison}{limit}").unmet(figures) is None}
    assert limits == met


def test_every_comparison_is_tested() -> None:
    assert set(COMPARISONS) == {"<", "<=", "==", ">=", ">"}


def test_the_sentence_names_figure_value_and_limit(figures: Figures) -> None:
    assert parse(" generations <= 2.5 ").unmet(figures) == "generations is 3, but <= 2.5 was required"


def test_a_figure_without_a_value_meets_nothing(figures: Figures) -> None:
    unknown = replace(figures, settled_after_ms=None)
    assert parse("settled_after_ms<=9").unmet(unknown) == (
        "settled_after_ms has no value in this run, but <= 9 was required"
    )


@pytest.mark.parametrize(
    "text",
    [
        "generations",
        "generations=<3",
        "generations<three",
        "answer<3",
        "<3",
        "generations<3s",
        "generations<3 for 101%",
    ],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--require"):
        parse(text)


def test_a_limit_may_have_a_unit(figures: Figures) -> None:
    known = replace(figures, unowned_max_seconds=90.0, settled_after_ms=90_000.0)
    for figure in ("unowned_max_seconds", "settled_after_ms"):
        assert parse(f"{figure}<=1.5m").is_met(known)
        assert not parse(f"{figure}<90s").is_met(known)
    with pytest.raises(InputError, match="'parsecs' is no unit"):
        parse("unowned_max_seconds<3parsecs")


def test_a_share_of_the_runs_may_be_enough(figures: Figures) -> None:
    runs = {f"seed {number}": replace(figures, generations=1 if number else 5) for number in range(4)}
    assert parse("generations==1 for 75%").unmet_by(runs) == []
    assert parse("generations==1 for 75.1%").unmet_by(runs) == [
        "generations==1 for 75.1% was required, but 3 of 4 runs meet it"
    ]
    assert parse("generations==1").unmet_by(runs) == ["seed 0: generations is 5, but == 1 was required"]


def test_a_limit_on_staleness_says_what_real_consumers_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.figure for one in requirements_of(["staleness_max_seconds<30"])] == ["staleness_max_seconds"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("staleness_max_seconds is too low after an outage a real consumer works off one")
    requirements_of(["unowned_max_seconds<30", "staleness_max_seconds>30"], "--goal")
    assert capsys.readouterr().err == ""
