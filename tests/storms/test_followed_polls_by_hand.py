"""How a process follows its application's polls, which come when a test says so.

max.poll.interval.ms is 20 s. Who leaves says so with two entries (`LEFT`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.storms.world.application_polls import ApplicationPolls
from tests.storms.test_application_polls import LEFT, MS, SECOND, Process, stalled
from tests.storms.test_poll_loop import P, loop


class Polls:
    """In the place of a `PollLoop`: an application that polls at these seconds. ``looks``: how often it was
    asked, ``forgotten``: until when (ms)."""

    def __init__(self, *at_s: int) -> None:
        self.at_s = at_s
        self.looks = 0
        self.forgotten: list[int] = []

    def last_poll_us(self, now_us: int) -> int:
        self.looks += 1
        return max(at_s * SECOND for at_s in self.at_s if at_s * SECOND <= now_us)

    def poll_after_us(self, now_us: int) -> int:
        return min(at_s * SECOND for at_s in (*self.at_s, 1_000) if at_s * SECOND > now_us)

    def next_poll_us(self, now_us: int) -> int:
        return self.poll_after_us(now_us - 1)

    def regular_until_us(self, now_us: int, limit_us: int) -> int:
        return now_us

    def forget(self, now_us: int) -> None:
        self.forgotten.append(now_us // MS)


def polling(*at_s: int) -> tuple[Process, Polls]:
    """A process whose application polls then; from 0 on it is followed."""
    process, polls = Process(), Polls(*at_s)
    process.work = SimpleNamespace(loop=polls)
    process.polls = ApplicationPolls(process.clock, process)
    process.polls.watch()
    return process, polls


def left(*at_s: int) -> list[tuple[int, str]]:
    return [(each * 1_000, what) for each in at_s for what in LEFT]


def test_a_poll_at_the_end_of_the_interval_is_not_too_late() -> None:
    process, _ = polling(0, 20, 40, 61)
    assert process.until(80_000) == left(60)


def test_an_interval_that_is_over_at_this_instant_is_over() -> None:
    """The last poll was at 10 s, and nobody has followed it until 30 s."""
    process = Process()
    process.until(10_000)
    process.work.loop.stall(10 * SECOND, 25 * SECOND, True)
    process.until(30_000)
    process.polls.watch()
    assert process.until(80_000) == left(30)


def test_polls_are_looked_at_again_when_they_may_not_be_regular_any_more() -> None:
    """From 40 s on a record comes each millisecond, and takes 100 ms. The 100 that have come at 40.1 s are
    done at 50.1 s, and the 500 of the poll then at 100.1 s: the interval is over at 70.1 s."""
    process = Process()
    ours = loop({P[0]: ((0, 0), (40 * SECOND, 1_000_000))}, process_ms=100)
    ours.own((P[0],), (0,), 0)
    process.work = SimpleNamespace(loop=ours)
    process.polls = ApplicationPolls(process.clock, process)
    process.polls.watch()
    assert process.until(90_000) == [(70_100, what) for what in LEFT]


def test_a_member_that_left_is_followed_from_its_next_poll_on() -> None:
    """The intervals behind 10 s and 35 s are over before the next poll."""
    process, _ = polling(0, 10, 35, 70, 80)
    assert process.until(90_000) == left(30, 55)


def test_a_process_that_stood_still_is_followed_from_its_next_poll_on() -> None:
    """It stands still at 30 s, when the interval is over, until 40 s."""
    process, _ = polling(0, 10, 45, 80, 90)
    process.pauses.paused_until_us = 40 * SECOND
    assert process.until(100_000) == left(65)


def test_polls_that_have_changed_are_followed_anew() -> None:
    """At 20 s the application is about to poll at 25 s, not at 35 s: it leaves only behind 45 s."""
    process, polls = polling(0, 10, 35)
    process.until(20_000)
    polls.at_s = (0, 10, 25, 45, 70)
    process.polls.watch()
    assert process.until(80_000) == left(65)


def test_each_poll_is_looked_at_once() -> None:
    """However often somebody has asked to follow them."""
    process, polls = polling(0, 10, 20, 30)
    process.polls.watch()
    before = polls.looks
    process.until(30_000)
    assert polls.looks - before == 3


def test_the_polls_of_a_process_that_is_gone_are_not_looked_at() -> None:
    process, polls = polling(0, 10, 20, 30)
    process.until(15_000)
    process.alive, before = False, polls.looks
    process.until(100_000)
    assert polls.looks == before


def test_a_member_that_left_joins_again_at_the_next_poll() -> None:
    process = stalled(25)

    def poll_timed_out() -> Any:
        process.membership.rejoin_needed = True
        return "leave"

    process.membership.poll_timed_out = poll_timed_out
    assert process.until(40_000) == [
        *left(30),
        (30_000, "stop commits"),
        (35_000, "completed 4 None"),
    ]


def test_in_exact_mode_what_lies_behind_a_poll_may_be_forgotten() -> None:
    """So what is kept does not grow with the polls."""
    process, polls = polling(0, 10, 20)
    process.polls.simulate_each()
    process.until(25_000)
    assert polls.forgotten == [0, 10_000, 20_000]
