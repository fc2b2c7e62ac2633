"""Faults of the network, of the coordinator and of clocks, another coordinator, and steps that overlap."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm
from tools.fuzz.trial import compare

SECOND = 1_000_000
#: The group is Stable from 6.007 s on. The first heartbeat leaves 3 s after the SyncGroup response.
COOPERATIVE: dict[str, Any] = {**FIXED, "partition.assignment.strategy": "cooperative-sticky"}


def partition(at_ms: int, for_ms: int, direction: str) -> dict[str, Any]:
    return {"at_ms": at_ms, "do": "partition", "members": [1], "for_ms": for_ms, "direction": direction}


def run(*steps: dict[str, Any], members: int = 3, **settings: Any) -> Storm:
    what = scenario([START, *steps], members=members, partitions=6, **{**COOPERATIVE, **settings})
    computed, exact = (storm(what, exact=exact) for exact in (False, True))
    assert compare(computed.rows, exact.rows) == {}
    return computed


# -- partitions of the network ---------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["requests", "both"])
def test_a_member_whose_requests_are_swallowed_is_removed_after_its_session(direction: str) -> None:
    result = run(partition(60_000, 70_000, direction))
    [(removed_us, removed)] = result.events("member_removed")
    assert (removed.member, removed.cause) == ("member-1", "session-expired")
    # a heartbeat left within the last 3 s before the partition
    assert 102 * SECOND < removed_us <= 105_001_000
    # it hears of it from the heartbeat that it sends when requests pass again, and answers take 2 ms
    [(lost_us, lost)] = result.events("partitions_lost", member="member-1")
    assert lost.cause == "UNKNOWN_MEMBER_ID"
    assert lost_us == 130 * SECOND + 2_000
    assert result.broken == {}


def test_a_member_that_does_not_hear_of_a_rebalance_holds_it_up_until_it_does() -> None:
    """Heartbeats arrive and are answered with REBALANCE_IN_PROGRESS: member-1 sees that at 80 s."""
    result = run(partition(60_000, 20_000, "responses"), {"at_ms": 61_000, "do": "add"}, start_ms=0)
    [(asked_us, _), *_] = result.events("rejoin_requested", member="member-1", cause="group-rebalancing")
    assert asked_us == 80_001_000
    [(closed_us, _), *_] = [
        (at_us, event)
        for at_us, event in result.events("group_state_changed", state="CompletingRebalance")
        if at_us > 61 * SECOND
    ]
    assert closed_us == 80_001_000 + 10_000, "a commit and its response, then JoinGroup with the next poll()"
    assert result.broken == {}


def test_a_request_that_is_swallowed_arrives_when_the_network_passes_it() -> None:
    """member-1 knows of the rebalance before requests stop at 64.5 s, and joins at its next poll()."""
    late = {"poll_interval_ms": 10_000, "start_ms": 0}
    steps = ({"at_ms": 61_000, "do": "add"}, partition(64_500, 20_000, "requests"))
    result = run(*steps, members=3, **late)
    joined = [at_us for at_us, _ in result.events("join_parked", member="member-1") if at_us > 61 * SECOND]
    # the commit that was swallowed and its response; JoinGroup with the next poll(), 10 s after the last one
    assert 84_503_000 < joined[0] <= 94_500_000
    assert result.broken == {}


@pytest.mark.parametrize("seed", [0, 7, 8, 13, 20])
def test_no_request_overtakes_the_one_before_on_its_connection(seed: int) -> None:
    """TCP keeps their order: a member that leaves, and joins again, sends nothing behind its LeaveGroup or in
    the generation before."""
    steps = [START, *({"at_ms": 31_000 + 9_013 * n, "do": "restart", "members": [n % 3]} for n in range(6))]
    settings = {"net_latency_ms": {"uniform": [1, 900]}, "auto.commit.interval.ms": 1_000}
    result = storm(scenario(steps, members=3, partitions=3, **settings), seed)
    errors = {event.error for _, event in result.events("requests_counted")}
    assert errors <= {None, "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"}


def test_overlapping_partitions_end_with_the_last() -> None:
    result = run(partition(60_000, 90_000, "both"), partition(70_000, 1_000, "both"))
    [(lost_us, _)] = result.events("partitions_lost", member="member-1")
    assert lost_us == 150 * SECOND + 2_000
    assert result.broken == {}


def test_a_lost_connection_is_back_when_the_longest_of_overlapping_steps_is_over() -> None:
    lost = {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 90_000}
    result = run(lost, {**lost, "at_ms": 70_000, "for_ms": 1_000})
    [(lost_us, _)] = result.events("partitions_lost", member="member-1")
    assert 150 * SECOND < lost_us < 151 * SECOND
    assert result.broken == {}


# -- reconnect storms ------------------------------------------------------------------------------


def test_a_reconnect_storm_breaks_connections_again_and_again_and_costs_no_membership() -> None:
    storm_of = {"at_ms": 60_000, "do": "reconnect-storm", "members": "all", "count": 5, "for_ms": 10_000}
    result = run(storm_of)
    assert result.figures.generations == 1
    assert not result.events("member_removed")
    heartbeats = {"Heartbeat": 3 * 5}  # each member sends one as soon as it is back
    quiet = run()
    more = (result.figures.requests or {})["Heartbeat"] - (quiet.figures.requests or {})["Heartbeat"]
    assert more >= heartbeats["Heartbeat"] - 3 * 4  # in place of the regular ones
    assert result.broken == {}


# -- the coordinator's writes ----------------------------------------------------------------------


def test_a_slow_write_delays_the_end_of_a_round() -> None:
    """The assignment is written before it is handed out: at 6.007 s the leader's SyncGroup arrives."""
    slow = {"at_ms": 1_000, "do": "slow-appends", "for_ms": 10_000, "append_ms": 4_000}
    [(stable_us, _)] = run(slow).events("group_state_changed", state="Stable")
    assert stable_us == 6_007_000 + 4_000_000
    [(stable_us, _)] = run({**slow, "for_ms": 5_000}).events("group_state_changed", state="Stable")
    assert stable_us == 6_007_000, "the write begins after the step"


def test_a_failing_write_makes_all_members_join_again_until_it_succeeds() -> None:
    failing = {"at_ms": 1_000, "do": "failing-appends", "for_ms": 8_000}
    result = run(failing)
    failed = result.events("append_failed")
    assert len(failed) >= 2
    assert all(at_us < 9 * SECOND for at_us, _ in failed)
    answered = {event.error for _, event in result.events("sync_answered") if event.error}
    assert "COORDINATOR_NOT_AVAILABLE" in answered
    [(stable_us, _)] = result.events("group_state_changed", state="Stable")
    assert stable_us > 9 * SECOND
    assert result.broken == {}


# -- clocks that drift -----------------------------------------------------------------------------


def test_only_the_member_with_the_fast_clock_leaves_earlier() -> None:
    """max.poll.interval.ms of 30 s is over after 30 / 1.1 s on a clock that is fast by 10 %."""
    rules = [{"members": [1], "settings": {"clock_drift_ppm": 100_000}}]
    busy = {"at_ms": 60_000, "do": "busy", "members": [0, 1], "for_ms": 120_000}
    result = run(busy, member_settings=rules, **{"max.poll.interval.ms": 30_000})
    removed = {event.member: at_us for at_us, event in result.events("member_removed")}
    assert removed == {"member-0": 90_001_000, "member-1": 60_000_000 + 27_272_727 + 1_000}


def test_a_slow_clock_sees_new_partitions_later() -> None:
    grown = {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 8}
    result = run(grown, clock_drift_ppm=-100_000, **{"metadata.max.age.ms": 90_000})
    [(asked_us, _)] = result.events("rejoin_requested", cause="metadata-changed")
    assert asked_us == 100_000_000


FAILOVER = {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 20_000}
MOVED: dict[str, Any] = {
    "members": 3, "partitions": 6, "net_latency_ms": 1, "start_ms": {"exactly": 1000}, "poll_interval_ms": 10,
    "partition.assignment.strategy": ["cooperative-sticky"],
}  # fmt: skip


def test_a_round_under_way_is_forgotten_and_its_newcomer_joins_again() -> None:
    """member-2 has joined and waits for member-0, which is busy, when the coordinator dies."""
    steps = [
        {**START, "members": [0, 1]},
        {"at_ms": 55_000, "do": "busy", "members": [0], "for_ms": 40_000},
        {"at_ms": 58_000, "do": "start", "members": [2]},
        FAILOVER,
    ]
    result = storm(scenario(steps, **MOVED))
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
    result = storm(scenario([{**START, "members": [0, 1]}, FAILOVER, shorter, start], **MOVED))
    assert [at_us for at_us, _ in result.events("group_created", cause="loaded")] == [80 * SECOND]
    [(added_us, _)] = result.events("member_added", member="member-2")
    assert 80 * SECOND < added_us < 81 * SECOND
    assert result.broken == {}


def test_an_idle_application_polls_for_its_slow_batch_as_that_begins() -> None:
    """It polls every 20 s; max.poll.interval.ms counts from the slow batch, not from the poll before it."""
    steps = [START, {"at_ms": 75_000, "do": "busy", "members": [0], "for_ms": 120_000}]
    settings = {**FIXED, "poll_interval_ms": 20_000, "max.poll.interval.ms": 30_000}
    result = storm(scenario(steps, members=1, record_rate=0, **settings))
    [(left_us, _)] = result.events("rejoin_requested", cause="poll-timeout")
    assert left_us == 75_000_000 + 30_000_000


def played(*steps: dict[str, Any], **settings: Any) -> Storm:
    world = scenario([START, *steps], members=3, partitions=6, record_rate=0, **FIXED, **settings)
    result = storm(world)
    assert result.broken == {}
    return result


def running(result: Storm) -> list[int]:
    """Count the processes that run, after each start and end; none starts under a name that runs."""
    names: set[str] = set()
    counts = []
    for _, _, event in result.rows:
        kind = type(event).__name__
        if kind == "MemberStarted":
            assert event.member not in names
            names.add(event.member)
        elif kind in ("MemberClosed", "MemberCrashed"):
            names.remove(event.member)
        counts.append(len(names))
    return counts


def test_a_process_that_is_killed_while_it_restarts_comes_back_once() -> None:
    result = played(
        {"at_ms": 60_000, "do": "restart", "members": [1]},
        {"at_ms": 61_000, "do": "crash-restart", "members": [1]},
        stop_grace_ms={"exactly": 5_000},
        start_ms={"exactly": 1_000},
    )
    assert running(result)[-1] == 3
    assert len(result.events("member_started", member="member-1")) == 2
    assert len(result.events("member_crashed", member="member-1")) == 1


def test_a_process_that_two_steps_stop_closes_once_and_both_steps_end() -> None:
    result = played(
        {"at_ms": 60_000, "do": "stop", "members": [1]},
        {"at_ms": 61_000, "do": "restart", "members": [1]},
        stop_grace_ms={"exactly": 5_000},
        start_ms={"exactly": 1_000},
    )
    [(closed_us, _)] = result.events("member_closed", member="member-1")
    assert 65_000_000 < closed_us < 65_010_000, "5 s after the first SIGTERM: commit, LeaveGroup"
    assert running(result)[-1] == 3, "the restart starts it again"


@pytest.mark.parametrize("members", [[1], "all"])
@pytest.mark.parametrize("do", ["stop", "crash"])
def test_a_process_that_is_gone_starts_again_with_a_restart_that_names_it(do: str, members: object) -> None:
    result = played(
        {"at_ms": 60_000, "do": do, "members": members},
        {"at_ms": 180_000, "do": "restart", "members": members},
        start_ms={"exactly": 1_000},
    )
    assert running(result)[-1] == 3
    assert result.events("member_started", member="member-1")[-1][0] == 181_000_000


@pytest.mark.parametrize("apart_ms", [0, 2_000, 30_000])
def test_two_rolling_restarts_at_once_come_to_their_end(apart_ms: int) -> None:
    result = played(
        {"at_ms": 60_000, "do": "rolling-restart"},
        {"at_ms": 60_000 + apart_ms, "do": "rolling-restart"},
        start_ms={"uniform": [1_000, 20_000]},
        ready_ms=0,
    )
    counts = running(result)
    assert counts[-1] == max(counts) == 3
