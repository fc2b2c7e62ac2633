"""Rebalances of consumer groups (KIP-848): group epochs, their causes, what they cost and when they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.explain.advice import advice_for
from tests.explain.explaining import (
    added,
    explained,
    names,
    removed,
    scenario_storm,
    state,
    storm,
    trace_of,
)

IMPORTED = {"s": 0, "source": "world", "event": "group_imported", "cause": "members", "detail": "{}"}


def bumped(s: float, epoch: int) -> dict[str, Any]:
    return {"s": s, "event": "group_epoch_bumped", "generation": epoch}


def target(s: float, epoch: int) -> dict[str, Any]:
    return {"s": s, "event": "target_assigned", "generation": epoch}


def took(s: float, member: str, *partitions: str) -> dict[str, Any]:
    row = {"s": s, "source": "member", "event": "partitions_assigned", "member": member}
    row |= {"member_id": f"{member}-1", "generation": 2, "partitions": [*partitions]}
    return row | {"positions": [0] * len(partitions), "duration_us": 0}


def gave(s: float, member: str, *partitions: str, cause: str = "assignment") -> dict[str, Any]:
    row = took(s, member, *partitions) | {"event": "partitions_revoked", "cause": cause}
    return row | {"committed": [0] * len(partitions)}


#: A group of which no row says when it was Stable: a comes, then b and c before the next target; b leaves.
ROWS = (
    IMPORTED,
    added(1, "a", "a-1"),
    bumped(1, 2),
    target(1, 2),
    took(1.5, "a", "t-0", "t-1"),
    added(5, "b", "b-1"),
    bumped(5, 3),
    added(5.2, "c", "c-1"),
    bumped(5.2, 4),
    target(6, 4),
    gave(6.5, "a", "t-1"),
    took(7, "b", "t-1"),
    gave(9.8, "b", "t-1", cause="close"),
    removed(10, "b", "b-1", "left"),
    bumped(10, 5),
    target(10, 5),
    added(10.5, "d", "d-1"),
    bumped(10.5, 6),
    took(11, "c", "t-1"),
    target(11.5, 6),
    {"s": 20, "event": "member_updated", "member": "a", "member_id": "a-1", "generation": 6},
)


def test_a_target_makes_a_rebalance_of_the_epochs_before_it(tmp_path: Path) -> None:
    history = explained(trace_of(tmp_path, ROWS)).history
    found = [(one.begun_us // 1000, one.cause, one.culprit, len(one.rounds)) for one in history.rebalances]
    assert found == [
        (1_000, "new-member", "a", 1),
        (5_000, "new-member", "b", 2),
        (10_000, "left", "b", 1),
        (10_500, "new-member", "d", 1),
    ]
    assert history.is_consumer_group


def test_it_ends_with_the_last_step_of_a_member_where_no_row_says_stable(tmp_path: Path) -> None:
    """The fourth ends at its target: nobody has anything to do for it that a row tells."""
    history = explained(trace_of(tmp_path, ROWS)).history
    assert [(one.ended_us or 0) // 1000 for one in history.rebalances] == [1_500, 7_000, 10_000, 11_500]
    assert [one.lasted_us // 1000 for one in history.rebalances] == [500, 2_000, 0, 1_000]


def test_the_time_without_an_owner_belongs_to_what_took_the_owner_away(tmp_path: Path) -> None:
    """t-1 of b, which left, is taken only when the next epoch is there already."""
    history = explained(trace_of(tmp_path, ROWS)).history
    assert [one.unowned_us // 1000 for one in history.rebalances] == [0, 500, 1_200, 0]
    assert history.absences == []


def test_a_static_member_that_comes_back_is_no_rebalance(tmp_path: Path) -> None:
    back = {"s": 14, "event": "member_replaced", "member": "a", "member_id": "a-2", "instance": "seat"}
    rows = [
        *ROWS[:-1],
        gave(13, "a", "t-0", cause="close"),
        back | {"previous_member_id": "a-1", "generation": 6},
        took(14.5, "a", "t-0"),
        ROWS[-1],
    ]
    found = explained(trace_of(tmp_path, rows))
    assert len(found.history.rebalances) == 4
    assert [(one.member, one.unowned_us) for one in found.history.absences] == [("a", 1_500_000)]
    assert "static-restart" in names(found)


def test_the_last_member_that_leaves_ends_the_group_at_once(tmp_path: Path) -> None:
    """Logs may have the epoch behind the row of the empty group."""
    rows = [
        IMPORTED,
        added(1, "a", "a-1"),
        bumped(1, 2),
        target(1, 2),
        removed(9, "a", "a-1", "left"),
        state(9, "Reconciling", "Empty", 2, "no-members"),
        bumped(9, 3),
        {"s": 50, "event": "group_deleted", "cause": "unloaded"},
    ]
    found = explained(trace_of(tmp_path, rows))
    assert [(one.cause, one.lasted_us) for one in found.history.rebalances] == [
        ("new-member", 0),
        ("left", 0),
    ]
    assert names(found) == ["stopped"]
    assert found.history.ended is not None


def test_changes_of_subscriptions_and_topics_have_no_member_that_came_or_went(tmp_path: Path) -> None:
    updated = {"s": 12, "event": "member_updated", "member": "a", "member_id": "a-1", "generation": 6}
    rows = [*ROWS[:-1], updated, bumped(12, 7), target(12, 7), bumped(15, 8), target(15, 8), ROWS[-1]]
    history = explained(trace_of(tmp_path, rows)).history
    assert [(one.cause, one.culprit) for one in history.rebalances[-2:]] == [
        ("member-updated", "a"),
        ("heartbeat", ""),
    ]


def test_a_storm_whose_rows_say_when_it_is_stable(tmp_path: Path) -> None:
    """Four members are restarted: each leaves and comes back, and every rebalance has a culprit."""
    trace = storm(tmp_path / "run", "rolling-deploy", "consumer", {"members": 4, "partitions": 8})
    history = explained(trace).history
    assert [one.cause for one in history.rebalances] == ["left", "new-member"] * 4
    assert len({one.culprit for one in history.rebalances}) == 4
    assert all(one.ended_us is not None and one.lasted_us > 0 for one in history.rebalances)


def test_members_that_come_at_once_share_a_target(tmp_path: Path) -> None:
    """Kafka 4.3 computes targets at intervals, while members come."""
    trace = storm(tmp_path / "run", "cold-start", "consumer", {"members": 10, "partitions": 20})
    history = explained(trace).history
    epochs = [len(one.rounds) for one in history.rebalances]
    assert sum(epochs) == 10
    assert 1 < len(epochs) < 10


def test_epochs_alone_are_a_rebalance_each(tmp_path: Path) -> None:
    """A part of a broker's log may have no targets. Epochs of one second may share a rebalance."""
    rows = [IMPORTED, *(bumped(s, epoch) for epoch, s in enumerate((1, 100, 100.5, 200, 300), 2))]
    rows.append({"s": 900, "event": "member_updated", "member": "a", "member_id": "a-1", "generation": 6})
    history = explained(trace_of(tmp_path, rows)).history
    assert [(one.begun_us // 1000, len(one.rounds), one.lasted_us // 1000) for one in history.rebalances] == [
        (1_000, 1, 0),
        (100_000, 2, 500),
        (200_000, 1, 0),
        (300_000, 1, 0),
    ]
    assert history.is_consumer_group


def test_without_rows_of_epochs_a_state_begins_a_rebalance_with_its_own_cause(tmp_path: Path) -> None:
    """The row of the state gives the cause where no member came or went at that moment."""
    rows = [
        IMPORTED,
        added(1, "a", "a-1"),
        state(1, "Empty", "Stable", 2, "new-member"),
        state(30, "Stable", "Assigning", 3, "topic-metadata-changed"),
        state(31, "Assigning", "Stable", 3, "assigned"),
        added(60, "b", "b-1"),
        state(60, "Stable", "Reconciling", 4, "heartbeat"),
        state(62, "Reconciling", "Stable", 4, "reconciled"),
        {"s": 90, "event": "member_updated", "member": "a", "member_id": "a-1", "generation": 4},
    ]
    history = explained(trace_of(tmp_path, rows)).history
    found = [
        (one.begun_us // 1000, one.cause, one.culprit, one.lasted_us // 1000) for one in history.rebalances
    ]
    assert found == [(30_000, "topic-metadata-changed", "", 1_000), (60_000, "new-member", "b", 2_000)]


MAX_SURGE = """
name: surge
figures_from: warm_up_ms
settings:
  {group.protocol: consumer, members: 8, partitions: 16, deployment: deployment, max_surge: 2,
   max_unavailable: 0, start_ms: {exactly: 2s}, ready_ms: {exactly: 2s}, warm_up_ms: 60s}
steps: [{at_ms: 0, do: start}, {at_ms: 60s, do: rolling-restart}]
"""


def test_the_first_processes_of_a_wave_may_come_before_one_leaves(tmp_path: Path) -> None:
    """The group had formed when its figures begin to count."""
    found = explained(scenario_storm(tmp_path, MAX_SURGE))
    [wave] = [one for one in found.findings if one.pattern.name == "deploy-wave"]
    assert wave.match.sentence == (
        "8 members stopped and came back or were replaced, up to 2 at a time, in 1 wave (from 62.0 s on)."
    )
    assert wave.rebalances == found.history.rebalances


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        ("do: create-topic, topic: topic-new, partitions: 8", "metadata.max.age.ms bounds how long"),
        ("do: add-partitions, topic: topic-0, partitions: 16", "Nothing to turn: the coordinator sees"),
    ],
)
def test_clients_that_match_a_pattern_themselves_see_a_topic_when_their_metadata_are_old(
    tmp_path: Path, step: str, advice: str
) -> None:
    trace = scenario_storm(
        tmp_path,
        f"""
        name: pattern
        figures_from: warm_up_ms
        settings: {{group.protocol: consumer, members: 4, partitions: 12, topic_pattern: "topic-.*"}}
        steps: [{{at_ms: 0, do: start}}, {{at_ms: 62s, {step}}}]
        """,
    )
    found = explained(trace)
    [topics] = [one for one in found.findings if one.pattern.name == "topics-changed"]
    assert topics.rebalances == found.history.rebalances
    assert advice_for(topics, found.history).startswith(advice)
