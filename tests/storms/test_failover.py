"""Another coordinator takes a group over: it knows what was written, and sessions begin anew."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import scenario, storm

SECOND = 1_000_000
START = {"at_ms": 0, "do": "start"}
FAILOVER = {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 20_000}
FIXED: dict[str, Any] = {
    "members": 3,
    "partitions": 6,
    "net_latency_ms": 1,
    "start_ms": {"exactly": 1000},
    "poll_interval_ms": 10,
    "partition.assignment.strategy": ["cooperative-sticky"],
}


@pytest.mark.parametrize("for_ms", [1_000, 20_000, 100_000])
def test_a_quiet_group_survives_an_outage_even_one_longer_than_its_sessions(for_ms: int) -> None:
    result = storm(scenario([START, {**FAILOVER, "for_ms": for_ms}], **FIXED, tail_ms=60_000))
    assert result.broken == {}
    assert result.figures.generations == 1
    assert not result.events("member_removed")
    [(loaded_us, _)] = result.events("group_created", cause="loaded")
    assert loaded_us == 60 * SECOND + for_ms * 1000


def test_a_round_under_way_is_forgotten_and_its_newcomer_joins_again() -> None:
    """member-2 has joined and waits for member-0, which is busy, when the coordinator dies."""
    steps = [
        {**START, "members": [0, 1]},
        {"at_ms": 55_000, "do": "busy", "members": [0], "for_ms": 40_000},
        {"at_ms": 58_000, "do": "start", "members": [2]},
        FAILOVER,
    ]
    result = storm(scenario(steps, **FIXED))
    assert result.broken == {}
    refused = [at_us for at_us, _ in result.events("join_answered", error="UNKNOWN_MEMBER_ID")]
    assert (
        any(at_us > 80 * SECOND for at_us in refused)
        or result.events("member_added", member="member-2")[-1][0] > 80 * SECOND
    )
    owners = {event.member for at_us, event in result.events("partitions_assigned") if event.partitions}
    assert owners == {"member-0", "member-1", "member-2"}


def test_a_process_that_starts_in_the_outage_joins_when_the_coordinator_is_there() -> None:
    """A shorter failover within the longer one does not end it."""
    shorter = {**FAILOVER, "at_ms": 65_000, "for_ms": 1_000}
    start = {"at_ms": 70_000, "do": "start", "members": [2]}
    result = storm(scenario([{**START, "members": [0, 1]}, FAILOVER, shorter, start], **FIXED))
    assert [at_us for at_us, _ in result.events("group_created", cause="loaded")] == [80 * SECOND]
    [(added_us, _)] = result.events("member_added", member="member-2")
    assert 80 * SECOND < added_us < 81 * SECOND
    assert result.broken == {}


@pytest.mark.parametrize(("backoff_ms", "asked"), [(100, 3 * 200), (300, 3 * 66)])
def test_members_ask_for_the_coordinator_every_retry_backoff(backoff_ms: int, asked: int) -> None:
    """Three members are without one for 20 s."""
    result = storm(scenario([START, FAILOVER], **FIXED, **{"retry.backoff.ms": backoff_ms}))
    [(_, refused)] = result.events("requests_counted", error="COORDINATOR_NOT_AVAILABLE")
    assert (refused.api, refused.count) == ("FindCoordinator", asked)
    assert result.broken == {}


@pytest.mark.slow
def test_exact_and_computed_traces_are_equal_through_failovers() -> None:
    steps = [
        {**START, "over_ms": 5000},
        FAILOVER,
        {"at_ms": 100_000, "do": "rolling-restart"},
        {**FAILOVER, "at_ms": 101_500, "for_ms": 60_000},
        {"at_ms": 110_000, "do": "pause", "members": [0], "for_ms": 70_000},
    ]
    what = scenario(steps, **FIXED)
    computed, simulated = (storm(what, exact=exact) for exact in (False, True))
    assert computed.rows == simulated.rows
    assert computed.broken == {}
