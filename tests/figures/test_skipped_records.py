"""Records that no owner will ever read, because the first or the next one began behind them: ten a second."""

from __future__ import annotations

from groupstorm.figures import Figures
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.test_deleted_partitions import create
from tests.figures.tracing import SECOND, Trace


def skipped(trace: Trace, from_s: int = 0) -> tuple[int | None, str | None]:
    figures = trace.figures(from_s * SECOND)
    return figures.records_skipped, figures.skipped_worst_partition


def group(*partitions: str, starts_at: float = 0) -> Trace:
    trace = Trace.begun(*partitions, record_rate=10, process_rate=100)
    trace.start(starts_at, "a")
    return trace


def test_whoever_begins_at_the_beginning_skips_nothing() -> None:
    """One owner begins with the records from before the group's start, another one at a commit among them."""
    trace = group("t-0", "t-1", starts_at=20)
    trace.take(23, "a", 1, "t-0", at=0)
    trace.take(23, "a", 1, "t-1", at=150)
    trace.end(30)
    assert skipped(trace) == (0, None)


def test_a_window_counts_what_is_skipped_in_it() -> None:
    """30 records before it; in it 20 of t-1, after a crash without a commit."""
    trace = group("t-0", "t-1")
    trace.take(3, "a", 1, "t-0", at=30)
    trace.take(1, "a", 1, "t-1", at=10)
    trace.crash(20, "a", 1, "t-0", "t-1", at=200)
    trace.take(22, "b", 2, "t-1", at=220)
    trace.take(24, "b", 2, "t-0", at=200)
    trace.end(30)
    assert skipped(trace) == (30 + 10 + 20, "t-0")
    assert skipped(trace, from_s=10) == (20, "t-1")


def test_lag_that_is_skipped_is_not_recovered() -> None:
    """t-1 has no owner for six seconds. Whoever begins at its beginning catches up in 60 / (100 - 10) s."""

    def grown(at: int) -> Figures:
        trace = group("t-0")
        trace.round(0, 1, {"a": ("t-0",)})
        create(trace, 40, "t-1")
        trace.logs(40, {"t-1": (0, 10)})
        trace.take(46, "a", 1, "t-1", at=at)
        trace.end(60)
        return trace.figures()

    read, lost = grown(0), grown(60)
    assert (read.lag_peak, read.records_skipped, read.lag_recovery_seconds) == (60, 0, 6.666667)
    assert (lost.lag_peak, lost.records_skipped, lost.lag_recovery_seconds) == (60, 60, None)


def test_the_answer_names_the_partition_and_the_remedy() -> None:
    trace = group("t-0")
    trace.take(3, "a", 1, "t-0", at=30)
    trace.end(5)
    answer = trace.figures().answer
    assert (
        "30 records skipped, most of them in t-0, all of them as the group began without a commit "
        "(auto.offset.reset=earliest reads them)"
    ) in answer


def test_of_skipped_records_those_of_the_groups_first_owners_are_told_apart() -> None:
    """30 of t-0 as the group began, 60 of t-1, which came later. In a window from 10 s on the 30 are none."""
    trace = group("t-0")
    trace.take(3, "a", 1, "t-0", at=30)
    create(trace, 40, "t-1")
    trace.logs(40, {"t-1": (0, 10)})
    trace.take(46, "a", 2, "t-1", at=60)
    trace.end(50)
    whole, later = trace.figures(), trace.figures(10 * SECOND)
    assert (whole.records_skipped, whole.records_skipped_at_start) == (90, 30)
    assert (later.records_skipped, later.records_skipped_at_start) == (60, 0)
    assert "30 of them as the group began without a commit" in whole.answer


def test_a_partition_that_no_row_creates_counts_from_its_first_owner_on() -> None:
    trace = group("t-0")
    trace.take(0, "a", 1, "t-0")
    trace.add(10, Source.WORLD, world_events.RecordRatesChanged("g", ("t-9",), (500,), (10_000,)))
    trace.take(20, "a", 1, "t-9", at=600)
    trace.end(30)
    assert skipped(trace) == (0, None)
