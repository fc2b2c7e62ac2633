"""When the requests of one series leave and arrive, at the borders, and with a timer that is late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.storms.world.periodic_requests.lateness import LENGTH, SHARES, DrawnSums, Lateness
from groupstorm.storms.world.periodic_requests.schedule import HEARTBEAT, RequestSchedule

MS, SECOND = 1_000, 1_000_000


def series(lateness: Lateness | None = None, latency_us: int = 10 * MS) -> RequestSchedule:
    """Due at 4 s, 7 s, 10 s and so on, unless the timer is late; none takes more than 20 ms."""
    connection: Any = SimpleNamespace(epoch=0, periodic_latency_us=lambda sent_us: latency_us)
    anything: Any = None
    return RequestSchedule(HEARTBEAT, SECOND, 3 * SECOND, anything, connection, 20 * MS, lateness)


def late(*us: int, then_us: int = 0) -> Lateness:
    """A timer that is late by so much the first times, and by ``then_us`` all others, if nobody works."""
    return Lateness(DrawnSums([*us, *[then_us] * (LENGTH - len(us))]), 0)


def test_a_request_without_latency_arrives_when_it_leaves() -> None:
    found = series(latency_us=0)
    assert [found.arrives_after(1, at) for at in (4 * SECOND - 1, 4 * SECOND)] == [True, False]
    assert [found.last_arrived(at) for at in (4 * SECOND - 1, 4 * SECOND)] == [0, 1]
    assert [found.first_arriving(at) for at in (4 * SECOND, 4 * SECOND + 1)] == [1, 2]


def test_a_timer_that_is_late_at_first_sends_its_first_request_later_than_most() -> None:
    """The first request leaves at 4.1 s, though a timer that is as late as this one in the mean has sent it
    by then."""
    found = series(late(100 * MS))
    times = (4 * SECOND + 1, 4_100_000, 4_100_001, 7_100_000, 7_100_001)
    assert [found.last_sent(at) for at in times] == [0, 0, 1, 1, 2]


def test_a_timer_that_becomes_late_sends_its_first_requests_earlier_than_most() -> None:
    """It is on time 1,000 times, and a second late later: nearly a second in the mean."""
    found = series(late(*[0] * 1_000, then_us=SECOND))
    times = (4 * SECOND, 4 * SECOND + 1, 301 * SECOND, 301 * SECOND + 1)
    assert [found.last_sent(at) for at in times] == [0, 1, 99, 100]
    assert found.next_sent_us(4 * SECOND + 1) == 7 * SECOND


def test_work_delays_the_requests_behind_the_next_one() -> None:
    """It begins at 4 s, when the first request leaves: the second one stays where it is."""
    found = series(late())
    found.works(4 * SECOND, SHARES, SECOND)
    assert [found.sent_us(k) for k in (1, 2)] == [4 * SECOND, 7 * SECOND]
    assert found.sent_us(3) > 10 * SECOND
    assert found.most_apart_us() == 4_020_000


@pytest.mark.parametrize("asked", [1, 3])
def test_work_moves_the_arrival_of_a_request_that_was_asked_for_before(asked: int) -> None:
    found = series(late())
    found.arrival_us(3)
    found.works(4 * SECOND, SHARES, SECOND)
    assert found.arrival_us(asked) == found.sent_us(asked) + 10 * MS


def test_a_timer_that_is_always_on_time_does_not_know_of_work() -> None:
    found = series()
    found.works(4 * SECOND, SHARES, SECOND)
    assert [found.sent_us(k) for k in (1, 2, 3)] == [4 * SECOND, 7 * SECOND, 10 * SECOND]


def test_every_request_of_a_new_series_is_contact_and_computed() -> None:
    """Nothing has been refused or made real, and none of them came too early to say something."""
    found = series()
    assert [found.accepted(k) for k in (0, 1, 2)] == [0, 1, 2]
    assert [found.computed(k) for k in (0, 1, 2)] == [0, 1, 2]
    assert [found.settled, *found.real] == [0]
