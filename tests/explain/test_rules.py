"""Rules over traces of a few rows: what each pattern needs, and what is just not enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.explain.advice import advice_for
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    SECOND_US,
    added,
    explained,
    first,
    names,
    of_formed,
    removed,
    round_of,
    scenario_storm,
    state,
    trace_of,
)


def test_a_session_that_expired_names_the_last_sign_of_life(tmp_path: Path) -> None:
    found = of_formed(
        tmp_path,
        {"s": 50, "event": "join_parked", "member": "b", "member_id": "b-1", "generation": 1},
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
    )
    assert names(found) == ["session-expired"]
    (finding,) = found.findings
    assert finding.match.members == ("b-1",)  # real clients often share a client id
    assert "expired at 95.000 s; the last row of it is of 50.000 s" in finding.match.sentence
    assert [row["event"] for row in finding.match.evidence] == ["join_parked", "member_removed"]
    assert [one.cause for one in finding.rebalances] == ["session-expired"]


@pytest.mark.parametrize(("cause", "pattern"), [("silent", "closed-silently"), ("left", "session-expired")])
def test_a_member_that_closed_without_a_word_did_not_die(tmp_path: Path, cause: str, pattern: str) -> None:
    """A LeaveGroup that never arrived is another matter."""
    closed = {"s": 50, "source": "member", "event": "member_closed", "member": "b", "member_id": "b-1"}
    found = of_formed(
        tmp_path,
        {**closed, "cause": cause},
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
    )
    (finding,) = found.findings
    assert finding.pattern.name == pattern
    assert [one.cause for one in finding.rebalances] == ["session-expired"]
    assert ("no LeaveGroup arrived" in advice_for(finding, found.history)) == (cause == "left")
    assert "closed at 50.000 s, removed at 95.000 s" in finding.match.sentence


def test_of_members_whose_sessions_expired_one_may_have_closed(tmp_path: Path) -> None:
    closed = {"s": 50, "source": "member", "event": "member_closed", "member": "b", "member_id": "b-1"}
    expired = [removed(95, name, f"{name}-1", "session-expired") for name in ("a", "b")]
    found = of_formed(
        tmp_path, {**closed, "cause": "left"}, *expired, *round_of(95, 2, "session-expired", "b-1")
    )
    (finding,) = found.findings
    assert "2 members died, hung, lost the connection or had closed (no LeaveGroup" in finding.match.sentence


def test_a_member_whose_sync_group_is_refused_had_not_died(tmp_path: Path) -> None:
    found = of_formed(
        tmp_path,
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
        {"s": 99, "event": "sync_answered", "member": "b", "member_id": "b-1", "generation": 1}
        | {"error": "UNKNOWN_MEMBER_ID"},
    )
    assert advice_for(found.findings[0], found.history).endswith("none of these died.")


def test_a_thread_of_kafka_streams_may_have_been_closed(tmp_path: Path) -> None:
    """The broker's log alone does not tell; nobody else closes without LeaveGroup."""
    for name, is_thread in (("app-1-StreamThread-1-consumer", True), ("app-1", False)):
        found = of_formed(
            tmp_path,
            removed(95, name, f"{name}-7", "session-expired"),
            *round_of(95, 2, "session-expired", f"{name}-7"),
        )
        (finding,) = found.findings
        assert ("then sends no LeaveGroup" in finding.match.sentence) == is_thread
        advice = advice_for(finding, found.history)
        assert ("internal.leave.group.on.close=true" in advice) == is_thread


def test_a_member_that_leaves_is_no_expired_session(tmp_path: Path) -> None:
    found = of_formed(tmp_path, removed(95, "b", "b-1", "left"), *round_of(95, 2, "left", "b-1"))
    assert names(found) == []
    assert [one.culprit for one in found.history.rebalances] == ["a-1", "b-1"]


def test_a_join_phase_of_ten_seconds_is_held_up(tmp_path: Path) -> None:
    def joins(last_s: float) -> list[dict[str, Any]]:
        parked = {"event": "join_parked", "generation": 1}
        begun, *rest = round_of(100, 2, "member-updated", "a-1", last_s - 100)
        return [
            begun,
            {"s": 100.1, "member": "a", "member_id": "a-1"} | parked,
            {"s": last_s, "member": "b", "member_id": "b-1"} | parked,
            *rest,
        ]

    held = of_formed(tmp_path, *joins(110))
    assert names(held) == ["held-join-phase"]
    assert held.findings[0].match.sentence == (
        "1 join phase took 10 s or more. The longest took 10.0 s: b-1 joined last, 9.9 s after all others."
    )
    assert names(of_formed(tmp_path, *joins(109.9))) == []


def test_a_slow_plan(tmp_path: Path) -> None:
    def plan(s: float) -> list[dict[str, Any]]:
        begun, joined, stable = round_of(100, 2, "member-updated", "a-1")
        return [begun, joined, stable | {"s": 101 + s}]

    assert names(of_formed(tmp_path, *plan(5))) == ["slow-assignor"]
    assert names(of_formed(tmp_path, *plan(4.9))) == []


def test_lists_of_members_do_not_say_that_one_is_back_under_another_name(tmp_path: Path) -> None:
    rows = [
        removed(100, "b", "b-1", "unknown"),
        *round_of(100, 2, "unknown", "b-1"),
        added(108, "c", "c-1"),
        *round_of(108, 3, "unknown", "c-1"),
    ]
    found = of_formed(tmp_path, *rows)
    assert names(found) == ["gone-unsaid"]
    told = found.findings[0].match.sentence
    assert told == "By the lists of members that the logs have: b-1 went and c-1 came about 8.0 s later."


@pytest.mark.parametrize(
    ("late_s", "patterns"), [(99, ["max-poll-interval"]), (40, ["max-poll-interval", "gone-unsaid"])]
)
def test_a_member_whose_own_log_says_that_it_was_too_slow_went_not_unsaid(
    tmp_path: Path, late_s: float, patterns: list[str]
) -> None:
    """Another member's list tells of it up to a rebalance later."""
    late = {"s": late_s, "source": "member", "event": "rejoin_requested", "cause": "poll-timeout"}
    rows = [
        late | {"member": "b", "member_id": "b-1", "generation": 1},
        removed(100, "b", "b-1", "unknown"),
        *round_of(100, 2, "unknown", "b-1"),
    ]
    assert names(of_formed(tmp_path, *rows)) == patterns


def test_a_zombie_whose_commits_are_refused(tmp_path: Path) -> None:
    commit = {"event": "offsets_committed", "member_id": "b-1", "generation": 1, "partitions": ["t-0"]}
    commit["positions"] = [5]
    done = {"s": 10} | commit
    found = of_formed(tmp_path, done, {"s": 20, "error": "ILLEGAL_GENERATION"} | commit)
    assert names(found) == ["zombie"]
    assert [row["time_us"] for row in found.findings[0].match.evidence] == [20 * SECOND_US]
    assert names(of_formed(tmp_path, done)) == []


def test_a_specific_pattern_takes_its_rebalance_from_a_general_one(tmp_path: Path) -> None:
    """A member that was refused for its assignor, and then expired: the session is not why."""
    found = of_formed(
        tmp_path,
        {"s": 160, "event": "join_answered", "member": "b", "member_id": "b-1", "generation": -1}
        | {"error": "INCONSISTENT_GROUP_PROTOCOL"},
        removed(195, "b", "b-1", "session-expired"),
        *round_of(195, 2, "session-expired", "b-1"),
    )
    assert first(found) == "mixed-assignors"
    by_name = {one.pattern.name: one for one in found.findings}
    assert len(by_name["mixed-assignors"].rebalances) == 1
    assert by_name["session-expired"].rebalances == []
    assert by_name["session-expired"].shared == 1


def test_a_member_of_a_consumer_group_that_takes_long_to_give_up_partitions(tmp_path: Path) -> None:
    def revoking(s: float) -> list[dict[str, Any]]:
        reconciled = {"event": "member_reconciled", "member": "a", "member_id": "a-1", "generation": 3}
        return [
            added(0, "a", "a-1"),
            state(0, "Empty", "Stable", 1, "heartbeat", member_id="a-1"),
            added(50, "b", "b-1"),
            state(50, "Stable", "Reconciling", 2, "heartbeat", member_id="b-1"),
            {"s": 51, "state": "UNREVOKED_PARTITIONS", "partitions": ["t-0"], "revoking": ["t-1"]}
            | reconciled,
            {"s": 51 + s, "state": "STABLE", "partitions": ["t-0"]} | reconciled,
            state(52 + s, "Reconciling", "Stable", 2, "heartbeat", member_id="a-1"),
            END_OF_FORMED,
        ]

    found = explained(trace_of(tmp_path, revoking(10)))
    assert names(found) == ["slow-revocation"]
    assert found.findings[0].match.members == ("a-1",)
    assert [one.culprit for one in found.findings[0].rebalances] == ["b-1"]
    assert names(explained(trace_of(tmp_path, revoking(9.9)))) == []


def test_a_leader_that_joins_again_without_a_word(tmp_path: Path) -> None:
    rows = [row for at in (1, 2) for row in round_of(800 * at, 1 + at, "leader-rejoined", "a-1")]
    found = of_formed(tmp_path, *rows)
    assert names(found) == ["leader-rejoined"]
    assert found.findings[0].match.sentence == "The leader joined again 2 times."
    assert found.findings[0].match.unknown.startswith("why: add the leader's log")
    second_half = round_of(106, 3, "leader-rejoined", "a-1")  # it follows at once
    both = (*round_of(100, 2, "member-updated", "b-1"), *second_half)
    assert names(of_formed(tmp_path, *both)) == []


@pytest.mark.parametrize(
    ("error", "advice", "presets"),
    [
        ("NoOffsetForPartitionException",
         "NoOffsetForPartitionException: auto.offset.reset=none, and the group has committed no offset.", ()),
        ("InvalidAssignment", "Read the error of the first one.", ()),
        ("IllegalStateException",
         "Read the error of the first one; an IllegalStateException of a sticky assignor is a defect that "
         "--set kafka_defects=true shows.", ("kafka-defects",)),
    ],
)  # fmt: skip
def test_what_ended_a_consumer_says_what_to_turn(
    tmp_path: Path, error: str, advice: str, presets: tuple[str, ...]
) -> None:
    failed = {"s": 50, "source": "member", "event": "member_failed", "member": "a", "member_id": "a-1"}
    (found,) = of_formed(tmp_path, failed | {"error": error}).findings
    assert (found.pattern.advice, found.pattern.presets) == (advice, presets)
    own = {"protocol": "our-own"}
    rounds = [row | (own if row.get("state") == "CompletingRebalance" else {}) for row in FORMED]
    (found,) = explained(trace_of(tmp_path, [*rounds, failed | {"error": error}, END_OF_FORMED])).findings
    assert not found.pattern.presets, "an assignor that Kafka does not have"


def test_a_time_out_ends_when_its_member_is_back(tmp_path: Path) -> None:
    """Two hundred seconds later the same member stops: that is another matter."""
    timed_out = {"s": 95, "source": "member", "event": "rejoin_requested", "member": "b", "member_id": "b-1"}
    found = of_formed(
        tmp_path,
        timed_out | {"generation": 1, "cause": "poll-timeout"},
        removed(95.01, "b", "b-1", "left"),
        *round_of(95.01, 2, "left", "b-1"),
        added(120, "b", "b-2"),
        *round_of(120, 3, "new-member", "b-2"),
        removed(320, "b", "b-2", "left"),
        *round_of(320, 4, "left", "b-2"),
    )
    assert names(found) == ["max-poll-interval"]
    assert [round(one.begun_us / SECOND_US) for one in found.findings[0].rebalances] == [95, 120]


def test_a_share_consumer_was_alive_until_its_last_row(tmp_path: Path) -> None:
    """Rows of share consumers have no member ids: the row that it had joined by counted as the last."""
    trace = scenario_storm(
        tmp_path,
        """
        name: dies
        question: A share consumer dies. Until when did it live?
        settings: {group.protocol: share, members: 2, partitions: 2, record_rate: 1}
        steps: [{at_ms: 0, do: start}, {at_ms: 90s, do: crash, members: [1]}]
        """,
    )
    (finding,) = (one for one in explained(trace).findings if one.pattern.name == "session-expired")
    assert finding.match.sentence.endswith("the last row of it is of 90.000 s.")


def test_what_an_assignor_gives_to_nobody_did_not_wait_for_metadata(tmp_path: Path) -> None:
    """stream-join-sticky leaves out what the smaller topic does not have, from the start and as one grows."""
    settings = (
        "members: 2, topic_partitions: {clicks: 6, ads: 4}, metadata.max.age.ms: 20s, record_rate: 0, "
        "partition.assignment.strategy: [stream-join-sticky]"
    )
    grows = "{at_ms: 2m, do: add-partitions, topic: clicks, partitions: 8}"
    text = f"{{name: joins, settings: {{{settings}}}, steps: [{{at_ms: 0, do: start}}, {grows}]}}"
    trace = scenario_storm(tmp_path, text)
    found = explained(trace)
    by_name = {one.pattern.name: one for one in found.findings}
    assert len(by_name["topics-changed"].rebalances) == 1
    assert by_name["topics-changed"].absences == []
    assert sorted(one.gaps for one in found.history.absences) == [2, 2]
