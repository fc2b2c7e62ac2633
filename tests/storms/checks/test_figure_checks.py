"""Time without an owner and repeated or waiting records, in rows by hand and figures that may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import RECORDS_ADD_UP, TIMES_ADD_UP
from groupstorm.trace.events.coordinator import GroupCreated, GroupDeleted
from groupstorm.trace.events.member import MemberCrashed, PartitionsAssigned, PartitionsRevoked
from groupstorm.trace.events.scenario import (
    PartitionsCreated,
    PartitionsDeleted,
    RecordRatesChanged,
    ScenarioStarted,
    StepTaken,
)
from groupstorm.trace.schema import Source
from tests.storms.checks import rows as r
from tests.storms.checks.rows import Row

SECOND = 1_000_000


def verdict(invariant: str, rows: Sequence[Row], from_us: int, **figures: Any) -> str:
    """The verdict on these figures of a run that ends at 100 s, "" if they may be right."""
    checks = InvariantChecks(figures_from_us=from_us)
    for time_s, event in rows:
        checks.add(time_s * SECOND, Source.WORLD, event)
    checks.figures_made(100 * SECOND, replace(FiguresAccumulator().figures(), **figures))
    return checks.violations.get(invariant, "")


def violated(
    rows: Sequence[Row],
    unowned: float | None,
    longest: float | None,
    crashed: float | None,
    from_us: int = 0,
    deployed: float | None = None,
) -> str:
    return verdict(
        TIMES_ADD_UP,
        rows,
        from_us,
        unowned_partition_seconds=unowned,
        unowned_max_seconds=longest,
        crash_unowned_partition_seconds=crashed,
        deploy_unowned_partition_seconds=deployed,
    )


def crashed(member_id: str, *partitions: str) -> MemberCrashed:
    return MemberCrashed("g", r.name(member_id), member_id, 1, partitions, (), ())


#: From 10 s on both partitions have an owner: 15 s after the first start in all.
BEGUN: list[Row] = [
    (0, PartitionsCreated("g", ("t",), ("t-0", "t-1"))),
    *((0, one) for process in "ab" for one in (r.started(process), r.added(f"{process}-1"))),
    (5, r.taken("a-1", "t-0")),
    (10, r.taken("b-1", "t-1")),
]
GONE: Row = (20, r.revoked("a-1", "t-0"))
CRASHED: Row = (20, crashed("a-1", "t-0"))


@pytest.mark.parametrize(
    ("rows", "unowned", "longest", "crash"),
    [
        (BEGUN[:1], None, None, None),  # nobody has started
        (BEGUN[:-1], 105.0, 100.0, 0.0),  # nobody ever takes t-1
        (BEGUN, 15.0, 10.0, 0.0),
        ([*BEGUN, GONE], 95.0, 80.0, 0.0),
        ([*BEGUN, GONE, (50, r.taken("b-1", "t-0"))], 45.0, 30.0, 0.0),
        ([*BEGUN, CRASHED, (50, r.taken("b-1", "t-0"))], 45.0, 30.0, 30.0),
        # a process that was asked to stop, and one that is no member any more
        ([*BEGUN, (15, StepTaken("g", "a", "stop", "SIGTERM")), CRASHED], 95.0, 80.0, 0.0),
        ([*BEGUN, (15, r.removed("a-1")), CRASHED], 95.0, 80.0, 0.0),
        # a second owner
        ([*BEGUN, (15, r.taken("b-1", "t-0")), GONE], 15.0, 10.0, 0.0),
        # there is no partition, or no group
        ([*BEGUN, GONE, (30, PartitionsDeleted("g", ("t",), ("t-0",)))], 25.0, 10.0, 0.0),
        ([*BEGUN, (30, PartitionsCreated("g", ("t",), ("t-2",)))], 85.0, 70.0, 0.0),
        (
            [*BEGUN, GONE, (30, GroupDeleted("g", "expired")), (70, GroupCreated("g", "join"))],
            55.0,
            40.0,
            0.0,
        ),
    ],
)
def test_the_times_without_an_owner_add_up(
    rows: list[Row], unowned: float | None, longest: float | None, crash: float | None
) -> None:
    assert violated(rows, unowned, longest, crash) == ""
    if unowned is not None:
        found = violated(rows, unowned - 1, longest, crash)
        own = f"the rows of the owners add up to {unowned:.6f} s"
        assert found == f"unowned_partition_seconds is {unowned - 1}, and {own}"
    if longest is not None:
        assert violated(rows, unowned, longest - 1, crash).startswith("unowned_max_seconds is ")
    if crash:
        assert violated(rows, unowned, longest, 0.0).startswith("crash_unowned_partition_seconds is 0.0, ")


def test_a_thread_of_kafka_streams_is_asked_to_stop_with_its_process() -> None:
    thread = "a-StreamThread-1"
    rows: list[Row] = [
        *BEGUN[:1],
        (0, r.started("a")._replace(member=thread)),
        (0, r.added("a-1")._replace(member=thread)),
        *BEGUN[3:5],
        (5, r.taken("a-1", "t-0")._replace(member=thread)),
        *BEGUN[6:],
        (20, crashed("a-1", "t-0")._replace(member=thread)),
    ]
    asked: Row = (15, StepTaken("g", "a", "stop", "SIGTERM"))
    assert violated(rows, 95.0, 80.0, 0.0).startswith("crash_unowned_partition_seconds is 0.0, ")
    assert violated([*rows[:-1], asked, rows[-1]], 95.0, 80.0, 0.0) == ""


def test_a_deployment_has_begun_the_time_behind_a_close() -> None:
    rows = [*BEGUN, (20, r.revoked("a-1", "t-0", cause="close")), (50, r.taken("b-1", "t-0"))]
    assert violated(rows, 45.0, 30.0, 0.0, deployed=30.0) == ""
    own = "the rows of the owners add up to 30.000000 s"
    assert (
        violated(rows, 45.0, 30.0, 30.0, deployed=0.0)
        == f"deploy_unowned_partition_seconds is 0.0, and {own}"
    )


def test_figures_that_count_from_later_on_lack_the_time_before() -> None:
    assert violated([*BEGUN, CRASHED], 60.0, 60.0, 60.0, from_us=40 * SECOND) == ""


# -- records ---------------------------------------------------------------------------------------


def miscounted(rows: Sequence[Row], again: int, peak: int, from_us: int = 0) -> str:
    return verdict(RECORDS_ADD_UP, rows, from_us, records_duplicated=again, lag_peak=peak)


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
    assert miscounted(rows, again, 10_000) == ""
    for wrong in (again - 1, again + 1):
        own = f"by the rows of the owners it is {again}"
        assert miscounted(rows, wrong, 10_000) == f"records_duplicated is {wrong}, and {own}"


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
    assert miscounted([*FIRST, *rows], 500, 10_000) == ""


def test_figures_that_count_from_later_on_lack_what_was_processed_again_before() -> None:
    rows = [*FIRST, (30, taken("b", 150)), (40, given_up("b", 400)), (40, taken("a", 400))]
    assert miscounted(rows, 0, 10_000, from_us=35 * SECOND) == ""


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
    assert miscounted([*FIRST, *rows], 0, peak) == ""
    own = f"{peak} records arrived for partitions without an owner"
    assert miscounted([*FIRST, *rows], 0, peak - 1) == f"lag_peak is {peak - 1}, and {own}"
