"""The lag's curve to the microsecond and the billionth of a record, where rows fall on its ends."""

from __future__ import annotations

from itertools import product

from groupstorm.history.frontier import Frontier, course
from groupstorm.history.lag import LagCurve
from groupstorm.history.ownership import Ownership
from groupstorm.history.records import NANO, Line, Owner

#: One record arrives in a microsecond, or is processed in one.
RATE = NANO


def owner(position: int, from_us: int, rate: int) -> Owner:
    """One who goes along this line."""
    return Owner("a", position, position, from_us, rate)


def test_what_was_processed_and_what_waits_add_up_exactly() -> None:
    curve = LagCurve()
    curve.start(0, [curve.create("t", 0, Line(0, 0, RATE))], [owner(0, 0, RATE // 4)])
    assert curve.processed_and_waiting(8) == (2 * NANO, 6 * NANO)
    curve.delete("t", 10)
    assert curve.processed_and_waiting(10) == (10 * NANO // 4, 0), "what was processed stays processed"


def test_an_owner_that_is_a_billionth_of_a_record_behind_or_slower_lags() -> None:
    behind = LagCurve()
    behind.start(1, [behind.create("t", 0, Line(0, 0, 1))], [owner(0, 1, 1)])
    assert behind.processed_and_waiting(5) == (4, 1)
    slower = LagCurve()
    slower.start(0, [slower.create("t", 0, Line(0, 0, 3))], [owner(0, 0, 2)])
    assert slower.processed_and_waiting(5) == (10, 5)


def test_records_of_before_a_partition_was_created_count_neither_as_processed_nor_as_lag() -> None:
    curve = LagCurve()
    curve.create("t", 5, Line(0, 0, RATE))
    assert curve.processed_and_waiting(5) == (0, 0)
    assert curve.processed_and_waiting(7) == (0, 2 * NANO)


def test_the_lag_has_to_come_back_to_what_it_was_before_the_first_row_of_all() -> None:
    curve = LagCurve()
    curve.mark(0)
    curve.create("t", 0, Line(0, 0, 1))
    assert curve.finish(1) == (None, None), "a billionth of a record is left"


def test_a_window_begins_with_the_lag_of_that_time() -> None:
    """The lag was 10 records at 10 us and none from 20 us on: a window from 25 us on has no lag."""
    curve = LagCurve()
    partition = curve.create("t", 0, Line(0, 0, RATE))
    curve.begin_peak(0)
    curve.start(10, [partition], [owner(0, 10, 2 * RATE)])
    curve.begin_window(25)
    assert curve.finish(30) == (0, None)


def test_the_lag_with_which_a_window_begins_counts_though_a_row_of_that_time_ends_it() -> None:
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, RATE))
    curve.begin_peak(0)
    curve.begin_window(10)
    curve.delete("t", 10)
    assert curve.finish(12) == (10 * NANO, None)


def test_the_last_rows_of_all_count() -> None:
    """The owner's line was at 10 records, but it stops at 4: six wait, at the end only."""
    curve = LagCurve()
    partition = curve.create("t", 0, Line(0, 0, RATE))
    first = owner(0, 0, RATE)
    curve.start(0, [partition], [first])
    curve.begin_peak(0)
    curve.stop(10, [partition], [first], [4])
    assert curve.finish(10) == (6 * NANO, None)


def test_a_window_forgets_the_ages_of_partitions_that_were_deleted_before() -> None:
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, RATE))
    curve.begin_peak(0)
    curve.delete("t", 10)
    assert curve.ages() == {"t": 9}, "its first record came at 1 us"
    curve.begin_window(20)
    assert curve.ages() == {}


def test_a_log_that_comes_from_behind_lags_from_the_microsecond_on_in_which_it_is_ahead() -> None:
    """Nine parts of a record behind, five more each microsecond: from 100 us on 0, 0, 1 and 6."""
    assert course(((-9, 5),), 100) == (0, ((101, 1), (102, 4)))


def test_the_usual_cases_go_on_as_the_crossings_of_their_lines_say() -> None:
    """No owner, or one at the furthest position, beyond it or behind it; at all speeds around the log's."""
    for furthest, ahead, log_rate, rate in product((0, 9, 30), (-3, 0, 1, 9, 12), (0, 4), (0, 3, 4, 7, 20)):
        log = Line(0, 0, log_rate)
        frontier = Frontier(0, furthest * NANO, 0, 0, [log], 12 * NANO, log_rate * NANO)
        for owners in ([], [owner(12 - ahead, 5, rate * NANO)]):
            frontier.owners = owners
            end = (12 + 5 * log_rate) * NANO
            distances: tuple[tuple[int, int], ...] = ((end - furthest * NANO, log_rate * NANO),)
            distances += tuple((end - (12 - ahead) * NANO, (log_rate - rate) * NANO) for _ in owners)
            lag, (slope, bends) = frontier.go_on(5), course(distances, 5)
            if frontier.slope < 0 and not frontier.bends:
                frontier.foresee()
            assert lag == max(0, min(distances)[0])
            assert (frontier.slope, frontier.bends) == (slope, bends)


def test_a_deleted_partition_without_records_that_waited_has_no_age() -> None:
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, 0))
    curve.begin_peak(0)
    curve.delete("t", 5)
    assert curve.ages() == {"t": 0}
    curve.create("t", 7, Line(0, 0, 0))
    curve.finish(9)
    assert curve.ages() == {"t": 0}


def test_a_row_that_names_a_partition_twice_goes_on_along_the_last_line() -> None:
    """At 10 us it has come to 9 records, and goes on from 4: it is at 9 again at 15 us."""
    ownership = Ownership()
    ownership.begin_scenario(NANO // 1000, NANO // 1000, 0)
    ownership.create(["t"], 0)
    ownership.assign("a", ["t"], [0], 0, 0)
    ownership.change_processing("a", ["t", "t"], [9, 4], [0, RATE], 10)
    curve = ownership.lag
    assert curve is not None
    assert [curve.processed_and_waiting(now_us)[1] for now_us in (10, 12, 15, 20)] == [
        1 * NANO, 3 * NANO, 6 * NANO, 6 * NANO,
    ]  # fmt: skip
