"""Logs and owners whose rates change, on traces of a few rows that can be checked by eye."""

from __future__ import annotations

from groupstorm.history.records import Line, RecordModel
from tests.figures.tracing import SECOND, Trace


def test_a_log_that_changes_after_its_first_owner_began() -> None:
    """The owner begins at 0 in that instant: a row behind it does not say where the log began."""
    trace = Trace.begun("t-0", record_rate=10, process_rate=0)
    trace.take(0, "a", 1, "t-0", at=0)
    trace.logs(0, {"t-0": (50, 0)})
    assert trace.ended(10).lag_peak == 50


def test_records_begin_with_the_first_rate_above_zero() -> None:
    trace = Trace.begun("t-0", record_rate=0, process_rate=50)
    trace.take(0, "a", 1, "t-0")
    trace.logs(5, {"t-0": (0, 0)})
    assert trace.figures().lag_peak is None
    trace.logs(10, {"t-0": (0, 100)})
    figures = trace.ended(20)
    assert figures.lag_peak == 500
    assert figures.records_processed == 500


def test_positions_are_whole_records_and_stay_exact() -> None:
    """Rows in between do not move the place: three records in 7 s."""
    model = RecordModel(1, 1)
    model.change_log("t-0", Line(100, 7 * SECOND, 3000))
    owner = Line(90, 0, 429)  # 0.429 records a second
    assert model.position("t-0", owner, 7 * SECOND) == 93
    assert model.position("t-0", owner, 6_993_007) == 93
    assert model.position("t-0", owner, 6_993_006) == 92
    assert model.position("t-0", Line(90, 0, 10**9), 8 * SECOND) == 103
    assert model.position("t-0", Line(200, 0, 10**9), 8 * SECOND) == 200
    assert model.position("other", Line(0, 0, 10**9), 8 * SECOND) == 8


def stopped() -> Trace:
    """One partition, whose owner does not get anywhere from the first second on."""
    trace = Trace.begun("t-0", record_rate=10, process_rate=10)
    trace.take(0, "a", 1, "t-0")
    trace.rates(1, "a", {"t-0": (10, 0)})
    return trace


def test_a_group_that_begins_again_at_the_same_number_begins_another_generation() -> None:
    """Generation 1 is Stable at 10, 20 and 40 s, the last time after the group was empty. The second time it
    is the same one, whose write had failed."""
    trace = stopped()
    for at_s, state, number in ((10, "Stable", 1), (20, "Stable", 1), (30, "Empty", 2), (40, "Stable", 1)):
        trace.state_to(at_s, state, number)
    trace.rows.sort(key=lambda row: row[0])
    assert trace.ended(100).generations_without_progress_max == 2


def test_of_equal_ages_the_first_by_name() -> None:
    trace = Trace.begun("t-1", "t-0", record_rate=10, process_rate=1000)
    trace.take(0, "a", 1, "t-0", "t-1")
    trace.crash(1, "a", 1, "t-0", "t-1", at=10)
    figures = trace.ended(10)
    assert figures.staleness_worst_partition == figures.unowned_worst_partition == "t-0"


def test_the_95th_percentile_of_partitions() -> None:
    """The second oldest of 21 partitions decides: 20 are at most this old."""
    trace = Trace()
    names = [f"t-{number}" for number in range(21)]
    trace.scenario(*names, record_rate=10, process_rate=1000)
    trace.take(0, "a", 1, *names)
    for number, name in enumerate(names):
        trace.revoke(1 + number, "a", 1, name, at=10 * (1 + number))
    assert trace.ended(30).staleness_p95_seconds == 30 - 2.1


def test_records_that_a_member_gets_more_than_another() -> None:
    trace = Trace.begun("t-0", "t-1", "t-2", record_rate=10, process_rate=1000)
    for member in ("a", "b"):
        trace.start(0, member)
    trace.logs(0, {"t-0": (0, 70)})
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1", "t-2")})
    assert trace.figures().imbalance_records_max == 50
    trace.logs(5, {"t-0": (350, 30), "t-1": (50, 200)})
    trace.round(6, 2, {"a": (), "b": ()})
    assert trace.ended(10).imbalance_records_max == 180


def test_one_record_is_progress_in_a_generation_that_was_complete_before_there_were_records() -> None:
    trace = Trace.begun("t-0", record_rate=0, process_rate=1)
    trace.start(0, "a")
    trace.round(1, 1, {"a": ("t-0",)})
    trace.logs(5, {"t-0": (0, 10)})
    trace.revoke(9, "a", 1, "t-0", at=1)
    trace.round(10, 2, {"a": ("t-0",)}, at=1)
    assert trace.ended(20).generations_without_progress_max == 0
