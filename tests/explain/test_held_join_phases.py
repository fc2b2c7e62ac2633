"""Whom a round waited for: who joined long after all others, the leader, or nobody that a row names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from groupstorm.explain.findings import Finding
from tests.explain.explaining import (
    END_OF_FORMED,
    FORMED,
    added,
    explained,
    of_formed,
    removed,
    round_of,
    scenario_storm,
    trace_of,
)
from tests.explain.test_first_answers import printed


def found_with_joins(
    folder: Path, joins: Mapping[str, float], lasted_s: float, state: str = "Stable"
) -> list[Finding]:
    """A join phase from 100 s on, in which each member of ``joins`` joins so long after its begin."""
    begun, *rest = round_of(100, 2, "member-updated", "a-1", lasted_s)
    parked = [
        {"s": 100 + s, "event": "join_parked", "member": name, "member_id": f"{name}-1", "generation": 1}
        for name, s in joins.items()
    ]
    rows = [*FORMED, begun | {"previous_state": state}, *parked, *rest, END_OF_FORMED]
    return explained(trace_of(folder, rows)).findings


@pytest.mark.parametrize(("last_s", "members"), [(23.0, ("b-1",)), (22.9, None)])
def test_a_member_holds_up_a_join_phase_if_it_joins_three_seconds_after_the_others(
    tmp_path: Path, last_s: float, members: tuple[str, ...] | None
) -> None:
    """a joins 20 s after the round began, and b after it: both are slow if b comes with the next heartbeat,
    which it sends every 3 s."""
    found = found_with_joins(tmp_path, {"a": 20, "b": last_s}, last_s)
    assert [(one.pattern.name, one.match.members) for one in found] == (
        [] if members is None else [("held-join-phase", members)]
    )


def test_several_members_hold_up_a_join_phase_of_a_minute(tmp_path: Path) -> None:
    """Both had partitions of a deleted topic, and tried to commit them for equally long."""
    (finding,) = found_with_joins(tmp_path, {"a": 60, "b": 61}, 61)
    assert finding.pattern.name == "held-join-phase"
    assert finding.match.sentence.endswith("took 61.0 s: several members joined at its end, b-1 last.")
    assert finding.match.members == ()  # the advice names no one of them
    assert found_with_joins(tmp_path, {"a": 58, "b": 59}, 59) == []


@pytest.mark.parametrize(("ends_s", "members"), [(18.9, ("b-1",)), (19.0, ())])
def test_a_join_phase_that_goes_on_after_the_last_join_waits_for_somebody_else(
    tmp_path: Path, ends_s: float, members: tuple[str, ...]
) -> None:
    """A coordinator answers as soon as the last member has joined. b joins after 16 s: if the phase goes on
    for 3 s more, b was not the last, and the row of the last one is missing."""
    (finding,) = found_with_joins(tmp_path, {"a": 0, "b": 16}, ends_s)
    assert (finding.pattern.name, finding.match.members) == ("held-join-phase", members)
    assert ("b-1" in finding.match.sentence) == bool(members)
    assert (finding.match.unknown == "") == bool(members)


@pytest.mark.parametrize(("died_s", "is_told"), [(99, True), (40, False)])
def test_a_join_phase_may_wait_for_the_session_of_a_dead_member(
    tmp_path: Path, died_s: int, is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs of clients alone do not say when a session expires: all others join at once, and 20 s later the
    phase is over."""
    begun, *rest = round_of(100, 2, "unknown", "a-1", 20)
    died = {"s": died_s, "source": "member", "event": "member_crashed", "member": "b", "member_id": "b-1"}
    joins = {"s": 100, "event": "join_parked", "member": "a", "member_id": "a-1", "generation": 1}
    rows = [*FORMED, died | {"partitions": [], "generation": 1}, begun, joins, *rest, END_OF_FORMED]
    text = printed(explained(trace_of(tmp_path, rows)), capsys)
    waited = "Unknown: whom it waited for, a late member or the session of b, which died: add"
    assert (waited in text) == is_told
    asked = "Turn: Find out why the process died. If a member was late: lower max.poll.records"
    assert (asked in text) == is_told


def test_an_empty_group_waits_for_no_member(tmp_path: Path) -> None:
    """Its first round is open until group.initial.rebalance.delay.ms is over, however late members join."""
    assert found_with_joins(tmp_path, {"a": 0, "b": 16}, 16, "Empty") == []
    assert found_with_joins(tmp_path, {"a": 0, "b": 16}, 16) != []


@pytest.mark.parametrize(("went_s", "is_held"), [(None, True), (90, False)])
def test_a_group_whose_members_have_all_left_is_empty(
    tmp_path: Path, went_s: int | None, is_held: bool
) -> None:
    """No row says the state before the round, in which c comes. a and b are still there, or have left."""
    gone = [
        {"s": went_s, "event": "member_removed", "member": name, "member_id": f"{name}-1", "generation": 1}
        | {"cause": "left"}
        for name in ("a", "b")
        if went_s is not None
    ]
    begun, *rest = round_of(100, 2, "unknown", "c-1", 16)
    begun |= {"previous_state": "unknown", "count": 1 if gone else 3}
    found = of_formed(tmp_path, *gone, added(100, "c", "c-1"), begun, *rest).findings
    assert ("held-join-phase" in [one.pattern.name for one in found]) == is_held


@pytest.mark.parametrize(("plan_s", "owner"), [(8, "session-expired"), (30, "slow-assignor")])
def test_a_plan_is_to_blame_for_a_round_if_it_took_longer_than_the_session(
    tmp_path: Path, plan_s: int, owner: str
) -> None:
    """The round begins at 100 s, waits until 128 s for the session of b, and then for the plan of a."""
    begun, joined, stable = round_of(100, 2, "left", "c-1", 28)
    gone = removed(128, "b", "b-1", "session-expired")
    found = of_formed(tmp_path, begun, gone, joined, stable | {"s": 128 + plan_s}).findings
    assert {one.pattern.name for one in found} == {"session-expired", "slow-assignor"}
    assert [one.pattern.name for one in found if one.rebalances] == [owner]


def test_the_leader_goes_by_its_name(tmp_path: Path) -> None:
    """A coordinator makes the id of a member of its client id and a UUID."""
    leader = "a-0f3e3d6e-16a1-4f3c-9a36-97e2d8b2f6c1"
    started = {"s": 0, "source": "member", "event": "member_started", "member": "a", "topics": ["t"]}
    begun, joined, stable = round_of(100, 2, "member-updated", "a-1")
    rows = [started, *FORMED, begun, joined | {"leader": leader}, stable | {"s": 120}, END_OF_FORMED]
    (finding,) = explained(trace_of(tmp_path, rows)).findings
    assert (finding.pattern.name, finding.match.members) == ("slow-assignor", ("a",))
    (finding,) = explained(trace_of(tmp_path, rows[1:])).findings
    assert finding.match.members == (leader,)  # no row says that its name is a


def test_a_consumer_that_commits_a_deleted_topic_has_no_slow_batch(tmp_path: Path) -> None:
    """The leader sees it at its next refresh of metadata. No max.poll.records makes that shorter."""
    trace = scenario_storm(
        tmp_path,
        """
        name: deleted
        question: A topic is deleted whose positions Java commits in the background.
        figures_from: warm_up_ms
        settings: {members: 3, topic_partitions: {a: 3, old: 3}, max.poll.interval.ms: 60s}
        steps:
          - {at_ms: 0, do: start}
          - {at_ms: 2m, do: delete-topic, topic: old}
        """,
    )
    (held,) = [one for one in explained(trace).findings if one.pattern.name == "held-join-phase"]
    assert ": stop reading a topic before it is deleted: " in held.pattern.advice
    assert "max.poll.records" not in held.pattern.advice
