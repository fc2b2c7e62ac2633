"""What an application did in the past is the same after later times were asked for, and after changes.

If nothing else is said, half a record a millisecond arrives: 50 between two polls, which are 100 ms apart.
Each takes 1 ms.
"""

from __future__ import annotations

from groupstorm.storms.world.poll_loop import PollLoop
from tests.storms.test_poll_loop import ONE, SECOND, P, loop

MS = 1_000
BOTH = {P[0]: ((0, 500_000),), P[1]: ((0, 500_000),)}


# --- questions about an earlier time


def test_records_that_take_no_time_are_done_after_their_poll() -> None:
    """100 records wait when the partition comes at 10 s."""
    ours = loop({P[0]: ((0, 10_000),)}, process_ms=0)
    ours.own((P[0],), (0,), 10 * SECOND)
    assert ours.positions(10 * SECOND) == {P[0]: 0}
    assert ours.positions(10 * SECOND + 1) == {P[0]: 100}
    assert ours.positions(10 * SECOND) == {P[0]: 0}, "though more is computed by now"


def test_what_was_done_at_a_poll_may_be_committed_a_microsecond_later() -> None:
    """The poll of 9.9 s had brought what had arrived by then; that was done at 9.95 s."""
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    assert ours.polled_positions(10 * SECOND) == {P[0]: 4_900}
    assert ours.polled_positions(10 * SECOND + 1) == {P[0]: 4_950}


def test_earlier_positions_are_without_the_polls_that_came_later() -> None:
    """1,000 records of each wait, a fetch has 500 of a partition, and a poll all of it: P0's first half until
    10.5 s, P1's until 11 s, and so on."""
    waiting = ((0, 1_000_000), (SECOND, 0))
    ours = loop({P[0]: waiting, P[1]: waiting}, fetch_records=500)
    ours.own(P[:2], (0, 0), 10 * SECOND)
    assert ours.positions(13 * SECOND) == {P[0]: 1_000, P[1]: 1_000}
    assert ours.positions(10 * SECOND + 250 * MS) == {P[0]: 250, P[1]: 0}
    assert ours.positions(10 * SECOND + 750 * MS) == {P[0]: 500, P[1]: 250}
    assert ours.positions(11 * SECOND + 250 * MS) == {P[0]: 750, P[1]: 500}


def test_earlier_positions_are_without_the_many_equal_polls_that_came_later() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (480,), SECOND)
    assert ours.positions(20 * SECOND) == {P[0]: 9_950}
    assert ours.positions(SECOND) == {P[0]: 480}
    assert ours.positions(SECOND + 10 * MS) == {P[0]: 490}


def test_a_partition_that_was_released_has_no_earlier_positions() -> None:
    ours = loop(BOTH)
    ours.own(P[:2], (480, 480), SECOND)
    ours.release((P[0],), 5 * SECOND)
    assert ours.positions(SECOND) == {P[1]: 480}


def test_a_partition_was_owned_at_the_very_time_at_which_it_came() -> None:
    ours = loop(BOTH)
    ours.own((P[0],), (2_500,), 5 * SECOND)
    ours.own((P[1],), (5_000,), 10 * SECOND)
    assert ours.positions(5 * SECOND) == {P[0]: 2_500}
    assert ours.positions(5 * SECOND - 1) == {}


# --- changes before what is computed already


def test_the_records_of_the_first_poll_are_done_one_by_one() -> None:
    """20 records wait."""
    ours = loop(ONE)
    ours.own((P[0],), (4_980,), 10 * SECOND)
    assert ours.positions(10 * SECOND + 10 * MS) == {P[0]: 4_990}


def test_a_partition_that_comes_at_the_time_of_a_poll_is_polled_then() -> None:
    """Ten records of each wait: P0's are done at 10.01 s, P1's at 10.02 s."""
    ours = loop(BOTH)
    ours.own((P[0],), (4_990,), 10 * SECOND)
    assert ours.last_poll_us(10 * SECOND) == 10 * SECOND
    ours.own((P[1],), (4_990,), 10 * SECOND)
    assert ours.positions(10 * SECOND + 5 * MS) == {P[0]: 4_995, P[1]: 4_990}
    assert ours.positions(10 * SECOND + 15 * MS) == {P[0]: 5_000, P[1]: 4_995}


def test_a_partition_that_comes_a_microsecond_after_a_poll_waits_for_the_next_one() -> None:
    """The poll of 10.1 s brings 50 records of P0, and then 100 of P1."""
    ours = loop(BOTH)
    ours.own((P[0],), (0,), 0)
    ours.own((P[1],), (4_950,), 10 * SECOND + 1)
    assert ours.positions(10 * SECOND + 90 * MS) == {P[0]: 5_000, P[1]: 4_950}
    assert ours.positions(10 * SECOND + 160 * MS) == {P[0]: 5_050, P[1]: 4_960}


def test_a_change_does_not_move_the_position_of_another_partition() -> None:
    """5,000 records of P0 wait at 10 s: each poll brings 500 of them, which take half a second."""
    ours = loop({P[0]: ((0, 500_000),), P[1]: ((0, 0),)})
    ours.own((P[0],), (0,), 10 * SECOND)
    assert ours.positions(15 * SECOND) == {P[0]: 5_000}
    ours.own((P[1],), (0,), 10 * SECOND + 250 * MS)
    assert ours.positions(10 * SECOND + 750 * MS) == {P[0]: 750, P[1]: 0}


# --- what is forgotten


def busy() -> PollLoop:
    """It polls at 10 s, 15 s, 20 s ...: 500 records, of 10 ms each. Positions are kept for a minute."""
    ours = loop({P[0]: ((0, 11_000_000),), P[1]: ((0, 0),)}, process_ms=10)
    ours.own((P[0],), (0,), 10 * SECOND)
    return ours


def test_polls_are_forgotten_when_a_later_one_is_a_minute_old() -> None:
    ours = busy()
    assert ours.positions(100 * SECOND) == {P[0]: 9_000}
    ours.forget(75 * SECOND - 1)
    assert ours.last_poll_us(15 * SECOND - 1) == 10 * SECOND
    ours.forget(75 * SECOND)
    assert ours.last_poll_us(15 * SECOND - 1) is None
    assert ours.last_poll_us(15 * SECOND) == 15 * SECOND


def test_the_last_poll_is_never_forgotten() -> None:
    ours = busy()
    assert ours.last_poll_us(20 * SECOND) == 20 * SECOND
    ours.forget(85 * SECOND)
    assert ours.last_poll_us(20 * SECOND - 1) is None
    assert ours.last_poll_us(20 * SECOND) == 20 * SECOND


def test_who_gets_a_partition_forgets_polls_of_long_ago() -> None:
    ours = busy()
    ours.own((P[1],), (0,), 80 * SECOND)
    assert ours.last_poll_us(20 * SECOND - 1) is None
    assert ours.last_poll_us(20 * SECOND) == 20 * SECOND
