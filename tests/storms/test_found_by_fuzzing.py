"""Events in the middle of something else, which were lost: found by `./dev fuzz`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.scenario.files import Scenario, load
from tests.soaking import one_in
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm


def in_both_modes(what: Scenario, seed: int = 1) -> Storm:
    """The run, which is the same if every heartbeat is simulated."""
    computed, exact = storm(what, seed), storm(what, seed, exact=True)
    assert computed.rows == exact.rows
    assert computed.broken == {}
    return computed


def test_a_member_whose_removal_could_not_be_written_stays_without_a_session() -> None:
    """Kafka 4.3.1's own coordinator does so, too: it cancels the session before the write."""
    steps = [
        START,
        {"at_ms": 1_000, "do": "rolling-restart"},
        {"at_ms": 5_000, "do": "failing-appends", "for_ms": 2_000},
    ]
    settings = {"start_ms": 0, "ready_ms": {"exactly": 5_000}, "max_surge": 2, "group.protocol": "consumer"}
    result = storm(scenario(steps, members=1, topics=1, partitions=1, **settings), seed=0)
    own = kafkas_own(result.figures.invariants or {})
    assert own is not None
    assert own.startswith("a removal was not written: member-0 is gone")


def test_metadata_that_comes_while_the_assignor_runs_is_new_to_the_leader() -> None:
    """The assignor runs from 6 s to 12 s, the client refreshes its metadata at 10 s: the plan is of
    before."""
    settings: dict[str, Any] = {**FIXED, "assign_ms": 6_000, "metadata.max.age.ms": 10_000}
    steps = [START, {"at_ms": 3_000, "do": "add-partitions", "topic": "topic-0", "partitions": 4}]
    result = storm(scenario(steps, members=2, partitions=1, **settings))
    [(asked_us, _)] = result.events("rejoin_requested", cause="metadata-changed")
    assert 12_000_000 < asked_us < 13_000_000
    assert result.broken == {}


def test_a_write_that_fails_behind_a_slow_one_refuses_what_arrives_until_then() -> None:
    """The slow write ends at 13 s, and with it the one of 8.1 s that fails. The heartbeat of 11 s was taken
    for one that was answered without an error."""
    steps = [
        START,
        {"at_ms": 2_984, "do": "slow-appends", "for_ms": 1_000, "append_ms": 10_000},
        {"at_ms": 4_000, "do": "failing-appends", "for_ms": 7_000},
    ]
    result = in_both_modes(scenario(steps, members=1, partitions=1), seed=0)
    assert result.events("requests_counted", api="Heartbeat", error="COORDINATOR_NOT_AVAILABLE")


def test_a_heartbeat_that_is_refused_does_not_prolong_the_session() -> None:
    """member-5 learns after 30 s that its generation is over. It had sent heartbeats of that generation until
    then: the session of 10 s that the round of 22 s began ends."""
    steps = [
        {**START, "over_ms": 17_177},
        {"at_ms": 10_000, "do": "partition", "members": [5], "direction": "responses", "for_ms": 20_000},
    ]
    settings = {"client_profile": "aiokafka", "group.instance.id": "ordinal"}
    result = in_both_modes(scenario(steps, members=6, partitions=1, **settings), seed=0)
    [(removed_us, _)] = result.events("member_removed", member="member-5", cause="session-expired")
    [(closed_us, _)] = result.events("group_state_changed", cause="rebalance-timeout")
    assert removed_us == closed_us + 10_000_000


def test_a_session_that_would_end_while_there_is_no_coordinator_brings_none_back() -> None:
    """The timer of a session was due 340 ms after the coordinator had died: the next one was there at once,
    and not after a second."""
    steps = [
        START,
        {"at_ms": 179_622, "do": "coordinator-failover", "for_ms": 1_694},
        {"at_ms": 231_053, "do": "coordinator-failover", "for_ms": 1_000},
    ]
    result = in_both_modes(scenario(steps, members=1, partitions=1), seed=0)
    assert [time_us for time_us, _ in result.events("group_deleted")] == [181_316_000, 232_053_000]


def test_a_background_commit_without_positions_does_not_prolong_the_session() -> None:
    """member-2 never learns where to start: its background commits have nothing to say, and are not sent."""
    steps = [
        {**START, "over_ms": 13_595},
        {"at_ms": 11_519, "do": "partition", "members": [2], "direction": "responses", "for_ms": 120_000},
    ]
    settings = {"append_latency_ms": 500, "net_latency_ms": {"uniform": [0.1, 100]}}
    result = in_both_modes(scenario(steps, members=3, partitions=3, **settings), seed=588649730)
    assert result.events("member_removed", member="member-2", cause="session-expired")


def test_the_last_commit_before_a_pause_does_not_count_after_the_first_one_behind_it() -> None:
    """member-1 commits at 204 s, cannot for a second, and commits at 212 s. At 215 s the commit of 204 s was
    taken for the later one."""
    steps = [
        START,
        {"at_ms": 70_000, "do": "partition", "members": [2], "direction": "both", "for_ms": 145_000},
        {"at_ms": 206_000, "do": "partition", "members": [1], "direction": "both", "for_ms": 1_000},
    ]
    result = in_both_modes(scenario(steps, members=3, partitions=3), seed=0)
    [(_, lost)] = result.events("partitions_lost", member="member-2")
    assert lost.committed > (21_000,)


def test_a_heartbeat_restarts_the_session_when_it_arrives_and_not_when_it_is_answered() -> None:
    """The answer to member-0's heartbeat of 33 s waits for a write until 50 s. The coordinator had relied on
    later heartbeats by then, and was not told that they had stopped at 50.5 s: member-0 stayed."""
    steps = [
        START,
        {"at_ms": 30_000, "do": "slow-appends", "for_ms": 1_000, "append_ms": 20_000},
        {"at_ms": 30_000, "do": "crash-restart", "members": [1]},
        {"at_ms": 32_000, "do": "disconnect", "members": [0], "for_ms": 1_000},
        {"at_ms": 50_500, "do": "crash", "members": [0]},
    ]
    settings = {"group.instance.id": "ordinal", "session.timeout.ms": 6_000, "start_ms": 0}
    result = in_both_modes(scenario(steps, members=2, partitions=2, **FIXED, **settings))
    [(removed_us, _)] = result.events("member_removed", member="member-0")
    assert 50_500_000 < removed_us < 56_500_000


def test_requests_that_arrived_during_a_partition_do_not_arrive_again_after_it() -> None:
    """member-2 gets no responses until 32 s, and sends commits all the time. At 32 s the first one of all
    came to the coordinator once more, which refused it."""
    steps = [
        START,
        {"at_ms": 7_000, "do": "partition", "members": [2], "direction": "responses", "for_ms": 25_000},
        {"at_ms": 20_000, "do": "disconnect", "members": [6], "for_ms": 5_000},
    ]
    settings = {
        "client_profile": "aiokafka", "session.timeout.ms": 6_000, "topics": 3, "phases": "aligned",
    }  # fmt: skip
    result = in_both_modes(scenario(steps, members=7, partitions=1, **settings), seed=0)
    assert result.events("rejoin_requested", member="member-2", cause="group-rebalancing")


def test_a_member_that_is_told_before_its_next_poll_that_it_is_out_has_lost_its_partitions() -> None:
    """member-0 has a round to join and finds its coordinator after 49 s. A heartbeat says UNKNOWN_MEMBER_ID
    before the application polls. It revoked partitions under no member id."""
    steps = [
        {**START, "over_ms": 16_309},
        {"at_ms": 10_803, "do": "disconnect", "members": "all", "for_ms": 49_000},
    ]
    settings = {"heartbeat.interval.ms": 1_000, "commits": "never", "group.initial.rebalance.delay.ms": 100}
    result = in_both_modes(scenario(steps, members=2, partitions=1, **settings), seed=2089318615)
    [(_, lost)] = result.events("partitions_lost", member="member-0")
    assert lost.cause == "UNKNOWN_MEMBER_ID"


def test_a_poll_that_comes_late_still_wakes_the_network_thread() -> None:
    """GC pauses put polls off. A poll() that was expected for something that was over was lost to what had
    come meanwhile; and an assignment that asks for nothing is acknowledged when the next poll() wakes the
    network thread, not an interval later."""
    settings: dict[str, Any] = {
        "members": 3, "partitions": 12, "group.protocol": "consumer", "if_never_settled": "report",
        "net_latency_ms": {"uniform": [20, 900]}, "poll_interval_ms": 200, "record_rate": 50,
        "process_ms": 20,
        "gc_pause_ms": {"uniform": [100, 9000]}, "gc_interval_ms": {"uniform": [1000, 60000]},
        "group.consumer.heartbeat.interval.ms": 3000, "group.consumer.session.timeout.ms": 10000,
        "max.poll.interval.ms": 20000, "request.timeout.ms": 15000, "metadata.max.age.ms": 20000,
        "group.initial.rebalance.delay.ms": 1000, "revoke_callback_ms": 700, "append_latency_ms": 30,
        "auto.commit.interval.ms": 2000, "start_ms": 2000, "tail_ms": 2000, "stop_grace_ms": 100,
        "settle_timeout_ms": 60000,
    }  # fmt: skip
    steps = [
        START,
        {"at_ms": 37_049, "do": "busy", "for_ms": 5_000, "members": [0]},
        {"at_ms": 54_548, "do": "pause", "for_ms": 16_000, "members": [0]},
    ]
    what = scenario(steps, **settings)
    assert storm(what, 117).rows == storm(what, 117, exact=True).rows


#: The circumstances in which they were found, unless a scenario has others.
AS_FOUND: dict[str, Any] = {
    "phases": "aligned",
    "stop_grace_ms": {"exactly": 500},
    "ready_ms": {"exactly": 10_000},
}
_FILES = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@pytest.mark.parametrize("file", one_in(6, _FILES), ids=lambda file: file.stem)
def test_what_failed_once_holds_in_exact_and_computed_storms(file: Path) -> None:
    scenario = load(str(file))
    settings = {name: value for name, value in AS_FOUND.items() if name not in scenario.settings}
    computed, exact = (
        storm(scenario, scenario.seed or 0, exact=exact, settings=settings) for exact in (False, True)
    )
    assert computed.rows == exact.rows
    assert computed.broken == {}
