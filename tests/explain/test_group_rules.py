"""Rules on whole groups over traces of a few rows: their coordinator, their size, their rebalances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.cli.explain import print_explanation
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    SECOND_US,
    added,
    explained,
    names,
    of_formed,
    removed,
    round_of,
    state,
    trace_of,
)


def test_a_row_of_rebalances_says_that_no_pattern_explains_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of the first one took 6 s, that of the second 10 ms."""
    slow = [*round_of(100, 2, "member-updated", "a-1")]
    slow[-1]["s"] += 6
    print_explanation(of_formed(tmp_path, *slow, *round_of(900, 3, "member-updated", "a-1")), {}, False)
    assert " member-updated 2 8.0 s unknown slow-assignor, - " in " ".join(capsys.readouterr().out.split())


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
    found = of_formed(
        tmp_path,
        {"s": 100, "event": "group_deleted", "cause": "unloaded"},
        {"s": 130, "event": "group_created", "cause": "loaded"},
        *round_of(140, 2, "member-updated", "a-1"),
        *round_of(1_000, 3, "member-updated", "a-1"),
    )
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
    one = of_formed(tmp_path, *rows, *gone)
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
    rows: list[dict[str, Any]] = []
    for generation, s in enumerate((100, 104, 400, 404), start=2):
        rows += round_of(s, generation, "append-failed", "a-1")
        answer = {"s": s, "event": "sync_answered", "member": "a", "member_id": "a-1", "error": error}
        rows.append(answer | {"generation": generation})
    rows.sort(key=lambda row: row["s"])
    one = of_formed(tmp_path, *rows)
    assert sorted(names(one)) == sorted(found)
    (failed,) = [each for each in one.findings if each.pattern.name == "append-failed"]
    assert "4 times in 2 outages of 8.0 s in all the coordinator could not write" in failed.match.sentence


def test_rounds_that_break_off_again_and_again(tmp_path: Path) -> None:
    def broken(times: int) -> list[dict[str, Any]]:
        rows = []
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
        return [*rows, state(200, "CompletingRebalance", "Stable", 9, "assigned")]

    assert "livelock" in names(of_formed(tmp_path, *broken(6)))
    assert "livelock" not in names(of_formed(tmp_path, *broken(5)))


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


def test_a_group_that_is_stopped_at_the_end(tmp_path: Path) -> None:
    stop = [
        removed(95, "b", "b-1", "left"),
        *round_of(95, 2, "left", "b-1"),
        state(100, "Stable", "PreparingRebalance", 2, "left", member_id="a-1"),
        removed(100, "a", "a-1", "left"),
        state(100.01, "PreparingRebalance", "Empty", 3, "no-members", count=0),
    ]
    found = of_formed(tmp_path, *stop)
    assert names(found) == ["stopped"]
    assert len(found.findings[0].rebalances) == 2
    before = (removed(39, "b", "b-1", "left"), *round_of(39, 2, "left", "b-1"), *stop[-3:])
    found = of_formed(tmp_path, *before)
    assert found.findings[0].match.members == ("a-1",)
    again = [
        state(200, "Empty", "PreparingRebalance", 3, "new-member", member_id="a-2"),
        added(200, "a", "a-2"),
        state(203, "PreparingRebalance", "CompletingRebalance", 4, "initial-delay"),
        state(203.1, "CompletingRebalance", "Stable", 4, "assigned"),
    ]
    assert "stopped" not in names(of_formed(tmp_path, *stop, *again))
    failed = {"s": 100.02, "event": "member_failed", "member": "a", "member_id": "a-1", "error": "Refused"}
    found = of_formed(tmp_path, *stop, failed)
    assert names(found) == ["failing-members"]  # who leaves because of an error was stopped by nobody
    died = [one | ({"cause": "session-expired"} if one.get("member") == "a" else {}) for one in stop]
    assert "stopped" not in names(of_formed(tmp_path, *died))


def test_an_eager_member_that_gets_fewer_partitions_and_joins_again_begins_a_rebalance(
    tmp_path: Path,
) -> None:
    """It gives up everything before it joins, so its next round is no second half (KIP-429)."""

    def row(s: float, event: str, member: str, generation: int, **more: Any) -> dict[str, Any]:
        known = {"s": s, "event": event, "member": member, "member_id": f"{member}-1"}
        return known | {"generation": generation} | more

    begun, joined, stable = round_of(100, 2, "leader-rejoined", "a-1")
    found = of_formed(
        tmp_path,
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
    ).history.rebalances
    assert [one.begun_us / SECOND_US for one in found] == [0, 100, 200]


def test_a_damaged_time_that_makes_ages_of_a_trace_takes_no_longer(tmp_path: Path) -> None:
    """A line may say a year that is thousands of years away; each hour and half minute would be too many."""
    ages_s = 8_000 * 366 * 86_400
    rows = [*FORMED, removed(3_600, "b", "b-1", "left"), added(ages_s, "b", "b-2")]
    found = explained(trace_of(tmp_path, rows))
    assert found.baseline.slices > 70_000_000
    assert found.baseline.per_slice == 0
    assert "autoscaler-flapping" not in names(found)


@pytest.mark.parametrize("is_told", [True, False])
def test_members_that_were_too_slow_and_came_back_are_no_deployment(tmp_path: Path, is_told: bool) -> None:
    """A broker's log alone says so by the reason that the members gave."""
    told = {"source": "world", "event": "client_reason", "detail": "consumer poll timeout has expired."}
    rows: list[dict[str, Any]] = []
    for number, name in enumerate("xyz"):
        s, generation = 100 + 60 * number, 2 + 2 * number
        rows += [removed(s, name, f"{name}-1", "left"), *round_of(s, generation, "left", f"{name}-1")[:1]]
        rows += [{"s": s, "member": name, "member_id": f"{name}-1"} | told] * is_told
        rows += round_of(s, generation, "left", f"{name}-1")[1:]
        rows += [added(s + 20, name, f"{name}-2")]
        rows += round_of(s + 20, generation + 1, "new-member", f"{name}-2")
    found = names(of_formed(tmp_path, *rows))
    assert found == ["max-poll-interval" if is_told else "deploy-wave"]
