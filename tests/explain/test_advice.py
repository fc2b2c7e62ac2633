"""The advice of explain knows the group: its protocol, its members, and whom it has to name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groupstorm.trace.reader import read_rows
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    added,
    explained,
    names,
    removed,
    round_of,
    scenario_storm,
    storm,
    trace_of,
)

SMALL = {"members": 4, "partitions": 8}
SIX = {"members": 6, "partitions": 24}
COST = "(groupstorm whatif says what it would have cost)"
STATIC = (
    "Static members (group.instance.id, names that stay) save rebalances if a process is back within "
    "session.timeout.ms, but nobody takes over what waits for it."
)
NO_ROUND = "Nothing in the group: partitions wait for as long as a restart takes. Make restarts faster."
NEW_PROTOCOL = "or use group.protocol=consumer, in which nobody waits for the slow one."

LOWER = (
    "Lower group.consumer.heartbeat.interval.ms, and its bound in the broker, "
    "group.consumer.min.heartbeat.interval.ms (5 s)."
)


@pytest.mark.parametrize(
    ("preset", "variant", "settings", "pattern", "advice"),
    [
        ("rolling-deploy", "eager", SMALL, "deploy-wave",
         f"Try cooperative-sticky {COST}; {STATIC[0].lower()}{STATIC[1:]}"),
        ("rolling-deploy", "cooperative", SMALL, "deploy-wave", STATIC),
        ("rolling-deploy", "cooperative", {**SMALL, "client_profile": ["franz-go"]}, "deploy-wave",
         f"{STATIC} In franz-go group.instance.id is InstanceID and session.timeout.ms is SessionTimeout."),
        ("rolling-deploy", "static", SMALL, "deploy-wave", NO_ROUND),
        ("rolling-deploy", "static", {**SMALL, "partition.assignment.strategy": ["range"]}, "deploy-wave",
         NO_ROUND),
        ("rolling-deploy", "consumer", SMALL, "deploy-wave",
         STATIC.replace("session", "group.consumer.session", 1)),
        ("migrate-streams", "at-once", {"topics": 1, "partitions": 6}, "migration-refused",
         "Stop all instances, and let them leave the group or wait for session.timeout.ms: an application "
         "changes its protocol only while its group has no members (groupstorm compare migrate-streams)."),
        pytest.param("stateful-warmup", "streams", {"partitions": 6}, "waits-for-heartbeat",
                     "Lower group.streams.heartbeat.interval.ms, and its bound in the broker, "
                     "group.streams.min.heartbeat.interval.ms (5 s).", marks=pytest.mark.slow),
        ("static-trap", "deployment-leaves", {}, "deploy-wave",
         "Keep each group.instance.id over restarts (StatefulSet), and close without LeaveGroup."),
        (
            "slow-member-hostage",
            "eager",
            SIX,
            "held-join-phase",
            "member-3: lower max.poll.interval.ms (it is the rebalance timeout) or max.poll.records, "
            + NEW_PROTOCOL,
        ),
        ("slow-member-hostage", "eager-short-poll-interval", SIX, "held-join-phase",
         f"member-3: lower max.poll.records, {NEW_PROTOCOL}"),
        ("duplicates-on-revoke", "drains-too-long", SMALL, "max-poll-interval",
         "Raise max.poll.interval.ms above the 40.0 s of a rebalance callback, or do less in it."),
        ("rolling-deploy", "eager",
         {**SIX, "client_profile": ["aiokafka"], "partition.assignment.strategy": ["range"]},
         "needless-moves",
         "Use an assignor that keeps what it can: cooperative-sticky, or sticky. In aiokafka "
         "there is no cooperative-sticky."),
        ("cold-start", "no-delay", {"members": 10, "partitions": 20}, "formed-in-rounds",
         "With a group.initial.rebalance.delay.ms above the longest time between two arrivals it forms in "
         "one round: each arrival prolongs the delay, and nobody consumes until it is over."),
        ("cold-start", "consumer", {"members": 10, "partitions": 20}, "waits-for-heartbeat", ""),
    ],
)  # fmt: skip
def test_advice_is_for_this_group(
    tmp_path: Path, preset: str, variant: str, settings: Mapping[str, Any], pattern: str, advice: str
) -> None:
    found = explained(storm(tmp_path / "x", preset, variant, settings))
    [own] = [one for one in found.findings if one.pattern.name == pattern]
    assert own.pattern.advice == (advice or LOWER)


def test_what_may_be_the_smaller_part_of_the_time_is_no_pattern(tmp_path: Path) -> None:
    """Nobody knows when a member died: its partitions may have waited for its session for longer."""
    run = storm(tmp_path / "x", "cold-start", "consumer", {"members": 10, "partitions": 20})
    missing = {
        "source": "world",
        "event": "evidence_missing",
        "group": "storm",
        "cause": "deaths",
        "detail": "x",
    }
    rows = [row | {"s": row["time_us"] / 1e6, "seq": row["seq"] + 1} for row in map(dict, read_rows(run))]
    found = explained(trace_of(tmp_path, [missing | {"s": 0}, *rows]))
    assert found.history.unowned_is_least
    assert "waits-for-heartbeat" not in names(found)


POISON = """
name: poison
settings:
  members: 3
  partitions: 6
  record_rate: 10
  max.poll.interval.ms: 30000
  least_duration_ms: 10m
  if_never_settled: report
  restart_failed: true
  slow_records: [{partition: 2, at: 1m, takes: %s}]
steps:
  - {at_ms: 0, do: start}
"""


@pytest.mark.parametrize(
    ("record", "of_record"),
    [
        (
            "50s",
            "if its work does end, a max.poll.interval.ms above the time that it takes gets the group past "
            "it, too.",
        ),
        pytest.param("1s, then: crash", "", marks=pytest.mark.slow),
    ],
)
def test_a_poisonous_record_is_named_and_no_setting_that_does_not_help(
    tmp_path: Path, record: str, of_record: str
) -> None:
    advice = {
        one.pattern.name: one.pattern.advice
        for one in explained(scenario_storm(tmp_path, POISON % record)).findings
    }
    assert advice["poison-record"].startswith("topic-0-2 at ")
    begins = ": send the record to a dead-letter topic after one retry"
    assert advice["poison-record"].partition(begins)[2] == (f"; {of_record}" if of_record else ".")
    if "max-poll-interval" in advice:
        assert "smaller batches (max.poll.records) do not help" in advice["max-poll-interval"]
    assert "autoscaler-flapping" not in advice


BATCHES = """
name: batches
settings:
  members: 3
  partitions: 6
  record_rate: 100
  process_ms: 20
  max.poll.records: 2000
  max.poll.interval.ms: 20s
  if_never_settled: report
steps:
  - {at_ms: 0, do: start}
"""


def test_batches_that_are_too_large_are_no_poisonous_record(tmp_path: Path) -> None:
    found = explained(scenario_storm(tmp_path, BATCHES))
    (finding,) = [one for one in found.findings if one.pattern.name == "max-poll-interval"]
    assert "or lower max.poll.records" in finding.pattern.advice
    assert "poison-record" not in names(found)


BACKLOG = """
name: backlog
settings:
  members: 4
  partitions: 8
  record_rate: 5
  process_ms: 20
  auto.offset.reset: earliest
  partition.assignment.strategy: [cooperative-sticky]
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 2m, do: recreate}
"""


def test_a_leader_with_a_batch_in_hand_has_no_slow_assignor(tmp_path: Path) -> None:
    run = scenario_storm(tmp_path, BACKLOG)
    assert {row["duration_us"] for row in read_rows(run) if row["event"] == "assignment_computed"} == {0}
    (finding,) = [one for one in explained(run).findings if one.pattern.name == "slow-assignor"]
    assert "or smaller batches (max.poll.records: in a cooperative group" in finding.pattern.advice


FAILOVER = """
name: failover
settings: {members: 3, partitions: 6, session.timeout.ms: 10s}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 1m, do: coordinator-failover, for_ms: 90s}
"""


def test_no_member_is_removed_however_long_a_failover_takes(tmp_path: Path) -> None:
    found = explained(scenario_storm(tmp_path, FAILOVER))
    assert sorted(names(found)) == ["coordinator-moved", "group-start"]
    assert "session.timeout.ms has to cover the time in which members find it, not the failover's." in next(
        one.pattern.advice for one in found.findings if one.pattern.name == "coordinator-moved"
    )


@pytest.mark.parametrize(("chosen", "has_seconds"), [("range", False), ("", False), ("", True)])
def test_an_assignor_that_no_row_names_may_be_cooperative_already(
    tmp_path: Path, chosen: str, has_seconds: bool
) -> None:
    """Three members leave and come back one after the other. A second round 5 s after the first one has ended
    is of a cooperative group: an eager one has nothing to give up then."""
    rows = [*FORMED]
    for number, name in enumerate("xyz"):
        s, generation = 100 + 60 * number, 2 + 4 * number
        rows += [removed(s, name, f"{name}-1", "left"), *round_of(s, generation, "left", f"{name}-1")]
        rows += [added(s + 20, name, f"{name}-2")]
        rows += round_of(s + 20, generation + 1, "new-member", f"{name}-2")
        rows += round_of(s + 26, generation + 2, "member-updated", f"{name}-2") if has_seconds else []
    known = [row | ({"protocol": chosen} if chosen and "count" in row else {}) for row in rows]
    (finding,) = explained(trace_of(tmp_path, [*known, END_OF_FORMED])).findings
    assert finding.pattern.name == "deploy-wave"
    condition = "" if chosen else " if the assignor is range, roundrobin or sticky"
    assert finding.pattern.advice == (
        STATIC
        if has_seconds
        else f"Try cooperative-sticky{condition} {COST}; {STATIC[0].lower()}{STATIC[1:]}"
    )


@pytest.mark.parametrize(
    ("members", "suffix", "is_rollout"), [("xyz", "-v2", True), ("xyz", "", False), ("xy", "-v2", False)]
)
def test_members_that_others_replace_may_be_of_a_rollout(
    tmp_path: Path, members: str, suffix: str, is_rollout: bool
) -> None:
    """A process that dies is started again in its pod, under its name: a pod of another name is a new one."""
    rows = [*FORMED]
    for number, name in enumerate(members):
        s, generation = 100 + 100 * number, 2 + 2 * number
        rows += [removed(s, name, f"{name}-1", "session-expired")]
        rows += round_of(s, generation, "session-expired", f"{name}-1")
        rows += [added(s + 20, name + suffix, f"{name}-2")]
        rows += round_of(s + 20, generation + 1, "new-member", f"{name}-2")
    (finding,) = explained(trace_of(tmp_path, [*rows, END_OF_FORMED])).findings
    assert finding.pattern.name == "session-expired"
    assert ("if a rollout replaced them" in finding.pattern.advice) == is_rollout


TOLD = {"event": "request_refused", "member": "b", "member_id": "b-1", "generation": 1, "api": "Heartbeat"}
LOADED = {"event": "group_created", "cause": "loaded"}
ANSWERED = {"event": "join_answered", "member": "b", "member_id": "b-1", "generation": 1}


@pytest.mark.parametrize(
    ("told_s", "timeout_ms", "more", "is_lost"),
    [
        (470, 10_000, [{"s": 505, "error": "NOT_COORDINATOR"} | TOLD], True),
        (480, None, [], True),
        (250, None, [], False),
        (480, None, [{"s": 485} | ANSWERED], False),
        (480, None, [{"s": 520} | ANSWERED], True),  # a new process of the name
        (495, 10_000, [], True),
        (470, 10_000, [], False),
        (470, 10_000, [{"s": 491} | LOADED], True),
        (470, 10_000, [{"s": 471} | LOADED], False),
    ],
)
def test_a_member_that_was_heard_since_its_coordinator_moved_died_or_stood_still(
    tmp_path: Path, told_s: float, timeout_ms: int | None, more: list[dict[str, Any]], is_lost: bool
) -> None:
    """Each client asks a coordinator that is not there yet, or does not know its group, as it starts."""
    detail = "{}" if timeout_ms is None else f'{{"session.timeout.ms": "{timeout_ms}"}}'
    configured = {"s": 4, "event": "member_configured", "member": "b", "member_id": "b-1", "detail": detail}
    rows = [
        *FORMED,
        configured,
        {"s": told_s, "error": "NOT_COORDINATOR"} | TOLD,
        removed(500, "b", "b-1", "session-expired"),
        *round_of(500, 2, "session-expired", "b-1"),
        *more,
    ]
    found = explained(trace_of(tmp_path, [*sorted(rows, key=lambda row: float(row["s"])), END_OF_FORMED]))
    (advice,) = [one.pattern.advice for one in found.findings if one.pattern.name == "session-expired"]
    assert ("The next coordinator begins every session anew" in advice) == is_lost
    assert ("find out why the process died or stood still" in advice) != is_lost


def test_no_session_shortens_the_time_in_which_nobody_comes(tmp_path: Path) -> None:
    """All die at 120 s; their sessions end by 165 s; another one is added at 300 s."""
    trace = scenario_storm(
        tmp_path,
        """
        name: gone
        question: All die, and somebody starts another one later.
        figures_from: warm_up_ms
        settings: {members: 2, partitions: 4, start_ms: {exactly: 10s}}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: crash, members: all}
          - {at_ms: 5m, do: add, count: 1}
        """,
    )
    finding = explained(trace).findings[0]
    assert finding.pattern.name == "session-expired"
    waited = re.search(r"Then the group had no members for ([0-9]+) s, which no", finding.match.sentence)
    assert waited is not None
    assert int(waited[1]) == pytest.approx(310 - 164, abs=2)


def test_a_process_that_stood_still_is_back_and_no_shorter_session_helps(tmp_path: Path) -> None:
    """Its return costs a rebalance, too, and belongs to the session that was too short for the pause."""
    trace = scenario_storm(
        tmp_path,
        """
        name: still
        question: A process stands still for longer than its session.
        figures_from: warm_up_ms
        settings: {members: 3, partitions: 6, session.timeout.ms: 10s, heartbeat.interval.ms: 3s}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: pause, members: [1], for_ms: 14s}
        """,
    )
    found = explained(trace)
    (finding,) = [one for one in found.findings if one.pattern.name == "session-expired"]
    assert len(finding.rebalances) == len(found.history.rebalances) == 2
    assert finding.pattern.advice.startswith("member-1: raise session.timeout.ms by more than a heartbeat ")
