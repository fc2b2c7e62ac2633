"""Effects of steps that no transcript beside this file shows."""

from __future__ import annotations

from tests.storms.storms_in_memory import FIXED, START, scenario, storm


def test_an_idle_application_polls_for_its_slow_batch_as_that_begins() -> None:
    """It polls every 20 s; max.poll.interval.ms counts from the slow batch, not from the poll before it."""
    steps = [START, {"at_ms": 75_000, "do": "busy", "members": [0], "for_ms": 120_000}]
    settings = {**FIXED, "poll_interval_ms": 20_000, "max.poll.interval.ms": 30_000}
    result = storm(scenario(steps, members=1, record_rate=0, **settings))
    [(left_us, _)] = result.events("rejoin_requested", cause="poll-timeout")
    assert left_us == 75_000_000 + 30_000_000


def test_an_assignment_that_outlasts_the_session_costs_the_leader_its_membership() -> None:
    result = storm(scenario([START], members=3, assign_ms=50_000, settle_timeout_ms=60_000, **FIXED))
    causes = {event.cause for _, event in result.events("member_removed")}
    assert "session-expired" in causes, "the client's lock is held while the assignor runs: no heartbeats"
    assert result.broken


def test_a_group_that_nobody_can_join_does_not_settle() -> None:
    result = storm(scenario([START], members=3, settle_timeout_ms=5_000, **FIXED, **{"group.max.size": 2}))
    assert [event.error for _, event in result.events("member_failed")] == ["GROUP_MAX_SIZE_REACHED"]
    assert result.broken == {}, "the two that are in do settle"


def test_a_consumer_that_loses_its_connection_while_it_looks_up_its_offsets_asks_again() -> None:
    # member-1 has its assignment at 6,007 ms and is cut off before the answer to OffsetFetch is back
    steps = [START, {"at_ms": 6_008, "do": "disconnect", "members": [0, 1, 2], "for_ms": 10_000}]
    result = storm(scenario(steps, members=3, partitions=6, **FIXED))
    taken = [time_us for time_us, event in result.events("partitions_assigned") if event.partitions]
    assert len(taken) == 3
    assert min(taken) >= 16_008_000
    assert result.broken == {}
