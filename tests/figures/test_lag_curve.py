"""The lag's curve where a partition is deleted or named twice, or a billionth of a record behind.

No trace of `test_brute_force.py` has that.
"""

from __future__ import annotations

from groupstorm.history.lag import LagCurve
from groupstorm.history.ownership import Ownership
from groupstorm.history.records import NANO, Line, Owner

#: One record arrives in a microsecond, or is processed in one.
RATE = NANO


def owner(position: int, from_us: int, rate: int) -> Owner:
    """One who goes along this line."""
    return Owner("a", position, position, from_us, rate)


def test_an_owner_that_is_a_billionth_of_a_record_behind_or_slower_lags() -> None:
    behind = LagCurve()
    behind.start(1, [behind.create("t", 0, Line(0, 0, 1))], [owner(0, 1, 1)])
    assert behind.processed_and_waiting(5) == (4, 1)
    slower = LagCurve()
    slower.start(0, [slower.create("t", 0, Line(0, 0, 3))], [owner(0, 0, 2)])
    assert slower.processed_and_waiting(5) == (10, 5)


def test_the_lag_with_which_a_window_begins_counts_though_a_row_of_that_time_ends_it() -> None:
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, RATE))
    curve.begin_peak(0)
    curve.begin_window(10)
    curve.delete("t", 10)
    assert curve.finish(12) == (10 * NANO, None)


def test_a_window_forgets_the_ages_of_partitions_that_were_deleted_before() -> None:
    curve = LagCurve()
    curve.create("t", 0, Line(0, 0, RATE))
    curve.begin_peak(0)
    curve.delete("t", 10)
    assert curve.ages() == {"t": 9}, "its first record came at 1 us"
    curve.begin_window(20)
    assert curve.ages() == {}


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
