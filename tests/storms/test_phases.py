"""Timers stand at an instant of their periods when a step comes: drawn by the seed, or aligned."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

SEEDS = range(6)
CRASH = {"at_ms": 60_000, "do": "crash", "members": [0]}
GROWS = {"at_ms": 400_000, "do": "add-partitions", "topic": "topic-0", "partitions": 8}
DRAWN: dict[str, Any] = {**FIXED, "phases": "drawn", "members": 2, "partitions": 4}


def seconds_after(result: Storm, at_s: int, event: str, **fields: Any) -> float:
    return min(us / 1e6 - at_s for us, _ in result.events(event, **fields) if us > at_s * 1_000_000)


def test_a_session_expires_anywhere_within_a_heartbeat_interval() -> None:
    """45 s after the last heartbeat, which was up to 3 s before the crash."""
    world = scenario([START, CRASH], **DRAWN)
    after = [seconds_after(storm(world, seed), 60, "member_removed", member="member-0") for seed in SEEDS]
    assert all(42 <= one <= 45.01 for one in after)
    assert max(after) - min(after) > 1


def test_a_leader_sees_new_partitions_within_the_age_that_metadata_may_have() -> None:
    """Six seeds: least and most are at least a third of the five minutes apart, with odds of 300 to 1."""
    world = scenario([START, GROWS], **DRAWN)
    after = [
        seconds_after(storm(world, seed), 400, "rejoin_requested", cause="metadata-changed") for seed in SEEDS
    ]
    assert all(0 <= one <= 300.2 for one in after)
    assert max(after) - min(after) > 100


def test_a_process_that_starts_later_has_fresh_metadata() -> None:
    """It starts at 70 s and is the leader, as the only member: it refreshes at 370 s and not before."""
    steps = [START, {**CRASH, "do": "stop"}, {"at_ms": 70_000, "do": "add"}, {**GROWS, "at_ms": 100_000}]
    world = scenario(steps, **{**DRAWN, "members": 1, "start_ms": 0})
    after = [
        seconds_after(storm(world, seed), 100, "rejoin_requested", cause="metadata-changed")
        for seed in (0, 1)
    ]
    assert all(270 <= one <= 270.2 for one in after)


def test_variants_of_one_seed_start_at_the_same_instant() -> None:
    started = {
        storm(scenario([START, CRASH], **DRAWN, **more), seed=3).events("member_started")[0][0]
        for more in ({}, {"partition.assignment.strategy": ["range"]}, {"group.protocol": "consumer"})
    }
    assert len(started) == 1
    assert 0 < min(started) < 5_000_000


@pytest.mark.slow
def test_the_first_start_leaves_three_quarters_of_the_time_before_the_next_step() -> None:
    world = scenario([START, {**CRASH, "at_ms": 2_000}], **DRAWN)
    started = [storm(world, seed).events("member_started")[0][0] for seed in SEEDS]
    assert all(0 < one < 500_000 for one in started)


def test_steps_that_start_members_keep_their_distance() -> None:
    steps = [{**START, "members": [0]}, {**START, "members": [1], "at_ms": 7_000}]
    found = storm(scenario(steps, **DRAWN), seed=2).events("member_started")
    assert found[1][0] - found[0][0] == 7_000_000
