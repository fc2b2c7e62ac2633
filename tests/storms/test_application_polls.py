"""When an application polls, and what its client does if a poll() comes too late: one process by hand.

It owns a partition from 0 on and polls every 100 ms: 50 records, of 1 ms each. max.poll.interval.ms is 20 s.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.storms.world.application_polls import ApplicationPolls
from groupstorm.storms.world.clock import Clock
from tests.storms.test_clients_by_hand import until
from tests.storms.test_poll_loop import ONE, P, loop

MS, SECOND = 1_000, 1_000_000


class Process:
    """``said``: (millisecond, what)."""

    def __init__(self, at_poll: bool = True, has_max_poll_interval: bool = True) -> None:
        self.clock = Clock()
        self.said: list[tuple[int, str]] = []
        self.alive, self.waits_for_poll, self.step = True, True, 4
        profile = SimpleNamespace(rejoins_at_poll=at_poll, has_max_poll_interval=has_max_poll_interval)
        self.config: Any = SimpleNamespace(profile=profile, request_timeout_ms=30_000)
        self.membership: Any = SimpleNamespace(
            rejoin_needed=False,
            failure=None,
            awaits_poll=False,
            heartbeating=True,
            poll_timed_out=lambda: "leave",
        )
        self.pauses: Any = SimpleNamespace(until_us=0, paused_until_us=0)
        self.periodic_requests: Any = SimpleNamespace(
            stop_commits=lambda: self.note("stop commits"),
            follow_membership=lambda: self.note("follow membership"),
        )
        self.connection: Any = SimpleNamespace(
            send=lambda what, timeout_ms, _: self.note(f"send {what} {timeout_ms}")
        )
        ours = loop(ONE)
        ours.own((P[0],), (0,), 0)
        self.work: Any = SimpleNamespace(loop=ours)
        self.polls = ApplicationPolls(self.clock, self)

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us // MS, what))

    def completed(self, step: int, result: Any) -> None:
        self.note(f"completed {step} {result}")

    def polled(self) -> None:
        self.note("polled")

    def poll_deadline_us(self, polled_us: int) -> int:
        return polled_us + 20 * SECOND

    def until(self, ms: float) -> list[tuple[int, str]]:
        until(self.clock, round(ms * MS))
        return self.said


def test_in_exact_storms_every_poll_is_an_event() -> None:
    process = Process()
    process.polls.simulate_each()
    process.polls.simulate_each()
    assert process.until(250) == [(0, "polled"), (100, "polled"), (200, "polled")]
    process.alive = False
    assert len(process.until(1_000)) == 3


@pytest.mark.parametrize("why", ["rejoin", "failure"])
def test_a_rejoin_or_a_failure_is_noticed_at_the_next_poll(why: str) -> None:
    process = Process()
    process.until(30)
    process.polls.nudge()
    assert process.said == []
    if why == "rejoin":
        process.membership.rejoin_needed = True
    else:
        process.membership.failure = "FENCED_INSTANCE_ID"
    process.polls.nudge()
    process.polls.nudge()
    assert process.until(99) == [(30, "stop commits")]
    assert process.until(1_000) == [(30, "stop commits"), (100, "completed 4 None")]
    process.polls.nudge()
    assert process.until(2_000)[2:] == [(1_000, "stop commits"), (1_000, "completed 4 None")]


@pytest.mark.parametrize("missing", ["alive", "waits_for_poll"])
def test_who_does_not_poll_notices_nothing(missing: str) -> None:
    process = Process()
    process.membership.rejoin_needed = True
    setattr(process, missing, False)
    process.polls.nudge()
    assert process.until(1_000) == []


@pytest.mark.parametrize(
    ("at_poll", "awaits_poll", "until_ms", "paused_ms", "next_ms"),
    [
        (True, False, 0, 0, 100),
        (True, False, 170, 0, 170),
        (False, True, 0, 0, 100),
        (False, False, 0, 0, 30),
        (False, False, 170, 0, 30),
        (False, False, 170, 60, 60),
    ],
)
def test_some_clients_do_not_wait_for_a_poll(
    at_poll: bool, awaits_poll: bool, until_ms: int, paused_ms: int, next_ms: int
) -> None:
    """An application with a slow batch does not poll; a process that stands still does nothing."""
    process = Process(at_poll=at_poll)
    process.membership.awaits_poll = awaits_poll
    process.pauses.until_us, process.pauses.paused_until_us = until_ms * MS, paused_ms * MS
    process.until(30)
    assert process.polls.next_us() == next_ms * MS


def test_a_poll_that_is_put_off_comes_later() -> None:
    process = Process()
    process.until(30)
    process.membership.rejoin_needed = True
    process.polls.nudge()
    process.until(50)
    process.pauses.until_us = 300 * MS
    assert process.until(299)[1:] == []
    process.polls.nudge()
    assert process.until(300)[1:] == [(300, "completed 4 None")]


def test_a_poll_for_an_earlier_step_is_not_put_off() -> None:
    """Its result comes too late in any case."""
    process = Process()
    process.membership.rejoin_needed = True
    process.until(30)
    process.polls.nudge()
    process.step, process.pauses.until_us = 5, 300 * MS
    assert process.until(100)[1:] == [(100, "completed 4 None")]


LEFT = ["follow membership", "send leave 30000"]


def stalled(for_s: int, **own: Any) -> Process:
    """At 10 s the application takes a batch that lasts so long; its next poll() is behind that."""
    process = Process(**own)
    process.polls.watch()
    process.until(10_000)
    process.work.loop.stall(10 * SECOND, for_s * SECOND, True)
    process.polls.watch()
    return process


def test_a_client_leaves_when_max_poll_interval_ms_has_passed() -> None:
    """The last poll() was at 10 s: the batch of that instant is the long one."""
    process = stalled(25)
    assert process.until(29_999) == []
    assert process.until(80_000) == [(30_000, what) for what in LEFT]


@pytest.mark.parametrize(("paused_until_s", "left_s"), [(29, 30), (30, 30), (40, None)])
def test_a_process_that_stands_still_leaves_no_sooner_than_it_goes_on(
    paused_until_s: int, left_s: int | None
) -> None:
    """The interval is over at 30 s: a process that goes on at this instant leaves at once."""
    process = stalled(25)
    process.pauses.paused_until_us = paused_until_s * SECOND
    assert process.until(80_000) == ([] if left_s is None else [(left_s * 1_000, what) for what in LEFT])


def test_polls_that_come_in_time_are_followed_without_an_end() -> None:
    assert stalled(19).until(500_000) == []
    assert stalled(25, has_max_poll_interval=False).until(500_000) == []


def test_a_process_that_is_gone_or_sends_no_heartbeats_does_not_leave() -> None:
    process = stalled(25)
    process.alive = False
    assert process.until(80_000) == []
    process = stalled(25)
    process.membership.heartbeating = False
    assert process.until(80_000) == []


def test_a_client_that_has_nothing_to_send_follows_its_membership_all_the_same() -> None:
    process = stalled(25)
    process.membership.poll_timed_out = lambda: None
    assert process.until(80_000) == [(30_000, "follow membership")]


@pytest.mark.parametrize(("for_us", "leaves"), [(20 * SECOND, False), (20 * SECOND + 1, True)])
def test_an_operation_that_keeps_the_application_from_polling_for_too_long_costs_the_membership(
    for_us: int, leaves: bool
) -> None:
    process = Process()
    process.until(1_000)
    process.polls.interrupted_for(for_us)
    assert process.until(80_000) == ([(21_000, what) for what in LEFT] if leaves else [])


def test_an_operation_that_is_over_by_then_costs_nothing() -> None:
    process = Process()
    process.polls.interrupted_for(25 * SECOND)
    process.step += 1
    assert process.until(80_000) == []
    process = Process(has_max_poll_interval=False)
    process.polls.interrupted_for(25 * SECOND)
    assert process.until(80_000) == []
