"""Steps that overlap: a name has one process at a time, and each step comes to its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm


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
