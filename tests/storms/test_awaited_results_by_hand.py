"""Results that a process waits for, and whether it can send and receive: one member at 30 s, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME
from groupstorm.storms.world.world import World
from tests.storms.storms_in_memory import START
from tests.storms.test_world import begun, consumer, until

MS, SECOND = 1_000, 1_000_000


class Member:
    """A member that goes on from nothing. ``went_on``: when (ms) it would have, and with what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.world: World = until(begun(START, **settings), 30_000)
        self.process = consumer(self.world)
        self.went_on: list[tuple[int, Any]] = []
        monkeypatch.setattr(VirtualConsumer, "_go_on", self._go_on)

    def _go_on(self, result: Any) -> None:
        self.went_on.append((self.world.clock.now_us // MS, result))


def test_a_result_that_takes_no_time_is_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    assert member.process.later(0, "result") == "result"
    until(member.world, 40_000)
    assert member.went_on == []


def test_a_result_that_takes_time_comes_then(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    assert member.process.later(2_000 * MS, "result") is TAKES_TIME
    until(member.world, 40_000)
    assert member.went_on == [(32_000, "result")]


@pytest.mark.parametrize("why", ["another operation", "the process is gone"])
def test_a_result_that_nobody_waits_for_any_more_is_dropped(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    member = Member(monkeypatch)
    process = member.process
    waits = process.expected_result()
    if why == "another operation":
        process.step += 1
    else:
        process.crash()
        process.completed(process.step, "at the step that is the last one")
    waits("result")
    assert member.went_on == []


def test_what_an_operation_waits_for_comes_while_it_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Member(monkeypatch)
    waits = member.process.expected_result()
    until(member.world, 31_000)
    waits("result")
    assert member.went_on == [(31_000, "result")]


def test_a_result_for_a_process_that_stands_still_waits_until_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch)
    process = member.process
    process.later(2_000 * MS, "first")
    process.pauses.pause(10 * SECOND)
    until(member.world, 39_999)
    assert member.went_on == []
    until(member.world, 50_000)
    assert member.went_on[0] == (40_000, "first")


def test_a_result_at_the_instant_at_which_a_process_runs_again_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member(monkeypatch)
    process = member.process
    process.pauses.pause(10 * SECOND)
    member.world.clock.advance_to(40 * SECOND)
    process.completed(process.step, "result")
    assert member.went_on == [(40_000, "result")]


# -- the way to the coordinator


@pytest.mark.parametrize(
    ("obstacle", "receives", "reachable"),
    [
        ("none", True, True),
        ("broken", False, False),
        ("paused", False, False),
        ("gone", False, False),
        ("requests are swallowed", True, False),
    ],
)
def test_who_stands_still_or_is_cut_off_neither_sends_nor_receives(
    obstacle: str, receives: bool, reachable: bool
) -> None:
    world = until(begun(START), 30_000)
    process = consumer(world)
    match obstacle:
        case "broken":
            process.connection.broken_until_us = 40 * SECOND
        case "paused":
            process.pauses.paused_until_us = 40 * SECOND
        case "gone":
            process.crash()
        case "requests are swallowed":
            process.connection.no_requests_until_us = 40 * SECOND
    assert (process.receives(), process.reachable()) == (receives, reachable)


@pytest.mark.parametrize("obstacle", ["broken", "paused", "requests are swallowed"])
def test_an_obstacle_is_over_at_its_end(obstacle: str) -> None:
    world = until(begun(START), 30_000)
    process = consumer(world)
    match obstacle:
        case "broken":
            process.connection.broken_until_us = 30 * SECOND
        case "paused":
            process.pauses.paused_until_us = 30 * SECOND
        case "requests are swallowed":
            process.connection.no_requests_until_us = 30 * SECOND
    assert (process.receives(), process.reachable()) == (True, True)


def test_a_process_that_stands_still_does_not_lose_its_coordinator_meanwhile() -> None:
    """A lost connection of 20 s, at 60 s, during a pause of 5 s: it has no effect."""
    pause = {"at_ms": 30_000, "do": "pause", "members": [0], "for_ms": 5_000}
    world = until(begun(START, pause), 31_000)
    process = consumer(world)
    process.disconnect(20 * SECOND)
    assert not process.connection.broken
    until(world, 36_000)
    process.disconnect(20 * SECOND)
    assert process.connection.broken


# -- what the application does


@pytest.mark.parametrize(
    ("rate", "process_ms", "share", "between_us"),
    [
        # of 142.857 s each, it does 7 records in 1,000 s: 142.857142 s each
        (0, 142_857, 0, 142_857_142),
        # half of its time is 8 sixteenths; 50 ms between two looks are at most 25 ms of work
        (25, 20, 8, 25_000),
        # 15.49 and 15.5 sixteenths
        (968, 1, 15, 50_000 * 15 // 16),
        (969, 1, 16, 500_000),
        # all of its time: 500 records of 20 ms
        (50, 20, 16, 10_000_000),
    ],
)
def test_the_share_of_its_time_that_an_application_works_is_in_sixteenths(
    rate: int, process_ms: int, share: int, between_us: int
) -> None:
    process = consumer(until(begun(START, record_rate=rate, process_ms=process_ms), 30_000))
    assert process.work_share() == (share, between_us)


@pytest.mark.parametrize(("drift_ppm", "interval_us"), [(0, 22_000_000), (100_000, 20_000_000)])
def test_a_process_counts_max_poll_interval_by_its_own_clock(drift_ppm: int, interval_us: int) -> None:
    settings = {"max.poll.interval.ms": 22_000, "clock_drift_ppm": drift_ppm}
    process = consumer(until(begun(START, **settings), 30_000))
    assert process.poll_deadline_us(5_000_000) == 5_000_000 + interval_us
