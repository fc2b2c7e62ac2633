"""Storms of few members: when processes start, stand still and end, and which requests are counted.

`transcripts/positions.txt` derives the times of one member.
"""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest

from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.world.simulation import simulate
from tests.storms.storms_in_memory import START, MemorySink, scenario, storm
from tests.storms.transcript import ALONE, WORLD, played


def test_members_start_within_the_time_that_a_step_gives_them() -> None:
    many = scenario([{**START, "over_ms": 10_000}], **WORLD | {"members": 60, "partitions": 60})
    spread = storm(many)
    started = [at_us for at_us, _ in spread.events("member_started")]
    assert len(started) == 60
    assert 0 <= started[0] < 600_000
    assert 9_400_000 < started[-1] < 10_000_000
    assert max(later - earlier for earlier, later in pairwise(started)) < 1_500_000
    again = storm(
        scenario([{**START, "over_ms": 10_000}], **WORLD | {"members": 60, "partitions": 60}), seed=2
    )
    assert [at_us for at_us, _ in again.events("member_started")] != started


def test_added_processes_take_start_ms_and_are_numbered_on() -> None:
    result = storm(scenario([START, {"at_ms": 60_000, "do": "add", "count": 3, "over_ms": 2_000}], **WORLD))
    added = {event.member: at_us for at_us, event in result.events("member_started") if at_us}
    assert sorted(added) == ["member-2", "member-3", "member-4"]
    assert all(70_000_000 <= at_us < 72_000_000 for at_us in added.values())
    assert len(set(added.values())) == 3


def test_the_back_off_of_a_failing_process_is_at_most_five_minutes() -> None:
    settings = {"members": 2, "group.max.size": 1, "restart_failed": True, "start_ms": 0}
    result = storm(scenario([START], **WORLD | settings | {"least_duration_ms": 1_500_000}))
    said = [event.detail for _, event in result.events("step_taken", cause="restart-failed")]
    assert said[:7] == ["in 10 s", "in 20 s", "in 40 s", "in 80 s", "in 160 s", "in 300 s", "in 300 s"]


def test_garbage_collections_end_with_their_process() -> None:
    result = played(
        {"at_ms": 60_000, "do": "crash", "members": [0]},
        gc_pause_ms=300,
        gc_interval_ms=9_700,
        tail_ms=60_000,
    )
    paused = [at_us // 1000 for at_us, _ in result.events("member_paused")]
    assert paused == [9_700, 19_700, 29_700, 39_700, 49_700, 59_700]
    assert [at_us // 1000 for at_us, _ in result.events("member_resumed")] == [
        10_000, 20_000, 30_000, 40_000, 50_000,
    ]  # fmt: skip


def test_pauses_of_a_collector_are_drawn() -> None:
    pause, interval = {"uniform": [100, 500]}, {"uniform": [2_000, 6_000]}
    crash = {"at_ms": 400_000, "do": "crash", "members": [0]}
    result = played(crash, gc_pause_ms=pause, gc_interval_ms=interval)
    rows = result.events("member_paused")
    lasted = [event.duration_us for _, event in rows]
    between = [
        later - earlier - duration
        for (earlier, later), duration in zip(pairwise(at_us for at_us, _ in rows), lasted, strict=False)
    ]
    assert 70 < len(rows) < 130
    assert all(100_000 <= us < 500_000 for us in lasted)
    assert all(2_000_000 <= us < 6_000_000 for us in between)
    assert len(set(lasted)) == len(lasted)
    assert len(set(between)) == len(between)
    assert sum(lasted) / len(lasted) == pytest.approx(300_000, rel=0.2)
    assert sum(between) / len(between) == pytest.approx(4_000_000, rel=0.2)


def test_python_looks_for_cycles_rarely_during_a_storm_and_as_before_afterwards_and_behind_an_error() -> None:
    before, during = gc.get_threshold(), list[int]()
    resolved = scenario([START], **WORLD | ALONE).resolve(None, 1, {})

    def progress(_at_us: int, _phase: str) -> None:
        during.append(gc.get_threshold()[0])
        if len(during) > 10:
            raise ZeroDivisionError

    simulate(resolved, chosen_assignors(resolved), MemorySink(), progress=progress)
    assert min(during) > before[0]
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
    during *= 10
    with pytest.raises(ZeroDivisionError):
        simulate(resolved, chosen_assignors(resolved), MemorySink(), progress=progress)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
