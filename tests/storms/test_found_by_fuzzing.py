"""Events in the middle of something else, which were lost: found by `./dev fuzz`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.scenario.files import load
from tests.soaking import one_in
from tests.storms.storms_in_memory import FIXED, START, scenario, storm


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


@pytest.mark.slow
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
