"""When an application polls next and polled last, worked out by hand.

If nothing else is said, half a record a millisecond arrives: 50 between two polls, which are 100 ms apart.
Each takes 1 ms.
"""

from __future__ import annotations

import pytest

from groupstorm.storms.randomness import Stream
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes
from tests.storms.test_batches import Slow
from tests.storms.test_poll_loop import ONE, SECOND, P, loop

MS = 1_000
BOTH = {P[0]: ((0, 500_000),), P[1]: ((0, 500_000),)}


def small_polls(poll_records: int) -> PollLoop:
    """All that has arrived is handed out in polls of so many records."""
    times = RecordTimes(distributions.parse("process_ms", 1), 1, Stream(1, "records"))
    interval = distributions.parse("poll_interval_ms", 100)
    settings = PollSettings(poll_records, 1_000, 1_000_000, interval, 60 * SECOND)
    return PollLoop(RecordLogs(lambda tp: ONE[tp]), settings, times)


# --- the first poll


def test_an_application_without_partitions_polls_from_when_it_begins() -> None:
    ours = loop(ONE)
    ours.begin(SECOND)
    assert ours.last_poll_us(SECOND - 1) is None
    assert ours.last_poll_us(SECOND) == SECOND
    assert ours.poll_after_us(SECOND) == SECOND + 100 * MS


def test_an_application_without_partitions_polls_when_it_begins_again_and_had_polled_every_100_ms() -> None:
    """It would have polled at 5.3 s."""
    ours = loop(ONE)
    ours.begin(SECOND)
    assert ours.next_poll_us(5 * SECOND + 220 * MS) == 5 * SECOND + 300 * MS
    ours.begin(5 * SECOND + 250 * MS)
    assert ours.last_poll_us(5 * SECOND + 220 * MS) == 5 * SECOND + 200 * MS
    assert ours.next_poll_us(5 * SECOND + 220 * MS) == 5 * SECOND + 250 * MS
    assert ours.poll_after_us(5 * SECOND + 250 * MS) == 5 * SECOND + 350 * MS


def test_an_application_that_processes_partitions_does_not_begin_again() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    ours.begin(10 * SECOND + 70 * MS)
    assert ours.next_poll_us(10 * SECOND + 70 * MS) == 10 * SECOND + 100 * MS


def test_an_application_that_is_given_no_partition_does_not_begin() -> None:
    ours = loop(ONE)
    ours.own((), (), SECOND)
    assert ours.last_poll_us(5 * SECOND) is None


def test_an_application_that_begins_at_time_0_without_partitions_keeps_up() -> None:
    ours = loop(ONE)
    ours.begin(0)
    assert ours.keeps_up(0)


# --- the next poll


def test_another_partition_does_not_bring_the_next_poll_forward() -> None:
    ours = loop(BOTH)
    ours.own((P[0],), (0,), 0)
    ours.own((P[1],), (0,), 10 * SECOND + 70 * MS)
    assert ours.next_poll_us(10 * SECOND + 70 * MS) == 10 * SECOND + 100 * MS


def test_a_poll_of_the_next_microsecond_comes_after_now() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    assert ours.poll_after_us(10 * SECOND - 1) == 10 * SECOND


@pytest.mark.parametrize(
    ("now_us", "last_ms", "next_ms"),
    [
        (5_000, 0, 10),
        (9_999, 0, 10),
        (10_000, 10, 10),
        (10_001, 10, 20),
        (39_999, 30, 40),
        (40_000, 40, 40),
        (40_001, 40, 100),
        (49_999, 40, 100),
    ],
)
def test_records_of_one_fetch_are_handed_out_in_several_polls(
    now_us: int, last_ms: int, next_ms: int
) -> None:
    """Polls of 10: at 10 s comes the first of five, each is worked on for 10 ms. Times are those after 10 s.

    The work on the fifth ends at 50 ms, but then nothing is left: the interval ends at 100 ms.
    """
    ours = small_polls(10)
    ours.own((P[0],), (0,), 0)
    assert ours.last_poll_us(10 * SECOND + now_us) == 10 * SECOND + last_ms * MS
    assert ours.next_poll_us(10 * SECOND + now_us) == 10 * SECOND + next_ms * MS
    polled = 4_950 + last_ms  # a record a millisecond
    assert ours.polled_positions(10 * SECOND + now_us) == {P[0]: polled}


def test_the_poll_before_a_rate_changes_is_not_passed_over() -> None:
    """The rate changes at 50 s: the polls until 49.9 s are alike."""
    ours = loop({P[0]: ((0, 500_000), (50 * SECOND, 900_000))})
    ours.own((P[0],), (0,), 0)
    for tenth in (497, 498, 499, 500):
        assert ours.next_poll_us((tenth - 1) * 100 * MS + 1) == tenth * 100 * MS


def test_the_end_of_the_work_on_a_full_poll_is_no_end_of_an_interval() -> None:
    """100 records take as long as the interval. 5,000 wait, so that each poll is full."""
    ours = loop(ONE, poll_records=100)
    ours.own((P[0],), (0,), 10 * SECOND)
    assert ours.positions(11 * SECOND) == {P[0]: 1_000}
    assert not ours.keeps_up(11 * SECOND)


# --- partitions that are held


def test_a_held_partition_goes_on_with_the_next_poll_of_the_others() -> None:
    """At 10 s 50 records of each are polled, P1's are worked on from 10.05 s on. The poll of 15.1 s brings
    50 of P0, which take until 15.15 s, and then those of P1."""
    ours = loop(BOTH)
    ours.own(P[:2], (0, 0), 0)
    ours.hold((P[1],), 10 * SECOND + 30 * MS)
    assert ours.positions(20 * SECOND) == {P[0]: 9_950, P[1]: 4_950}
    ours.go_on((P[1],), 15 * SECOND + 30 * MS)
    assert ours.next_poll_us(15 * SECOND + 30 * MS) == 15 * SECOND + 100 * MS
    assert ours.positions(15 * SECOND + 200 * MS) == {P[0]: 7_550, P[1]: 5_000}


def test_an_application_that_held_everything_polls_when_a_partition_goes_on() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    ours.hold((P[0],), 10 * SECOND + 30 * MS)  # 30 of 50 are done
    assert ours.next_poll_us(20 * SECOND + 30 * MS) == 20 * SECOND + 100 * MS
    ours.go_on((P[0],), 20 * SECOND + 30 * MS)
    assert ours.next_poll_us(20 * SECOND + 30 * MS) == 20 * SECOND + 30 * MS
    assert ours.positions(20 * SECOND + 40 * MS) == {P[0]: 4_980 + 10}


def test_a_partition_of_another_process_is_not_held() -> None:
    ours = loop(BOTH)
    ours.own((P[0],), (0,), 0)
    ours.hold(P[:2], SECOND)
    assert (ours.held(P[0]), ours.held(P[1])) == (True, False)
    ours.own((P[1],), (0,), 2 * SECOND)
    assert [*ours.processed_partitions] == [P[1]]


# --- an application that stands still


def test_an_application_that_has_finished_its_work_gets_a_slow_batch_at_once() -> None:
    """The 50 records of 10 s are done at 10.05 s."""
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    now_us = 10 * SECOND + 50 * MS
    ours.stall(now_us, 30 * SECOND, polls=True)
    assert ours.last_poll_us(now_us) == now_us
    assert ours.next_poll_us(now_us + 1) == now_us + 30 * SECOND
    assert ours.positions(now_us + 30 * SECOND) == {P[0]: 5_000}


def test_a_stall_at_time_0_puts_the_first_poll_off() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    ours.stall(0, 5 * SECOND, polls=False)
    assert ours.next_poll_us(0) == 5 * SECOND
    assert ours.last_poll_us(5 * SECOND - 1) is None
    assert ours.last_poll_us(5 * SECOND) == 5 * SECOND


# --- who keeps up


def test_the_first_poll_keeps_up_if_it_takes_everything() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (4_990,), 10 * SECOND)
    assert ours.keeps_up(10 * SECOND)


@pytest.mark.parametrize(("process_ms", "keeps_up"), [(1_000, True), (1_000.001, False)])
def test_who_works_for_more_than_a_second_on_what_it_polled_does_not_keep_up(
    process_ms: float, keeps_up: bool
) -> None:
    ours = loop({P[0]: ((0, 1_000),)}, process_ms=process_ms)
    ours.own((P[0],), (0,), SECOND)
    assert ours.positions(SECOND + SECOND) == {P[0]: int(keeps_up)}, "one record is in hand"
    assert ours.keeps_up(SECOND) is keeps_up


def test_a_thousand_records_that_take_no_time_count_as_a_microsecond() -> None:
    assert loop(ONE, process_ms=0).capacity == 10**12


def test_a_slow_record_that_was_polled_now_is_not_to_come() -> None:
    """Ten records a second arrive: the one of offset 25 at 2.6 s, when the application polls. It takes 10 ms
    more than others, and no slow record follows."""
    process = distributions.parse("process_ms", 1)
    times = RecordTimes(process, 1, Stream(1, "records"), slow=Slow({25: 10 * MS}))
    interval = distributions.parse("poll_interval_ms", 100)
    logs = RecordLogs(lambda _: ((0, 10_000),))
    ours = PollLoop(logs, PollSettings(500, 500, 1_000, interval, 60 * SECOND), times)
    ours.own((P[0],), (0,), 0)
    assert ours.last_poll_us(2_550 * MS) == 2_500 * MS
    assert ours.sure_until_us(2_550 * MS) == 2_600 * MS
    assert ours.last_poll_us(2_600 * MS) == 2_600 * MS
    assert ours.sure_until_us(2_600 * MS) == -1, "for ever"
