"""Batches whose records take no time, or are interrupted, or are of a partition that went on: by hand."""

from __future__ import annotations

from groupstorm.storms.record_logs import RecordLogs
from tests.storms.test_batches import SECOND, A, B, batch, looks, two


def test_records_that_take_no_time_are_done_when_they_are_handed_out() -> None:
    made = batch((A, 20, 3, 100, 100), (B, 60, 4, 100, 104))
    assert made.done(99) == 0
    assert made.done(100) == 3


def test_the_last_record_before_an_interruption_is_finished_before_it() -> None:
    """Five records in 50 us, a millisecond without work, five more."""
    made = batch((A, 20, 5, 100, 150), (A, 25, 5, 1_150, 1_200))
    assert made.finished_us(5) == 150
    assert made.finished_us(6) == 1_160


def test_finished_records_do_not_take_a_later_position_back() -> None:
    """All ten records of A are done, and none of B's."""
    behind = {A: 45, B: 65}
    two().take_back(behind, 10)
    assert behind == {A: 45, B: 60}


def test_every_look_is_alike_if_the_work_takes_the_whole_interval() -> None:
    """90 records a second are at most 10 in 100 ms, of 10 ms each."""
    curve = RecordLogs(lambda _: ((0, 90_000),)).curve(A)
    assert looks(process_ms=10).sure_until_us([A], [curve], SECOND, SECOND) == -1
