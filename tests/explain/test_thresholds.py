"""Durations and distances up to which `explain` takes things together: just so far, and just not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    added,
    explained,
    names,
    removed,
    round_of,
    trace_of,
)

Row = dict[str, Any]
Rows = list[Row]


def group_of_seven(*more: Sequence[Mapping[str, Any]]) -> Rows:
    """A group that has formed, and what happens to it."""
    started = {"source": "member", "event": "member_started", "topics": ["t"]}
    formed = [row | ({"count": 7} if "count" in row else {}) for row in FORMED]
    rows = [{"s": 0, "member": name} | started for name in "abcdefg"]
    rows += [*formed[:3], *(added(0.2, name, f"{name}-1") for name in "cdefg"), *formed[3:]]
    happens = sorted((dict(row) for rows in more for row in rows), key=lambda row: row["s"])
    return [*rows, *happens, END_OF_FORMED]


def gone(name: str, s: float, generation: int) -> Rows:
    return [removed(s, name, f"{name}-1", "left"), *round_of(s, generation, "left", f"{name}-1")]


def back(name: str, s: float, generation: int) -> Rows:
    return [added(s, name, f"{name}-2"), *round_of(s, generation, "new-member", f"{name}-2")]


def told(folder: Path, *more: Sequence[Mapping[str, Any]]) -> list[str]:
    return names(explained(trace_of(folder, group_of_seven(*more))))


@pytest.mark.parametrize(("pause_s", "restarts", "rebalances"), [(120, 3, [6]), (121, 3, []), (20, 2, [])])
def test_three_restarts_are_a_wave_if_they_follow_within_two_minutes(
    tmp_path: Path, pause_s: int, restarts: int, rebalances: list[int]
) -> None:
    """Each member is away for 20 s, and the next one goes so long after it is back."""
    steps = [
        rows
        for number, name in enumerate("abc"[:restarts])
        for s in [100 + number * (20 + pause_s)]
        for rows in (gone(name, s, 2 + 2 * number), back(name, s + 20, 3 + 2 * number))
    ]
    found = explained(trace_of(tmp_path, group_of_seven(*steps)))
    assert [(one.pattern.name, len(one.rebalances)) for one in found.findings] == [
        ("deploy-wave", count) for count in rebalances
    ]


@pytest.mark.parametrize(("away_s", "found"), [(600, ["deploy-wave"]), (601, [])])
def test_a_member_is_restarted_if_it_is_back_within_ten_minutes(
    tmp_path: Path, away_s: int, found: list[str]
) -> None:
    went = [gone(name, 100 + 5 * number, 2 + number) for number, name in enumerate("abc")]
    came = [back(name, 100 + 5 * number + away_s, 5 + number) for number, name in enumerate("abc")]
    assert told(tmp_path, *went, *came) == found


@pytest.mark.parametrize(
    ("after_s", "found"), [(60, ["deploy-wave"]), (-60, ["deploy-wave"]), (61, []), (-61, [])]
)
def test_a_pod_of_another_name_replaces_one_within_a_minute(
    tmp_path: Path, after_s: int, found: list[str]
) -> None:
    """Before it, as max_surge has it, or after it."""
    went = [removed(300, name, f"{name}-1", "left") for name in "abc"]
    came = [added(300 + after_s, name, f"{name}-1") for name in "xyz"]
    rounds = [round_of(300, 2, "left", "a-1"), round_of(300 + after_s, 3, "new-member", "x-1")]
    assert told(tmp_path, went, came, *rounds) == found


def test_each_pod_of_a_rollout_is_counted_whatever_arrival_is_nearest(tmp_path: Path) -> None:
    """With max_surge 2: x is nearest to nobody, and comes more than a minute before c leaves. Each departure
    takes the first arrival that is left: a has x, b has y, c has z."""
    went = [(110, "a"), (140, "b"), (165, "c")]
    came = [(100, "x"), (107, "y"), (150, "z")]
    rows = [
        *([removed(s, name, f"{name}-1", "left")] for s, name in went),
        *([added(s, name, f"{name}-1")] for s, name in came),
        *(round_of(s, 2 + n, "left", f"{name}-1") for n, (s, name) in enumerate(sorted((*went, *came)))),
    ]
    (finding,) = explained(trace_of(tmp_path, group_of_seven(*rows))).findings
    assert finding.match.sentence.startswith("3 members stopped and came back or were replaced")


@pytest.mark.parametrize(
    ("before_s", "is_wave"), [(61, True), (60, False), (-5, False), (-6, True), (-20, False)]
)
def test_members_that_leave_because_they_failed_are_no_deployment(
    tmp_path: Path, before_s: int, is_wave: bool
) -> None:
    """Each is too slow a minute before it leaves, or logs it 5 s after it has left, by a slow clock, or as it
    polls and joins again (KIP-848)."""
    too_slow = {"source": "member", "event": "rejoin_requested", "generation": 1, "cause": "poll-timeout"}
    steps: list[Rows] = []
    for number, name in enumerate("abc"):
        s = 200 + 100 * number
        steps += [gone(name, s, 2 + 2 * number), back(name, s + 20, 3 + 2 * number)]
        steps.append([too_slow | {"s": s - before_s, "member": name, "member_id": f"{name}-1"}])
    assert ("deploy-wave" in told(tmp_path, *steps)) == is_wave


@pytest.mark.parametrize(("after_s", "times"), [(300, "1 time"), (301, "2 times")])
def test_a_coordinator_is_away_once_if_it_is_back_within_five_minutes(
    tmp_path: Path, after_s: int, times: str
) -> None:
    moved = [
        {"s": 100, "event": "group_deleted", "cause": "unloaded"},
        {"s": 100 + after_s, "event": "group_created", "cause": "loaded"},
        *round_of(100 + after_s + 1, 2, "member-updated", "a-1"),
    ]
    (finding,) = explained(trace_of(tmp_path, group_of_seven(moved))).findings
    assert finding.match.sentence == (
        f"The coordinator of the group went away or moved {times}; 2 rows about loads and unloads."
    )


def replaced(s: float, number: int) -> Row:
    """Process ``number`` takes over the membership of the instance i."""
    ids = {"member_id": f"i-{number}", "previous_member_id": f"i-{number - 1}"}
    return {"s": s, "event": "member_replaced", "member": "i", "instance": "i", "generation": 1} | ids


@pytest.mark.parametrize(("last_s", "are_twins"), [(600, True), (601, False)])
def test_three_processes_of_one_instance_id_within_ten_minutes_are_twins(
    tmp_path: Path, last_s: int, are_twins: bool
) -> None:
    static = [added(50, "i", "i-0", "i"), *(replaced(100 + s, n) for n, s in enumerate((0, 300, last_s), 1))]
    assert ("static-fenced" in told(tmp_path, static)) == are_twins


@pytest.mark.parametrize(("back_s", "found"), [(180, "static-session-too-short"), (181, "static-orphan")])
def test_a_static_member_was_restarting_if_it_is_back_within_three_minutes(
    tmp_path: Path, back_s: int, found: str
) -> None:
    rows = [
        added(50, "i", "i-0", "i"),
        removed(100, "i", "i-0", "session-expired", "i"),
        *round_of(100, 2, "session-expired", "i-0"),
        added(100 + back_s, "i", "i-1", "i"),
        *round_of(100 + back_s, 3, "new-member", "i-1"),
    ]
    assert told(tmp_path, rows) == [found]


@pytest.mark.parametrize(("began_s", "rebalances"), [(880, 1), (879, 0), (1_600, 1), (1_601, 0)])
def test_a_refused_member_began_rounds_from_two_minutes_before_to_ten_minutes_after(
    tmp_path: Path, began_s: int, rebalances: int
) -> None:
    """The first and only refusal is at 1,000 s."""
    refused = {"event": "join_answered", "member": "a", "member_id": "a-1", "generation": 1}
    error = {"s": 1_000, "error": "INCONSISTENT_GROUP_PROTOCOL"}
    rows = [refused | error, *round_of(began_s, 2, "member-updated", "a-1")]
    (finding,) = explained(trace_of(tmp_path, group_of_seven(rows))).findings
    assert finding.pattern.name == "mixed-assignors"
    assert len({one.number for one in finding.match.rebalances}) == rebalances


@pytest.mark.parametrize(("back_s", "rebalances"), [(901, 2), (902, 1)])
def test_a_member_that_did_not_poll_is_back_within_a_quarter_of_an_hour(
    tmp_path: Path, back_s: int, rebalances: int
) -> None:
    """One rebalance begins as it leaves, another one when it is back: a second later still counts."""
    left = {"source": "member", "event": "rejoin_requested", "member": "a", "member_id": "a-1"}
    gone_at_once = [left | {"s": 100, "generation": 1, "cause": "poll-timeout"}, *gone("a", 100, 2)]
    rows = [*gone_at_once, *back("a", 100 + back_s, 3)]
    found = explained(trace_of(tmp_path, group_of_seven(rows))).findings
    (finding,) = [one for one in found if one.pattern.name == "max-poll-interval"]
    assert len({one.number for one in finding.match.rebalances}) == rebalances


#: The first row of a trace with records, five a second into one partition.
RECORDS = {
    "s": 0, "source": "world", "event": "scenario_started", "detail": "{}", "partitions": ["t-0"],
    "record_rate": 5, "process_rate": 10,
}  # fmt: skip


def holds(name: str, s: float, event: str, **more: Any) -> Row:
    """A row of a member that has t-0 and stands at position 40."""
    known = {"source": "member", "member": name, "member_id": f"{name}-1", "generation": 1, "duration_us": 0}
    return (
        known | {"partitions": ["t-0"], "positions": [40], "committed": [40], "s": s, "event": event} | more
    )


def told_of_records(folder: Path, *rows: Row, rate: int = 5) -> list[str]:
    records = RECORDS | {"record_rate": rate}
    return names(explained(trace_of(folder, [records, *FORMED, *rows, END_OF_FORMED])))


@pytest.mark.parametrize(("owners", "rate", "found"), [(3, 5, ["poison-record"]), (2, 5, []), (3, 0, [])])
def test_a_record_is_to_blame_if_three_owners_end_at_it(
    tmp_path: Path, owners: int, rate: int, found: list[str]
) -> None:
    each = [("ab"[number % 2], 100 + 10 * number) for number in range(owners)]
    rows = [
        row
        for name, s in each
        for row in (
            holds(name, s, "partitions_assigned"),
            holds(name, s + 5, "partitions_lost", cause="fenced"),
        )
    ]
    assert told_of_records(tmp_path, *rows, rate=rate) == found


@pytest.mark.parametrize(("stood_s", "found"), [(30, ["poison-record"]), (29, [])])
def test_a_record_is_to_blame_if_its_owner_stands_for_half_a_minute(
    tmp_path: Path, stood_s: int, found: list[str]
) -> None:
    rows = [
        holds("a", 10, "partitions_assigned"),
        holds("a", 20, "processing_rates_changed", rates=[0]),
        holds("a", 20 + stood_s, "processing_rates_changed", rates=[10_000]),
    ]
    assert told_of_records(tmp_path, *rows) == found


@pytest.mark.parametrize(("stops_s", "is_found"), [(21, True), (20.999, False)])
def test_two_members_that_work_on_a_partition_for_a_second_are_named(
    tmp_path: Path, stops_s: float, is_found: bool
) -> None:
    """From 20 s on b has t-0, too. Until a gives it up at 21 s both work on it for 21 - 20 = 1 s; until
    20.999 s for 0.999 s."""
    started = {"s": 0, "source": "member", "event": "member_started", "topics": ["t"]}
    rows = [
        holds("a", 10, "partitions_assigned"),
        holds("b", 20, "partitions_assigned"),
        holds("a", stops_s, "partitions_revoked", cause="rebalance"),
    ]
    trace = [RECORDS, *(started | {"member": name} for name in "ab"), *FORMED, *rows, END_OF_FORMED]
    assert ("zombie" in names(explained(trace_of(tmp_path, trace)))) == is_found


def test_a_zombie_of_a_consumer_group_is_named(tmp_path: Path) -> None:
    """The answer to its next heartbeat is all that the member of a KIP-848 group sees."""
    started = {"s": 0, "source": "member", "event": "member_started", "topics": ["t"]}
    rows = [
        holds("a", 10, "partitions_assigned"),
        holds("b", 20, "partitions_assigned"),
        holds("a", 21, "partitions_lost", cause="UNKNOWN_MEMBER_ID"),
    ]
    trace = [RECORDS, *(started | {"member": name} for name in "ab"), *FORMED, *rows, END_OF_FORMED]
    found = explained(trace_of(tmp_path, trace))
    assert [one.match.members for one in found.findings if one.pattern.name == "zombie"] == [("a",)]


def test_no_log_says_when_a_zombie_stood_still(tmp_path: Path) -> None:
    imported = {"s": 0, "source": "world", "event": "group_imported", "cause": "members", "detail": "{}"}
    started = {"s": 0, "source": "member", "event": "member_started", "topics": ["t"]}
    rows = [
        holds("a", 10, "partitions_assigned"),
        holds("b", 20, "partitions_assigned"),
        holds("a", 21, "partitions_lost", cause="poll-timeout"),
    ]
    trace = [imported, *(started | {"member": name} for name in "ab"), *FORMED, *rows, END_OF_FORMED]
    told = [one.match.sentence for one in explained(trace_of(tmp_path, trace)).findings]
    assert "Two members worked on one partition for at most 1.0 s in all." in told
