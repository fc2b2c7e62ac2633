"""Traces of real time: of `serve --trace`, and of `run --on` a broker of which only responses are seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groupstorm.cli.explain import print_explanation
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    added,
    explained,
    names,
    removed,
    round_of,
    state,
    trace_of,
)


@pytest.mark.parametrize("before", ["Empty", "Stable"])
def test_a_broker_that_starts_with_a_group_of_no_members_moves_no_coordinator(
    tmp_path: Path, before: str
) -> None:
    """`serve --data`, begun again: the group's rows begin as the coordinator loads it from the disk."""
    loaded = {"s": 0, "event": "group_created", "cause": "loaded"}
    begun = state(0, before, "PreparingRebalance", 4, "new-member", member_id="a-1")
    one = explained(trace_of(tmp_path, [loaded, begun, *FORMED[1:], END_OF_FORMED]))
    assert ("coordinator-moved" in names(one)) == (before == "Stable")


@pytest.mark.parametrize("is_loaded", [True, False])
def test_the_second_round_of_a_loaded_group_is_no_leader_that_joins_again(
    tmp_path: Path, is_loaded: bool
) -> None:
    """No row says what a cooperative member had as the coordinator loaded its group, nor that it revokes."""
    begun = [{"s": 0, "event": "group_created", "cause": "loaded"}] if is_loaded else FORMED
    synced = {"s": 101.5, "event": "sync_answered", "member": "a", "member_id": "a-1", "generation": 2}
    first = [*round_of(100, 2, "new-member", "c-1"), synced | {"partitions": ["t-0"]}]
    again = [*round_of(102, 3, "leader-rejoined", "a-1"), *round_of(900, 4, "leader-rejoined", "a-1")]
    one = explained(trace_of(tmp_path, [*begun, *first, *again, END_OF_FORMED]))
    [found] = [each for each in one.findings if each.pattern.name == "leader-rejoined"]
    assert len(found.rebalances) == (1 if is_loaded else 2)


@pytest.mark.parametrize(
    ("silent", "has_one"),
    [
        ({"event": "member_crashed", "partitions": [], "positions": []}, False),
        ({"event": "member_paused", "cause": "pause", "duration_us": 30_000_000}, False),
        ({"event": "member_paused", "cause": "pause", "duration_us": 3_000_000}, True),
        ({"event": "member_paused", "cause": "slow-batch", "duration_us": 30_000_000}, True),
    ],
)
def test_no_heartbeat_comes_of_a_member_that_has_crashed_or_stands_still(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: Mapping[str, Any], has_one: bool
) -> None:
    """The broker says that b's session is over as the next round has its members, 3 s late."""
    scenario = {"s": 0, "source": "world", "event": "scenario_started", "partitions": ["t-0"]}
    scenario |= {"detail": '{"settings": {"session.timeout.ms": 10000}}', "record_rate": 0, "process_rate": 1}
    crashed = {"s": 20, "source": "member", "member": "b", "member_id": "b-1", "generation": 1, **silent}
    begun, joined, ended = round_of(32, 2, "session-expired", "")
    late = [begun, joined, removed(33, "b", "b-1", "session-expired"), ended]
    one = explained(trace_of(tmp_path, [scenario, *FORMED, crashed, *late, END_OF_FORMED]))
    assert one.history.rebalances[-1].culprit == "b"
    print_explanation(one, {}, False)
    text = " ".join(capsys.readouterr().out.split())
    heartbeat = "its last heartbeat came at 23.000 s and " if has_one else ""
    assert f"b: expired at 33.000 s; {heartbeat}the last row of it is of 20.000 s." in text


def test_a_member_that_is_told_that_it_is_out_was_removed_before(tmp_path: Path) -> None:
    """b's session was over at an unknown time; somebody restarts b 15 s after it has come back."""
    scenario = {"s": 0, "source": "world", "event": "scenario_started", "partitions": ["t-0"]}
    scenario |= {"detail": '{"settings": {"session.timeout.ms": 10000}}', "record_rate": 0, "process_rate": 1}
    told = {"s": 50.001, "source": "member", "event": "rejoin_requested", "member": "b", "member_id": "b-1"}
    told |= {"generation": 1, "cause": "UNKNOWN_MEMBER_ID"}
    rows = [
        *[scenario, *FORMED, told | {"s": 4, "cause": "group-rebalance"}],
        *[removed(50, "b", "b-1", "session-expired"), told],
        *[*round_of(50.1, 2, "session-expired", "b-1"), added(52, "b", "b-2")],
        *[*round_of(52, 3, "pending-member", "b-2"), removed(67, "b", "b-2", "left")],
        *[*round_of(67, 4, "left", "b-2"), added(72, "b", "b-3"), *round_of(72, 5, "pending-member", "b-3")],
    ]
    one = explained(trace_of(tmp_path, [*rows, END_OF_FORMED]))
    [finding] = [each for each in one.findings if each.pattern.name == "session-expired"]
    assert "b: expired at 50.000 s or before; " in finding.match.sentence
    assert "its last heartbeat" not in finding.match.sentence
    assert [rebalance.begun_us for rebalance in finding.rebalances] == [50_100_000, 52_000_000]


def test_a_member_that_goes_by_an_id_of_its_own_has_its_client_id_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KIP-848: the id is a UUID, which no pod knows."""
    gone = removed(100, "shop-0", "5gg-eXCTT", "session-expired")
    begun = [gone, *round_of(100, 3, "session-expired", "5gg-eXCTT")]
    rows = [*FORMED, added(50, "shop-0", "5gg-eXCTT"), *round_of(50, 2, "new-member", "5gg-eXCTT"), *begun]
    print_explanation(explained(trace_of(tmp_path, [*rows, END_OF_FORMED])), {}, False)
    text = capsys.readouterr().out
    assert "Members: 5gg-eXCTT (shop-0)." in text
    assert "5gg-eXCTT (shop-0)  session-expired" in text
