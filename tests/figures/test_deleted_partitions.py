"""Partitions that are deleted, and created again under their name."""

from __future__ import annotations

from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace


def delete(trace: Trace, at_s: float, *partitions: str) -> None:
    trace.add(at_s, Source.WORLD, world_events.PartitionsDeleted("g", ("t",), partitions))


def create(trace: Trace, at_s: float, *partitions: str) -> None:
    trace.add(at_s, Source.WORLD, world_events.PartitionsCreated("g", ("t",), partitions))


def test_a_deleted_partition_needs_no_owner() -> None:
    trace = Trace.begun("t-0", "t-1", record_rate=10, process_rate=1000)
    trace.take(0, "a", 1, "t-0", "t-1")
    trace.crash(10, "a", 1, "t-0", at=100)
    delete(trace, 14, "t-0", "t-1")
    trace.revoke(16, "a", 1, "t-1", at=140)  # a learns of it later: the interval is over
    figures = trace.ended(30)
    assert figures.unowned_partition_seconds == figures.unowned_max_seconds == 4
    assert figures.unowned_worst_partition == "t-0"
    assert figures.staleness_max_seconds == 3.9  # the record at offset 100 came at 10.1 s
    assert figures.staleness_worst_partition == "t-0"
    assert figures.lag_peak == 40
    assert figures.records_processed == 100 + 140
    assert figures.settled_after_ms == 14_000


def test_a_partition_that_is_created_again_has_other_records() -> None:
    trace = Trace.begun("t-0", "t-1", record_rate=10, process_rate=1000)
    trace.take(0, "a", 1, "t-0", "t-1")
    trace.crash(7, "a", 1, "t-0", at=70)
    delete(trace, 10, "t-0")
    create(trace, 20, "t-0")
    trace.logs(20, {"t-0": (0, 10)})
    trace.take(22, "a", 2, "t-0", at=5)
    figures = trace.ended(30)
    assert figures.records_processed == 70 + 95 + 300
    assert figures.records_duplicated == 0
    assert figures.records_skipped == 5  # the second t-0 had records from offset 0 on
    assert figures.unowned_partition_seconds == 3 + 2
    assert figures.unowned_max_seconds == 3
    assert figures.paused_partition_seconds == 0  # the second t-0 is another one
    assert figures.crash_unowned_partition_seconds == 3
    assert figures.staleness_max_seconds == 2.9  # the record at offset 70 came at 7.1 s


def test_a_partition_that_is_created_again_was_revoked_from_nobody() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.take(0, "a", 1, "t-0", "t-1")
    trace.revoke(7, "a", 1, "t-0")
    delete(trace, 10, "t-0")
    create(trace, 20, "t-0")
    trace.take(22, "a", 2, "t-0")
    assert trace.ended(30).revoked_and_returned == 0


def test_an_assignment_is_complete_when_the_last_partition_without_an_owner_is_deleted() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.take(0, "a", 1, "t-0")
    delete(trace, 5, "t-1")
    trace.crash(8, "a", 1, "t-0")
    assert trace.ended(10).unowned_partition_seconds == 2


def test_what_members_had_of_it_does_not_count_in_the_balance() -> None:
    trace = Trace.begun("t-0", "t-1", record_rate=10, process_rate=1000)
    for member in ("a", "b"):
        trace.start(0, member)
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)})
    trace.logs(2, {"t-0": (20, 500)})
    delete(trace, 3, "t-0")
    create(trace, 4, "t-0")
    trace.round(5, 2, {"a": (), "b": ("t-0",)})
    figures = trace.ended(10)
    assert figures.imbalance_records_max == 20
    assert figures.imbalance_max == 2
    assert (figures.moves, figures.moves_wasted) == (1, 0)
    assert figures.rounds_per_change == 1


def test_a_deletion_is_a_change_from_which_the_group_settles() -> None:
    """a's arrival takes one generation, the deletion takes two: after the first a asks to join again."""
    trace = Trace.begun("t-0", "t-1")
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0", "t-1")})
    delete(trace, 10, "t-1")
    trace.round(12, 2, {"a": ("t-0",)})
    trace.rejoin(12, "a")
    trace.round(13, 3, {"a": ("t-0",)})
    assert trace.figures().rounds_per_change == 1.5


def test_the_lag_recovers_from_a_deletion() -> None:
    """Ten seconds without an owner and five to catch up at 20 a second, as after any change."""
    trace = Trace.begun("t-0", "t-1", record_rate=10, process_rate=30)
    trace.start(0, "a")
    trace.round(0, 1, {"a": ("t-0", "t-1")})
    delete(trace, 10, "t-1")
    trace.revoke(10, "a", 1, "t-0", at=100)
    trace.round(20, 2, {"a": ("t-0",)}, at=100)
    assert trace.ended(60).lag_recovery_seconds == 15


def test_what_follows_a_deletion_is_no_cost_of_a_deployment() -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.take(0, "a", 1, "t-0", "t-1")
    trace.step(5, "rolling-restart", None, "")
    delete(trace, 10, "t-1")
    trace.revoke(12, "a", 1, "t-0")
    trace.take(14, "a", 2, "t-0")
    figures = trace.ended(20)
    assert figures.unowned_partition_seconds == 2
    assert figures.deploy_unowned_partition_seconds == 0


def test_records_that_were_skipped_before_the_deletion_stay_skipped() -> None:
    """Five between the first owners of t-0, and three of the t-0 that is created again."""
    trace = Trace.begun("t-0", record_rate=10, process_rate=10)
    trace.take(0, "a", 1, "t-0", at=0)
    trace.crash(10, "a", 1, "t-0", at=100)
    trace.take(11, "b", 2, "t-0", at=105)
    delete(trace, 12, "t-0")
    create(trace, 20, "t-0")
    trace.logs(20, {"t-0": (0, 10)})
    trace.take(20, "b", 3, "t-0", at=0)
    trace.crash(22, "b", 3, "t-0", at=20)
    trace.take(25, "a", 4, "t-0", at=23)
    assert trace.ended(30).records_skipped == 5 + 3
