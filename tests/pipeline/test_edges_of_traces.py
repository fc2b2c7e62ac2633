"""The local engine at the edges: the first instant, deletions before owners are complete, several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.pipeline.local import analyze_locally
from groupstorm.pipeline.local_tables import all_rows
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import Request, SlowHandover, why
from groupstorm.problems import InputError
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.tracing import SECOND, Trace, coordinator_trace
from tests.pipeline.traces import write_trace


def tables_of(trace: Trace, folder: Path, table: str) -> list[dict[str, Any]]:
    write_trace(trace.rows, folder)
    _, tables = analyze_locally(Request({"r": folder}))
    return [dict(row) for row in all_rows(tables, table)]


def test_a_trace_that_ends_at_its_first_instant_is_one(tmp_path: Path) -> None:
    trace = Trace()
    trace.scenario("t-0")
    assert tables_of(trace, tmp_path / "r", "handovers") == []


def test_partitions_that_go_before_they_had_an_owner_are_not_waited_for(tmp_path: Path) -> None:
    trace = Trace()
    created = world_events.PartitionsCreated("g", ("t",), ("t-0", "t-1", "t-2"))
    trace.add(0, Source.WORLD, created)  # of no scenario: nobody knows when a consumer could have begun
    trace.add(1, Source.WORLD, world_events.PartitionsDeleted("g", ("t",), ("t-1",)))
    trace.start(2, "a")
    trace.take(3, "a", 1, "t-0", at=0)
    trace.revoke(5, "a", 1, "t-0", at=0)  # not every partition has had an owner yet: no handover
    trace.take(6, "a", 2, "t-0", "t-2", at=0)
    trace.revoke(10, "a", 2, "t-0", at=0)
    trace.take(14, "a", 3, "t-0", at=0)
    trace.end(20)
    gaps = tables_of(trace, tmp_path / "r", "handovers")
    assert [(gap["partition"], gap["from_us"], gap["gap_us"]) for gap in gaps] == [
        ("t-0", 10 * SECOND, 4 * SECOND)
    ]


def test_a_group_that_is_created_was_not_away_before(tmp_path: Path) -> None:
    trace = coordinator_trace("cooperative-sticky")
    trace.rows[:0] = []
    created = Trace(has_member_rows=False)
    created.create(0, "join")
    created.rows += trace.rows
    created.sync(14, "b", 2, "t-1")
    gaps = tables_of(created, tmp_path / "r", "handovers")
    assert [(gap["partition"], gap["gap_us"]) for gap in gaps] == [("t-1", SECOND)]


@pytest.mark.parametrize(("paused", "position"), [(False, 60), (True, 50)])
def test_a_rate_counts_for_owners_that_process(paused: bool, position: int, tmp_path: Path) -> None:
    """An owner at position 50 goes on with one record a second for ten seconds, unless it is paused."""
    trace = Trace()
    trace.scenario("t-0", record_rate=100, process_rate=5)
    trace.start(0, "a")
    trace.take(10, "a", 1, "t-0", at=0)
    if paused:
        trace.pause(20, "a", "t-0", at=50)
    trace.rates(20, "a", {"t-0": (50, 1)})
    trace.end(30)
    (interval,) = tables_of(trace, tmp_path / "r", "intervals")
    assert interval["to_position"] == position


def test_a_file_that_is_named_like_a_trace_is_no_folder_of_runs(tmp_path: Path) -> None:
    trace = Trace()
    trace.scenario("t-0")
    write_trace(trace.rows, tmp_path / "all" / "run")
    (tmp_path / "all" / "empty").mkdir()
    (tmp_path / "all" / "empty" / "notes.txt").write_text("no trace")
    assert list(find_traces([tmp_path / "all"])) == ["run"]
    with pytest.raises(InputError, match="neither in it nor below it"):
        find_traces([tmp_path / "all" / "empty"])


def test_waiting_for_a_round_is_told_in_seconds() -> None:
    handover = SlowHandover(
        "r", "t-0", 1, 0, 100_000_000, "a", "b", 1, "member_crashed", None, 99_950_000, "session-expired"
    )
    assert "the next round began 100 s later (session-expired)" in why(handover)


def test_a_round_that_began_with_the_gap_is_no_wait() -> None:
    handover = SlowHandover("r", "t-0", 1, 5, 9, "a", "b", 1, "member_crashed", None, 5, "left")
    assert "in a round because of left" in why(handover)
