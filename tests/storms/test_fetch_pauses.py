"""A library whose poll() returns nothing while a cooperative round is under way (kafka-python)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

SECOND = 1_000_000


def joined_by_a_second(library: str) -> Storm:
    """member-0 owns two partitions; member-1 joins at 60 s. The leader's assignor takes 2 s.

    The first round takes 2 s. member-0 joins again at once, member-1 with its heartbeat, 3 s after the
    response to its first JoinGroup. So the second round ends 5 s after member-0's first poll().
    """
    settings = {
        "members": 1, "partitions": 2, "record_rate": 100, "process_ms": 1, "start_ms": 0, "assign_ms": 2000,
        "partition.assignment.strategy": ["cooperative-sticky"], "group.initial.rebalance.delay.ms": 0,
        "client_profile": [library],
    }  # fmt: skip
    asked = scenario([START, {"at_ms": 60_000, "do": "add", "count": 1}], **{**FIXED, **settings})
    return storm(replace(asked, figures_from=60_000))


def test_a_member_processes_nothing_during_rounds_and_one_batch_between_them() -> None:
    """The records of 2 s of the partition that it keeps take 0.2 s; then it polls, and pauses again."""
    run = joined_by_a_second("kafka-python")
    paused = run.events("partitions_paused", member="member-0")
    resumed = run.events("partitions_resumed", member="member-0")
    assert [event.partitions for _, event in paused][:1] == [("topic-0-0", "topic-0-1")]
    ((kept,),) = {event.partitions for _, event in (*paused[1:], *resumed)}
    assert resumed[0][1].positions == (paused[0][1].positions[paused[0][1].partitions.index(kept)],)
    assert resumed[1][1].positions == paused[1][1].positions
    began_us = paused[0][0]
    at_s = [(time_us - began_us) / SECOND for time_us, _ in (resumed[0], paused[1], resumed[1])]
    assert at_s == pytest.approx([2, 2.2, 5], abs=0.05)
    ended = [event.generation for _, event in run.events("sync_answered", member="member-0")]
    assert len(ended) == 3, "its own round, and two because of member-1"
    assert run.figures.records_duplicated == 0
    assert run.figures.lag_peak == pytest.approx(100 * (5 + 2.8), abs=50), "of the other log and of this one"


def test_what_is_resumed_has_its_processing_rate_in_the_trace_again() -> None:
    """The partition that member-0 keeps: 1,000 records a second are possible, 100 arrive."""
    run = joined_by_a_second("kafka-python")
    resumed_us = [time_us for time_us, _ in run.events("partitions_resumed", member="member-0")]
    rates = run.events("processing_rates_changed", member="member-0")
    after = [event.rates for time_us, event in rates if time_us in resumed_us]
    assert after == [(1_000_000,), (1_000_000,)]


def test_other_members_go_on_with_what_they_keep() -> None:
    run = joined_by_a_second("java")
    assert run.events("partitions_paused") == []
    assert run.figures.lag_peak == pytest.approx(100 * 3, abs=50), "one partition without an owner for 3 s"
