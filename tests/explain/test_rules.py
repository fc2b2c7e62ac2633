"""Rules over traces of a few rows: what each pattern needs, and what is just not enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.cli.explain import print_explanation
from groupstorm.explain.advice import advice_for
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    SECOND_US,
    added,
    explained,
    first,
    names,
    removed,
    round_of,
    scenario_storm,
    state,
    trace_of,
)


def test_a_session_that_expired_names_the_last_sign_of_life(tmp_path: Path) -> None:
    rows = [
        *FORMED,
        {"s": 50, "event": "join_parked", "member": "b", "member_id": "b-1", "generation": 1},
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
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
    rows = [
        *FORMED,
        {**closed, "cause": cause},
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
    (finding,) = found.findings
    assert finding.pattern.name == pattern
    assert [one.cause for one in finding.rebalances] == ["session-expired"]
    assert ("no LeaveGroup arrived" in advice_for(finding, found.history)) == (cause == "left")
    assert "closed at 50.000 s, removed at 95.000 s" in finding.match.sentence


def test_a_member_whose_sync_group_is_refused_had_not_died(tmp_path: Path) -> None:
    rows = [
        *FORMED,
        removed(95, "b", "b-1", "session-expired"),
        *round_of(95, 2, "session-expired", "b-1"),
        {"s": 99, "event": "sync_answered", "member": "b", "member_id": "b-1", "generation": 1}
        | {"error": "UNKNOWN_MEMBER_ID"},
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
    assert advice_for(found.findings[0], found.history).endswith("none of these died.")


def test_a_thread_of_kafka_streams_may_have_been_closed(tmp_path: Path) -> None:
    """The broker's log alone does not tell; nobody else closes without LeaveGroup."""
    for name, is_thread in (("app-1-StreamThread-1-consumer", True), ("app-1", False)):
        rows = [
            *FORMED,
            removed(95, name, f"{name}-7", "session-expired"),
            *round_of(95, 2, "session-expired", f"{name}-7"),
            END_OF_FORMED,
        ]
        found = explained(trace_of(tmp_path, rows))
        (finding,) = found.findings
        assert ("then sends no LeaveGroup" in finding.match.sentence) == is_thread
        advice = advice_for(finding, found.history)
        assert ("internal.leave.group.on.close=true" in advice) == is_thread


def test_a_member_that_leaves_is_no_expired_session(tmp_path: Path) -> None:
    rows = [*FORMED, removed(95, "b", "b-1", "left"), *round_of(95, 2, "left", "b-1"), END_OF_FORMED]
    found = explained(trace_of(tmp_path, rows))
    assert names(found) == []
    assert [one.culprit for one in found.history.rebalances] == ["a-1", "b-1"]


def test_a_join_phase_of_ten_seconds_is_held_up(tmp_path: Path) -> None:
    def joins(last_s: float) -> list[dict[str, Any]]:
        parked = {"event": "join_parked", "generation": 1}
        begun, *rest = round_of(100, 2, "member-updated", "a-1", last_s - 100)
        return [
            *FORMED,
            begun,
            {"s": 100.1, "member": "a", "member_id": "a-1"} | parked,
            {"s": last_s, "member": "b", "member_id": "b-1"} | parked,
            *rest,
            END_OF_FORMED,
        ]

    held = explained(trace_of(tmp_path, joins(110)))
    assert names(held) == ["held-join-phase"]
    assert held.findings[0].match.sentence == (
        "1 join phase took 10 s or more. The longest took 10.0 s: b-1 joined last, 9.9 s after all others."
    )
    assert names(explained(trace_of(tmp_path, joins(109.9)))) == []


def test_a_slow_plan(tmp_path: Path) -> None:
    def plan(s: float) -> list[dict[str, Any]]:
        begun, joined, stable = round_of(100, 2, "member-updated", "a-1")
        return [*FORMED, begun, joined, stable | {"s": 101 + s}, END_OF_FORMED]

    assert names(explained(trace_of(tmp_path, plan(5)))) == ["slow-assignor"]
    assert names(explained(trace_of(tmp_path, plan(4.9)))) == []


def test_lists_of_members_do_not_say_that_one_is_back_under_another_name(tmp_path: Path) -> None:
    rows = [
        removed(100, "b", "b-1", "unknown"),
        *round_of(100, 2, "unknown", "b-1"),
        added(108, "c", "c-1"),
        *round_of(108, 3, "unknown", "c-1"),
    ]
    found = explained(trace_of(tmp_path, [*FORMED, *rows, END_OF_FORMED]))
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
    assert names(explained(trace_of(tmp_path, [*FORMED, *rows, END_OF_FORMED]))) == patterns


def test_a_row_of_rebalances_says_that_no_pattern_explains_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of the first one took 6 s, that of the second 10 ms."""
    slow = [*round_of(100, 2, "member-updated", "a-1")]
    slow[-1]["s"] += 6
    rows = [*FORMED, *slow, *round_of(900, 3, "member-updated", "a-1"), END_OF_FORMED]
    print_explanation(explained(trace_of(tmp_path, rows)), {}, False)
    assert " member-updated 2 8.0 s unknown slow-assignor, - " in " ".join(capsys.readouterr().out.split())


def test_a_zombie_whose_commits_are_refused(tmp_path: Path) -> None:
    commit = {
        "event": "offsets_committed",
        "member_id": "b-1",
        "generation": 1,
        "partitions": ["t-0"],
        "positions": [5],
    }
    rows = [*FORMED, {"s": 10} | commit, {"s": 20, "error": "ILLEGAL_GENERATION"} | commit, END_OF_FORMED]
    found = explained(trace_of(tmp_path, rows))
    assert names(found) == ["zombie"]
    assert [row["time_us"] for row in found.findings[0].match.evidence] == [20 * SECOND_US]
    assert names(explained(trace_of(tmp_path, [*rows[:-2], END_OF_FORMED]))) == []


def test_members_whose_topics_differ(tmp_path: Path) -> None:
    def started(member: str, *topics: str) -> dict[str, Any]:
        return {"s": 0, "source": "member", "event": "member_started", "member": member, "topics": topics}

    same = [started("a", "t", "u"), started("b", "u", "t"), *FORMED, END_OF_FORMED]
    assert names(explained(trace_of(tmp_path, same))) == []
    other = [started("a", "t", "u"), started("c", "t", "u"), started("b", "t"), *FORMED, END_OF_FORMED]
    found = explained(trace_of(tmp_path, other))
    assert names(found) == ["subscriptions-differ"]
    assert found.findings[0].match.members == ("b",)
    gone = [*other[:-1], removed(9, "b", "b-1", "left"), *round_of(9, 2, "left", "b-1"), END_OF_FORMED]
    assert names(explained(trace_of(tmp_path, gone))) == []


def test_a_coordinator_that_moves(tmp_path: Path) -> None:
    rows = [
        *FORMED,
        {"s": 100, "event": "group_deleted", "cause": "unloaded"},
        {"s": 130, "event": "group_created", "cause": "loaded"},
        *round_of(140, 2, "member-updated", "a-1"),
        *round_of(1_000, 3, "member-updated", "a-1"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
    assert names(found) == ["coordinator-moved"]
    assert [one.begun_us for one in found.findings[0].rebalances] == [140 * SECOND_US]
    assert "1 time;" in found.findings[0].match.sentence
    ended = [*FORMED, {"s": 100, "event": "group_deleted", "cause": "unloaded"}]
    assert names(explained(trace_of(tmp_path, ended))) == []  # its broker has ended


@pytest.mark.parametrize(("alive_s", "is_blamed"), [(128, True), (132, False)])
def test_a_move_is_blamed_for_a_session_that_expires_unless_its_member_outlived_it(
    tmp_path: Path, alive_s: int, is_blamed: bool
) -> None:
    """b was heard of for the last time 2 s before the coordinator was back, or 2 s after."""
    rows: list[dict[str, Any]] = [
        {"s": 100, "event": "group_deleted", "cause": "unloaded"},
        {"s": 130, "event": "group_created", "cause": "loaded"},
    ]
    rows.append({"s": alive_s, "event": "offsets_committed", "member": "b", "member_id": "b-1"})
    rows.sort(key=lambda row: row["s"])
    gone = [removed(142, "b", "b-1", "session-expired"), *round_of(142, 2, "session-expired", "b-1")]
    one = explained(trace_of(tmp_path, [*FORMED, *rows, *gone, END_OF_FORMED]))
    (moved,) = [found for found in one.findings if found.pattern.name == "coordinator-moved"]
    assert [each.begun_us for each in moved.rebalances] == ([142 * SECOND_US] if is_blamed else [])


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ("COORDINATOR_NOT_AVAILABLE", ["append-failed"]),
        ("NOT_COORDINATOR", ["coordinator-moved", "append-failed"]),
    ],
)
def test_a_coordinator_that_cannot_write_has_not_moved(tmp_path: Path, error: str, found: list[str]) -> None:
    """Too few replicas in sync: it answers COORDINATOR_NOT_AVAILABLE, and stays. If it has lost its partition
    to another broker, a write fails, too, but the answer is NOT_COORDINATOR. Each outage lasts from 100 s to
    104 s or from 400 s to 404 s: 8 s in all."""
    rows = [*FORMED]
    for generation, s in enumerate((100, 104, 400, 404), start=2):
        rows += round_of(s, generation, "append-failed", "a-1")
        answer = {"s": s, "event": "sync_answered", "member": "a", "member_id": "a-1", "error": error}
        rows.append(answer | {"generation": generation})
    rows.sort(key=lambda row: row["s"])
    one = explained(trace_of(tmp_path, [*rows, END_OF_FORMED]))
    assert sorted(names(one)) == sorted(found)
    (failed,) = [each for each in one.findings if each.pattern.name == "append-failed"]
    assert "4 times in 2 outages of 8.0 s in all the coordinator could not write" in failed.match.sentence


def test_rounds_that_break_off_again_and_again(tmp_path: Path) -> None:
    def broken(times: int) -> list[dict[str, Any]]:
        rows = [*FORMED]
        for number in range(times):
            before = "CompletingRebalance" if number else "Stable"
            rows.append(
                state(
                    100 + number, before, "PreparingRebalance", 1 + number, "member-updated", member_id="b-1"
                )
            )
            rows.append(
                state(100.5 + number, "PreparingRebalance", "CompletingRebalance", 2 + number, "all-joined")
            )
        return [*rows, state(200, "CompletingRebalance", "Stable", 9, "assigned"), END_OF_FORMED]

    assert "livelock" in names(explained(trace_of(tmp_path, broken(6))))
    assert "livelock" not in names(explained(trace_of(tmp_path, broken(5))))


def test_a_specific_pattern_takes_its_rebalance_from_a_general_one(tmp_path: Path) -> None:
    """A member that was refused for its assignor, and then expired: the session is not why."""
    rows = [
        *FORMED,
        {"s": 160, "event": "join_answered", "member": "b", "member_id": "b-1", "generation": -1}
        | {"error": "INCONSISTENT_GROUP_PROTOCOL"},
        removed(195, "b", "b-1", "session-expired"),
        *round_of(195, 2, "session-expired", "b-1"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
    assert first(found) == "mixed-assignors"
    by_name = {one.pattern.name: one for one in found.findings}
    assert len(by_name["mixed-assignors"].rebalances) == 1
    assert by_name["session-expired"].rebalances == []
    assert by_name["session-expired"].shared == 1


def test_the_baseline_is_that_of_the_quiet_quarter(tmp_path: Path) -> None:
    """Five hours: no rebalance in four of them, and three in the third one."""
    rounds = [
        row
        for number in range(3)
        for row in round_of(7_300 + 600 * number, 2 + number, "member-updated", "a-1")
    ]
    rows = [*FORMED, *rounds, END_OF_FORMED | {"s": 18_000}]
    found = explained(trace_of(tmp_path, rows)).baseline
    assert (found.slice_us, found.slices, found.per_slice) == (3_600 * SECOND_US, 5, 0)
    assert found.busy == ((7_200 * SECOND_US, 3),)
    short = explained(trace_of(tmp_path, [*FORMED, END_OF_FORMED | {"s": 200}])).baseline
    assert short.per_slice is None


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


def test_an_autoscaler_has_to_turn_twice(tmp_path: Path) -> None:
    def scaled(*sizes: int) -> list[dict[str, Any]]:
        """Ten minutes at each size; names are never used again, as those of a Deployment's pods."""
        rows, running, started, generation = [*FORMED], ["b"], 0, 1
        for number, size in enumerate(sizes, start=1):
            while len(running) + 1 != size:
                s, generation = 600 * number + generation / 10, generation + 1
                if len(running) + 1 < size:
                    started += 1
                    running.append(f"pod-{started}")
                    rows += [
                        added(s, running[-1], f"{running[-1]}-1"),
                        *round_of(s, generation, "new-member", "a-1", 0.01),
                    ]
                else:
                    gone = running.pop()
                    rows += [
                        removed(s, gone, f"{gone}-1", "left"),
                        *round_of(s, generation, "left", "a-1", 0.01),
                    ]
        return [*rows, END_OF_FORMED | {"s": 9_000}]

    found = explained(trace_of(tmp_path, scaled(6, 2, 6)))
    assert names(found) == ["autoscaler-flapping"]
    assert "in 3 turns (+4, -4, +4): 8 members came and 4 went" in found.findings[0].match.sentence
    assert len(found.findings[0].rebalances) == 12
    assert names(explained(trace_of(tmp_path, scaled(6, 2)))) == []
    assert names(explained(trace_of(tmp_path, scaled(3, 2, 3, 2)))) == []  # one member is no step


def test_a_leader_that_joins_again_without_a_word(tmp_path: Path) -> None:
    rows = [*FORMED, *round_of(100, 2, "leader-rejoined", "a-1"), *round_of(900, 3, "leader-rejoined", "a-1")]
    found = explained(trace_of(tmp_path, [*rows, END_OF_FORMED]))
    assert names(found) == ["leader-rejoined"]
    assert found.findings[0].match.sentence == "The leader joined again 2 times."
    assert found.findings[0].match.unknown.startswith("why: add the leader's log")
    second_half = round_of(
        106, 3, "leader-rejoined", "a-1"
    )  # of the rebalance before it, as it follows at once
    both = [*FORMED, *round_of(100, 2, "member-updated", "b-1"), *second_half, END_OF_FORMED]
    assert names(explained(trace_of(tmp_path, both))) == []


def test_a_group_that_is_stopped_at_the_end(tmp_path: Path) -> None:
    stop = [
        removed(95, "b", "b-1", "left"),
        *round_of(95, 2, "left", "b-1"),
        state(100, "Stable", "PreparingRebalance", 2, "left", member_id="a-1"),
        removed(100, "a", "a-1", "left"),
        state(100.01, "PreparingRebalance", "Empty", 3, "no-members", count=0),
    ]
    found = explained(trace_of(tmp_path, [*FORMED, *stop, END_OF_FORMED]))
    assert names(found) == ["stopped"]
    assert len(found.findings[0].rebalances) == 2
    before = [removed(39, "b", "b-1", "left"), *round_of(39, 2, "left", "b-1"), *stop[-3:], END_OF_FORMED]
    found = explained(trace_of(tmp_path, [*FORMED, *before]))
    assert found.findings[0].match.members == ("a-1",)
    again = [
        state(200, "Empty", "PreparingRebalance", 3, "new-member", member_id="a-2"),
        added(200, "a", "a-2"),
        state(203, "PreparingRebalance", "CompletingRebalance", 4, "initial-delay"),
        state(203.1, "CompletingRebalance", "Stable", 4, "assigned"),
    ]
    assert "stopped" not in names(explained(trace_of(tmp_path, [*FORMED, *stop, *again, END_OF_FORMED])))
    failed = {"s": 100.02, "event": "member_failed", "member": "a", "member_id": "a-1", "error": "Refused"}
    found = explained(trace_of(tmp_path, [*FORMED, *stop, failed, END_OF_FORMED]))
    assert names(found) == ["failing-members"]  # who leaves because of an error was stopped by nobody
    died = [one | ({"cause": "session-expired"} if one.get("member") == "a" else {}) for one in stop]
    assert "stopped" not in names(explained(trace_of(tmp_path, [*FORMED, *died, END_OF_FORMED])))


@pytest.mark.parametrize(
    ("error", "advice", "presets"),
    [
        (
            "NoOffsetForPartitionException",
            "NoOffsetForPartitionException: auto.offset.reset=none, and the group has committed no offset.",
            (),
        ),
        ("InvalidAssignment", "Read the error of the first one.", ()),
        (
            "IllegalStateException",
            "Read the error of the first one; an IllegalStateException of a sticky assignor is a defect that "
            "--set kafka_defects=true shows.",
            ("kafka-defects",),
        ),
    ],
)
def test_what_ended_a_consumer_says_what_to_turn(
    tmp_path: Path, error: str, advice: str, presets: tuple[str, ...]
) -> None:
    failed = {"s": 50, "source": "member", "event": "member_failed", "member": "a", "member_id": "a-1"}
    (found,) = explained(trace_of(tmp_path, [*FORMED, failed | {"error": error}, END_OF_FORMED])).findings
    assert (found.pattern.advice, found.pattern.presets) == (advice, presets)
    own = {"protocol": "our-own"}
    rounds = [row | (own if row.get("state") == "CompletingRebalance" else {}) for row in FORMED]
    (found,) = explained(trace_of(tmp_path, [*rounds, failed | {"error": error}, END_OF_FORMED])).findings
    assert not found.pattern.presets, "an assignor that Kafka does not have"


def test_an_eager_member_that_gets_fewer_partitions_and_joins_again_begins_a_rebalance(
    tmp_path: Path,
) -> None:
    """It gives up everything before it joins, so its next round is no second half (KIP-429)."""

    def row(s: float, event: str, member: str, generation: int, **more: Any) -> dict[str, Any]:
        known = {"s": s, "event": event, "member": member, "member_id": f"{member}-1"}
        return known | {"generation": generation} | more

    begun, joined, stable = round_of(100, 2, "leader-rejoined", "a-1")
    rows = [
        *FORMED,
        row(3.1, "sync_answered", "a", 1, partitions=["t-0"]),
        row(3.1, "sync_answered", "b", 1, partitions=["t-1", "t-2"]),
        begun,
        row(100.5, "join_parked", "a", 2),
        row(100.5, "join_parked", "b", 2),
        joined | {"protocol": "range"},
        stable,
        row(101.1, "sync_answered", "a", 2, partitions=["t-0", "t-1"]),
        row(101.1, "sync_answered", "b", 2, partitions=["t-2"]),
        *round_of(200, 3, "member-updated", "b-1"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows)).history.rebalances
    assert [one.begun_us / SECOND_US for one in found] == [0, 100, 200]


def test_a_time_out_ends_when_its_member_is_back(tmp_path: Path) -> None:
    """Two hundred seconds later the same member stops: that is another matter."""
    timed_out = {"s": 95, "source": "member", "event": "rejoin_requested", "member": "b", "member_id": "b-1"}
    rows = [
        *FORMED,
        timed_out | {"generation": 1, "cause": "poll-timeout"},
        removed(95.01, "b", "b-1", "left"),
        *round_of(95.01, 2, "left", "b-1"),
        added(120, "b", "b-2"),
        *round_of(120, 3, "new-member", "b-2"),
        removed(320, "b", "b-2", "left"),
        *round_of(320, 4, "left", "b-2"),
        END_OF_FORMED,
    ]
    found = explained(trace_of(tmp_path, rows))
    assert names(found) == ["max-poll-interval"]
    assert [round(one.begun_us / SECOND_US) for one in found.findings[0].rebalances] == [95, 120]


def test_a_damaged_time_that_makes_ages_of_a_trace_takes_no_longer(tmp_path: Path) -> None:
    """A line may say a year that is thousands of years away; each hour and half minute would be too many."""
    ages_s = 8_000 * 366 * 86_400
    rows = [*FORMED, removed(3_600, "b", "b-1", "left"), added(ages_s, "b", "b-2")]
    found = explained(trace_of(tmp_path, rows))
    assert found.baseline.slices > 70_000_000
    assert found.baseline.per_slice == 0
    assert "autoscaler-flapping" not in names(found)


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


@pytest.mark.parametrize("is_told", [True, False])
def test_members_that_were_too_slow_and_came_back_are_no_deployment(tmp_path: Path, is_told: bool) -> None:
    """A broker's log alone says so by the reason that the members gave."""
    told = {"source": "world", "event": "client_reason", "detail": "consumer poll timeout has expired."}
    rows = [*FORMED]
    for number, name in enumerate("xyz"):
        s, generation = 100 + 60 * number, 2 + 2 * number
        rows += [removed(s, name, f"{name}-1", "left"), *round_of(s, generation, "left", f"{name}-1")[:1]]
        rows += [{"s": s, "member": name, "member_id": f"{name}-1"} | told] * is_told
        rows += round_of(s, generation, "left", f"{name}-1")[1:]
        rows += [added(s + 20, name, f"{name}-2")]
        rows += round_of(s + 20, generation + 1, "new-member", f"{name}-2")
    found = names(explained(trace_of(tmp_path, [*rows, END_OF_FORMED])))
    assert found == ["max-poll-interval" if is_told else "deploy-wave"]
