"""The table of the fidelity page: real runs beside seeds in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.generated_pages import check_section
from tests.reality.cases import CASES, RUNS
from tests.reality.measure import read_measured
from tests.reality.table import INSIDE, NEAR, OUTSIDE, UNKNOWN, Line, lines, markdown


@pytest.mark.slow
def test_the_table_is_that_of_the_measured_runs() -> None:
    check_section("fidelity.md", "reality", "\n".join(markdown(list(lines(read_measured())))))


def test_every_case_was_measured_five_times_with_every_library_that_can_take_part() -> None:
    measured = read_measured()
    assert len(CASES) == 8
    assert {name: {*found} for name, found in measured.items()} == {
        case.name: {*case.libraries} for case in CASES
    }
    assert {len(runs) for found in measured.values() for runs in found.values()} == {RUNS}


@pytest.mark.parametrize(
    ("real", "verdict"),
    [
        ((2.4, 2.5, 9), INSIDE),
        ((1, 2.3, 2.4), INSIDE),
        ((0.5, 0.7, 2.6), INSIDE),
        ((2.7, 2.75, 3), NEAR),
        ((2.7, 2.8, 3), OUTSIDE),
        ((1.7,), OUTSIDE),
        ((), UNKNOWN),
    ],
)
def test_real_runs_are_held_against_the_seeds(real: Sequence[float], verdict: str) -> None:
    """Seeds of 2.3 to 2.6 s with the median 2.5: a real median in that range is inside, and so is one whose
    runs lie on both sides of 2.5. Of medians that differ, 10 % of the larger one is near: 0.25 of 0.275 s,
    not 0.3 of 0.28."""
    line = Line("case", "java", "unowned_max_seconds", (2.3, 2.5, 2.6), real)
    assert line.verdict == verdict
