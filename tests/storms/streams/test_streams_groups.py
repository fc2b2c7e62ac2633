"""Threads in streams groups (KIP-1071): times by hand, from the heartbeat interval and the broker's delays.

Latencies are 1 ms, so that a member's join arrives at 3 ms (FindCoordinator there and back), its
acknowledgement at 5 ms, and each heartbeat 5 s after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.figures import FiguresAccumulator
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.trace.schema import Source
from groupstorm.verdicts.comparison import compare_sentences
from tests.storms.storms_in_memory import Storm, storm
from tests.storms.streams.applications import QUIET_MS, SECOND, after, require_invariants, small

MS = 1_000
#: Four tasks of 1 GB on two threads: two beside each other, at 50 MB/s.
RESTORES = 40 * SECOND


def streams(*steps: dict[str, Any], **settings: Any) -> Storm:
    return storm(small(*steps, **{"group__protocol": "streams", **settings}))


def times(found: Storm, name: str, **fields: object) -> list[int]:
    return [time_us for time_us, _ in found.events(name, **fields)]


def later(found: Storm, name: str) -> list[int]:
    """Times since the step, in milliseconds."""
    return [at_us // MS - QUIET_MS for at_us in times(found, name) if at_us >= QUIET_MS * MS]


def compared(runs: Mapping[str, Storm]) -> list[str]:
    """The answer of a comparison of single runs."""
    return compare_sentences(
        {name: [found.figures] for name, found in runs.items()},
        None,
        {name: [reasons_of(found)] for name, found in runs.items()},
    )


def reasons_of(found: Storm) -> Reasons:
    gaps = GapReasons()
    figures = FiguresAccumulator(listener=gaps)
    for time_us, source, event in found.rows:
        figures.add(time_us, Source(source), event)
    figures.figures()
    return gaps.reasons()


def test_the_first_tasks_come_with_the_heartbeat_behind_the_initial_delay() -> None:
    """KAFKA-19829: 3 s for others to join, and the members learn their tasks when they next ask."""
    found = require_invariants(streams())
    assert times(found, "target_assigned") == [3_003 * MS], "the second join does not start the delay again"
    assert times(found, "task_restoring") == [5_006 * MS] * 4
    assert times(found, "task_running") == [5_006 * MS + RESTORES] * 4


def test_without_the_initial_delay_the_first_member_restores_everything_and_gives_half_of_it_up() -> None:
    found = require_invariants(streams(group__streams__initial__rebalance__delay__ms=0))
    restoring = [(at_us // MS, event.process, event.task) for at_us, event in found.events("task_restoring")]
    assert restoring[:4] == [(4, "instance-0", f"0_{number}") for number in range(4)]
    assert {process for _, process, _ in restoring[4:]} == {"instance-1"}
    assert [at_ms for at_ms, _, _ in restoring[4:]] == [10_008] * 2, (
        "the next heartbeat of the first learns of it at 5,005, the next of the second one takes it"
    )


def test_a_task_that_moves_restores_while_nobody_runs_it() -> None:
    found = require_invariants(streams(after("add")))
    assert later(found, "target_assigned") == [1_003]
    assert later(found, "task_suspended") == [5_008], "the old owner's next heartbeat"
    assert later(found, "task_restoring") == [6_006], "the new owner's next heartbeat"
    records = 1_018_049
    assert later(found, "task_running") == [6_006 + records * 1_000 // 50_000]
    figures = found.figures
    assert figures.restored_bytes == records * 1_000
    assert figures.task_downtime_seconds == pytest.approx(6.006 - 5.008 + records / 50_000, abs=0.002)
    assert (figures.moves, figures.probing_rebalances, figures.converged_after_seconds) == (1, 0, 0.0)


@pytest.mark.slow
def test_threads_hold_still_from_a_heartbeat_in_the_assignment_interval_until_the_next_one() -> None:
    """ASSIGNMENT_DELAYED, which the second thread of an instance brings about, makes the group not ready."""
    at = {"start_ms": {"exactly": 4_500}, "num__stream__threads": 2}
    found = require_invariants(streams(after("add"), **at))
    assert later(found, "task_suspended") == []
    assert later(found, "partitions_paused") == [5_008] * 4
    assert later(found, "partitions_resumed") == [10_010] * 4
    at_once = require_invariants(streams(after("add"), **at, group__streams__assignment__interval__ms=0))
    assert later(at_once, "partitions_paused") == later(at_once, "partitions_resumed") == []


@pytest.mark.parametrize(
    ("leave", "cause", "removed_ms"),
    [(None, "left", 3), (True, "left", 3), (False, "session-expired", 40_007)],
)
def test_instances_leave_on_close_unless_they_are_told_to_stay(
    leave: bool | None, cause: str, removed_ms: int
) -> None:
    found = require_invariants(streams(after("stop", members=[0]), leave_on_close=leave))
    [(at_us, removed)] = found.events("member_removed")
    assert (removed.cause, at_us // MS - QUIET_MS) == (cause, removed_ms), "45 s after its last heartbeat"
    [closed] = [event.cause for _, event in found.events("member_closed")]
    assert closed == ("silent" if leave is False else "left")


@pytest.mark.parametrize(
    ("instance_id", "causes"), [("none", ["checkpoint", "nothing"]), ("ordinal", ["checkpoint"] * 2)]
)
def test_a_static_instance_comes_back_to_its_state(instance_id: str, causes: list[str]) -> None:
    """An instance has restored the tasks of one that left: it keeps two of them, whoever has their state."""
    found = require_invariants(streams(after("restart", members=[0]), group__instance__id=instance_id))
    back = [
        event.cause
        for at_us, event in found.events("task_restoring", process="instance-0")
        if at_us >= QUIET_MS * MS
    ]
    assert sorted(back) == causes
    assert len(found.events("member_removed")) == (instance_id == "none")


def test_standbys_take_over() -> None:
    found = require_invariants(streams(after("lose-host", members=[0]), num__standby__replicas=1, members=3))
    causes = [event.cause for at_us, event in found.events("task_restoring") if at_us >= QUIET_MS * MS]
    assert causes
    assert set(causes) == {"standby"}
    assert found.figures.tasks_from_scratch == 0


def test_an_application_changes_its_protocol_only_while_its_group_is_empty() -> None:
    """The threads of the classic protocol stay in the group when they close; 45 s later it is empty."""
    change = after("restart", members=[0, 1], settings={"group.protocol": "streams"})
    refused = storm(small(change))
    assert {event.error for _, event in refused.events("member_failed")} == {"GROUP_ID_NOT_FOUND"}
    left = require_invariants(storm(small(change, leave_on_close=True)))
    assert later(left, "group_created") == [1_007], "a commit and a LeaveGroup, 1 s, a join"
    waited = require_invariants(storm(small(change, start_ms={"exactly": 46_000})))
    assert later(waited, "group_created") == [46_005]
    said = " ".join(compared({"at-once": refused, "leave": left}))
    assert "under at-once the group refused 2 consumers of the new protocol (GROUP_ID_NOT_FOUND)" in said
    assert "under leave the group became a streams group at 30 min 1 s, empty until then" in said
    assert "Before the roll-out, under at-once: stop all instances" in said


def test_a_comparison_says_what_the_broker_costs_and_saves() -> None:
    runs = {
        name: storm(small(after("add"), group__protocol=protocol, members=1))
        for name, protocol in (("shipped", "classic"), ("streams", "streams"))
    }
    [*_, last] = compared(runs)
    assert last.startswith("With group.protocol=streams, under streams against shipped, lost: 2 warm-ups ")
    assert "(Kafka 4.4.0 places none in streams groups)" in last
    assert "won: the last assignment 0 s after the first change instead of" in last


def test_a_comparison_of_runs_that_cost_the_same_says_so() -> None:
    """Nothing happens, and nothing was to be restored."""
    runs = {
        name: storm(small(group__protocol=protocol, members=1, state_bytes=0))
        for name, protocol in (("shipped", "classic"), ("streams", "streams"))
    }
    [*_, last] = compared(runs)
    assert last.endswith("lost: nothing; won: nothing.")
