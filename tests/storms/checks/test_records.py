"""Records that are processed again and records that wait, in rows written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import RECORDS_ADD_UP
from groupstorm.trace.events.member import PartitionsAssigned, PartitionsRevoked
from groupstorm.trace.events.scenario import PartitionsDeleted, RecordRatesChanged, ScenarioStarted
from groupstorm.trace.schema import Source
from tests.storms.checks import rows as r
from tests.storms.checks.rows import Row

SECOND = 1_000_000


def violated(rows: Sequence[Row], again: int, peak: int, from_us: int = 0) -> str:
    """The verdict on these figures of a run that ends at 100 s, "" if they may be right."""
    checks = InvariantChecks(figures_from_us=from_us)
    for time_s, event in rows:
        checks.add(time_s * SECOND, Source.WORLD, event)
    figures = replace(FiguresAccumulator().figures(), records_duplicated=again, lag_peak=peak)
    checks.figures_made(100 * SECOND, figures)
    return checks.violations.get(RECORDS_ADD_UP, "")


def taken(process: str, position: int) -> PartitionsAssigned:
    return PartitionsAssigned("g", process, f"{process}-1", 1, ("t-0",), (position,), 0)


def given_up(process: str, position: int) -> PartitionsRevoked:
    return PartitionsRevoked("g", process, f"{process}-1", 1, ("t-0",), (position,), (0,), 0, "rebalance")


#: Ten records a second; the first owner keeps up until 20 s, and the next one begins at 30 s.
FIRST: list[Row] = [
    (0, ScenarioStarted("g", "{}", ("t-0",), 10, 100)),
    *((0, r.started(process)) for process in "ab"),
    (1, taken("a", 0)),
    (20, given_up("a", 200)),
]


@pytest.mark.parametrize(
    ("begins", "ends", "again"),
    [
        (200, 400, 0),
        (150, 400, 50),
        (150, 170, 20),  # it does not come as far as the first owner
    ],
)
def test_an_owner_processes_again_what_lies_in_front_of_the_furthest_position(
    begins: int, ends: int, again: int
) -> None:
    rows = [*FIRST, (30, taken("b", begins)), (40, given_up("b", ends)), (40, taken("a", ends))]
    assert violated(rows, again, 10_000) == ""
    for wrong in (again - 1, again + 1):
        own = f"by the rows of the owners it is {again}"
        assert violated(rows, wrong, 10_000) == f"records_duplicated is {wrong}, and {own}"


@pytest.mark.parametrize(
    "rows",
    [
        # records were skipped, and nobody knows by the furthest position which ones
        [(30, taken("b", 300)), (40, given_up("b", 400)), (40, taken("a", 250)), (50, given_up("a", 500))],
        # the partition was deleted
        [(30, taken("b", 100)), (40, PartitionsDeleted("g", ("t",), ("t-0",)))],
    ],
)
def test_after_gaps_and_deletions_more_may_be_processed_again(rows: list[Row]) -> None:
    assert violated([*FIRST, *rows], 500, 10_000) == ""


def test_figures_that_count_from_later_on_lack_what_was_processed_again_before() -> None:
    rows = [*FIRST, (30, taken("b", 150)), (40, given_up("b", 400)), (40, taken("a", 400))]
    assert violated(rows, 0, 10_000, from_us=35 * SECOND) == ""


@pytest.mark.parametrize(
    ("rows", "peak"),
    [
        ([(30, taken("b", 200))], 100),
        ([], 800),  # until the end of the run
        ([(25, RecordRatesChanged("g", ("t-0",), (250,), (5_000,))), (30, taken("b", 200))], 50),
        ([(30, PartitionsDeleted("g", ("t",), ("t-0",)))], 100),
    ],
)
def test_the_records_of_partitions_without_an_owner_wait(rows: list[Row], peak: int) -> None:
    assert violated([*FIRST, *rows], 0, peak) == ""
    own = f"{peak} records arrived for partitions without an owner"
    assert violated([*FIRST, *rows], 0, peak - 1) == f"lag_peak is {peak - 1}, and {own}"
