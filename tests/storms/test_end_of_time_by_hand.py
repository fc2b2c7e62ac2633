"""How long a run goes on: its checks, its tail, the time to settle, and what is observed after that.

The world is at rest from 1 s on unless a test says otherwise; its tail takes 7 s, and it has 60 s to settle.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.settling import Rounds
from groupstorm.storms.world import simulation
from groupstorm.storms.world.clock import Clock
from groupstorm.trace.events.coordinator import GroupStateChanged
from tests.storms.storms_in_memory import START, MemorySink, scenario

SECOND, HOUR = 1_000_000, 3_600
T0 = TopicPartition("t", 0)


class World:
    """A world and its steps at once. ``stops``: when (s) time stood still, which is when it was looked at.

    ``settled_at``: whether the group is settled at that second; ``round_every``: how many seconds apart its
    rounds are, 0: there are none; ``behind``: its lag.
    """

    def __init__(self, **settings: int) -> None:
        self.clock = Clock()
        self.stops: list[float] = []
        self.settled_at: Callable[[float], bool] = lambda _now_s: True
        self.pending_at: Callable[[float], int] = lambda _now_s: 0
        self.round_every = 0
        self.behind = 0
        self.gave_up = False
        self.follow_ups = False
        self.partitions: tuple[TopicPartition, ...] = ()
        self.consumers: dict[str, Any] = {}
        self.committed = {T0: 5}
        self.left_behind: list[str] = []
        self.rounds = Rounds()
        self.verdicts: list[tuple[str, str]] = []
        self.invariants = SimpleNamespace(violated=lambda *verdict: self.verdicts.append(verdict))
        given = {"settle_timeout_ms": 60_000, "least_duration_ms": 0, "tail_ms": 7_000} | settings
        self.settings = Settings(("", given))
        self.asked_to_give_up = 0

    @property
    def now_s(self) -> float:
        return self.clock.now_us / SECOND

    @property
    def settled(self) -> bool:
        return self.settled_at(self.now_s)

    @property
    def pending(self) -> int:
        return self.pending_at(self.now_s)

    def lag(self) -> int:
        return self.behind

    def run_until(self, end_us: int) -> None:
        before_s = self.clock.now_us // SECOND
        self.clock.advance_to(end_us)
        self.stops.append(self.now_s)
        for at_s in range(before_s + 1, end_us // SECOND + 1):
            if self.round_every and at_s % self.round_every == 0:
                event = GroupStateChanged("g", "", "CompletingRebalance", 1, "x", None, None, None, 1)
                self.rounds.group_changed(event, at_s * SECOND)

    def give_up_follow_ups(self) -> bool:
        self.asked_to_give_up += 1
        return self.gave_up

    # what the end of a run needs beside that
    group, requests, scenario = "g", (), None

    def finish(self) -> None:
        self.stops.append(-1)

    def flush_trace(self) -> None:
        pass


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Simulates a scenario whose world and steps are this one."""
    resolved = scenario([START]).resolve(None, 1, {})
    monkeypatch.setattr(simulation, "emit_run_end", lambda _: None)

    def simulated(world: Any) -> None:
        monkeypatch.setattr(simulation, "_begin", lambda *_: (world, world))
        simulation.simulate(resolved, (), MemorySink())
        assert world.stops.pop() == -1

    return simulated


Run = Callable[[Any], None]


def test_a_run_looks_every_second_whether_it_is_over_and_then_adds_its_tail(run: Run) -> None:
    world = World()
    world.settled_at = lambda now_s: now_s >= 3
    run(world)
    assert (world.stops, world.verdicts, world.asked_to_give_up) == ([1, 2, 3, 10], [], 1)


def test_members_that_give_up_their_follow_ups_get_time_for_a_last_rebalance(run: Run) -> None:
    world = World()
    world.gave_up = True
    world.settled_at = lambda now_s: now_s == 1 or now_s >= 4
    run(world)
    assert world.stops == [1, 8], "the group is at rest: there is none"
    world = World()
    world.follow_ups = world.gave_up = True
    world.settled_at = lambda now_s: now_s >= 63
    run(world)
    assert world.stops == [*range(1, 64), 70]


def test_a_last_rebalance_may_take_ten_minutes_and_is_not_observed(run: Run) -> None:
    """The time to settle is over at 61 s: the first look, at 1 s, finds that the steps are done."""
    world = World()
    world.gave_up = True
    world.settled_at = lambda _: False
    world.round_every = 1
    run(world)
    assert world.stops == [*range(1, 662), 668]
    assert world.verdicts == []


def test_a_group_that_is_unsettled_during_the_tail_gets_time_and_another_tail(run: Run) -> None:
    world = World()
    world.settled_at = lambda now_s: now_s == 1 or now_s >= 11
    run(world)
    assert world.stops == [1, 8, 9, 10, 11, 18]


def test_a_group_at_rest_whose_tail_is_longer_than_its_time_to_settle_gets_no_other_one(run: Run) -> None:
    """It is at rest at 1 s, and 1 + 60 s are over at the end of the tail."""
    world = World(tail_ms=60_000)
    world.settled_at = lambda now_s: now_s == 1
    run(world)
    assert world.stops == [1, 61]
    world = World(tail_ms=59_999)
    world.settled_at = lambda now_s: now_s in (1, 61.999)
    run(world)
    assert world.stops == [1, 60.999, 61.999, 121.998]


def test_a_group_that_is_settled_without_rounds_is_not_observed(run: Run) -> None:
    """Its lag has not gone."""
    world = World()
    world.behind = 1
    run(world)
    assert (world.stops, world.verdicts) == ([*range(1, 62), 68], [])


def test_a_group_that_does_not_settle_is_observed_for_an_hour_from_its_last_step_on(run: Run) -> None:
    """The last step is done at 100 s, after a pause: it was done before at 50 s. A round every 500 s, from
    500 s to 3,500 s."""
    world = World()
    world.pending_at = lambda now_s: int(now_s < 50 or 70 <= now_s < 100)
    world.settled_at = lambda _: False
    world.round_every = 500
    run(world)
    assert world.stops == [*range(1, 161), *range(167, 100 + HOUR + 1)]
    assert world.verdicts == [
        ("group_settles", "livelock: 7 rounds in an hour, no partition progressed for 58 minutes")
    ]


def test_a_group_that_comes_to_rest_while_it_is_observed_has_settled_late(run: Run) -> None:
    world = World()
    world.settled_at = lambda now_s: now_s >= 200
    run(world)
    assert world.stops[-1] == 200
    assert world.verdicts == [
        (
            "group_settles",
            "settled late: the group came to rest 3 minutes after the last step (settle_timeout_ms)",
        )
    ]


def test_a_group_is_observed_for_500_rounds_at_most(run: Run) -> None:
    """It completes one every second: 68 until the end of the tail."""
    world = World()
    world.settled_at = lambda _: False
    world.round_every = 1
    run(world)
    assert world.stops[-1] == 68 + 500
    [(_, sentence)] = world.verdicts
    assert sentence.startswith("livelock: 568 rounds in 9 minutes")


def test_nothing_is_said_of_the_rounds_of_a_group_that_waits_for_members_left_behind(run: Run) -> None:
    """The checks say it, when the run is over."""
    world = World()
    world.settled_at = lambda _: False
    world.round_every = 500
    world.left_behind = ["member-0"]
    run(world)
    assert (world.stops[-1], world.verdicts) == (HOUR + 1, [])


def test_nothing_is_said_of_a_group_that_does_not_settle_for_reasons_unknown(run: Run) -> None:
    world = World()
    world.settled_at = lambda _: False
    run(world)
    assert (world.stops[-1], world.verdicts) == (HOUR + 1, [])


def test_steps_that_begin_again_during_the_tail_are_waited_for(run: Run) -> None:
    """The group is unsettled at 8 s by a step that goes on until 20 s; the tail comes after that."""
    world = World()
    world.pending_at = lambda now_s: int(8 <= now_s < 20)
    world.settled_at = lambda now_s: not 8 <= now_s < 25
    run(world)
    assert world.stops == [1, *range(8, 26), 32]


def test_garbage_is_collected_rarely_while_a_run_goes_on_and_as_before_afterwards() -> None:
    """Also if the run ends with an error."""
    alone = {"members": 1, "partitions": 1, "record_rate": 0, "partition.assignment.strategy": ["range"]}
    resolved = scenario([START], **alone).resolve(None, 1, {})
    assignors = chosen_assignors(resolved)
    before = gc.get_threshold()
    during: list[tuple[int, int]] = []

    def progress(_at_us: int, _phase: str) -> None:
        during.append((gc.get_threshold()[0], gc.get_freeze_count()))

    def fails(_at_us: int, _phase: str) -> None:
        raise ZeroDivisionError

    simulation.simulate(resolved, assignors, MemorySink(), progress=progress)
    assert all(threshold > before[0] and frozen > 0 for threshold, frozen in during)
    assert during
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
    with pytest.raises(ZeroDivisionError):
        simulation.simulate(resolved, assignors, MemorySink(), progress=fails)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
