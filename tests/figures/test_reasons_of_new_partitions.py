"""Why new partitions have no owner yet: nobody has seen them, or a leader is back and does not assign."""

from __future__ import annotations

import pytest

from groupstorm.figures.reasons import gap_sentence
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import Reasons
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from tests.figures.gap_rows import G, Row, assigned, divided, in_seconds, of_rows, state

STARTED = world_events.ScenarioStarted(G, "{}", ("p0", "p1"), 0, 1)
CREATED = world_events.PartitionsCreated(G, ("t",), ("p2",))
#: A round, so that the group's leader is known.
LED_BY_A: list[Row] = [
    (2, state("PreparingRebalance", "member-updated")),
    (2, state("CompletingRebalance", "all-joined")._replace(leader="a-1")),
    (2, state("Stable", "assigned")),
]


def back(member: str) -> events.MemberReplaced:
    return events.MemberReplaced(G, member, f"{member}-2", f"{member}-1", member, 1)


def grown(*rows: Row) -> Reasons:
    return divided(*LED_BY_A, *sorted([(10, CREATED), *rows], key=lambda row: row[0]), end_s=100)


@pytest.mark.parametrize(
    ("member", "at_s", "expected"),
    [
        ("a", 30, {Reason.METADATA: 20, Reason.STATIC_LEADER: 70}),
        ("a", 5, {Reason.METADATA: 90}),  # it sees what is created later
        ("a", 10, {Reason.STATIC_LEADER: 90}),  # the row of the creation comes first
        ("b", 30, {Reason.METADATA: 90}),
    ],
)
def test_a_leader_that_came_back_after_they_were_created_does_not_assign_them(
    member: str, at_s: float, expected: dict[Reason, float]
) -> None:
    assert in_seconds(grown((at_s, back(member)))) == expected


def test_the_next_round_assigns_them() -> None:
    found = grown(
        (30, back("a")),
        (60, state("PreparingRebalance", "new-member")),
        (61, state("CompletingRebalance", "all-joined")._replace(leader="a-2")),
        (62, state("Stable", "assigned")),
        (63, assigned("a", "p2")),
    )
    assert in_seconds(found) == {
        Reason.METADATA: 20,
        Reason.STATIC_LEADER: 30,
        Reason.REJOIN: 1,
        Reason.ASSIGN: 1,
        Reason.NEXT_POLL: 1,
    }
    assert found.longest is not None
    assert gap_sentence(found.longest).endswith(
        "the time went to a static leader that is back and does not assign until the next round (KIP-814); "
        "a took it"
    )


@pytest.mark.parametrize(("seen_s", "reason"), [(20, Reason.LEFT_OUT), (8, Reason.METADATA)])
def test_an_assignor_leaves_out_what_its_leader_had_seen(seen_s: float, reason: Reason) -> None:
    """p2 is created at 10 s. The round from 21 s on does not bring it, the one from 60 s on does."""
    rejoin = member_events.RejoinRequested(G, "a", "a-1", 1, "metadata-changed")
    rounds = [
        (at_s + after_s, one._replace(leader="a-1"))
        for at_s in (21, 60)
        for after_s, one in (
            (0, state("PreparingRebalance", "member-updated")),
            (1, state("CompletingRebalance", "all-joined")),
            (2, state("Stable", "assigned")),
        )
    ]
    found = grown((seen_s, rejoin), *rounds, (63, assigned("a", "p2")))
    expected = {Reason.METADATA: 11, Reason.REJOIN: 2, Reason.ASSIGN: 2, Reason.NEXT_POLL: 1}
    expected[reason] = expected.get(reason, 0) + 37
    assert in_seconds(found) == expected


def test_a_second_return_of_the_same_leader_changes_nothing() -> None:
    again = back("a")._replace(member_id="a-3", previous_member_id="a-2")
    found = grown((30, back("a")), (50, again))
    assert in_seconds(found) == {Reason.METADATA: 20, Reason.STATIC_LEADER: 70}


def test_a_group_of_which_no_round_is_known_has_no_leader_that_is_back() -> None:
    found = of_rows((0, STARTED), (0, assigned("a", "p0", "p1")), (0, CREATED), (10, assigned("a", "p2")))
    assert found.us.keys().isdisjoint({Reason.STATIC_LEADER})
    assert sum(found.us.values()) == 10_000_000


@pytest.mark.parametrize(
    ("updated_s", "expected"),
    [
        (None, {Reason.NEXT_HEARTBEAT: 84, Reason.NEXT_POLL: 1}),  # the broker knows a topic that all name
        (5, {Reason.NEXT_HEARTBEAT: 84, Reason.NEXT_POLL: 1}),
        (90, {Reason.METADATA: 80, Reason.NEXT_HEARTBEAT: 4, Reason.NEXT_POLL: 1}),
    ],
)
def test_in_a_consumer_group_the_heartbeat_is_waited_for_once_a_member_subscribes_to_the_topic(
    updated_s: float | None, expected: dict[Reason, float]
) -> None:
    """p2 is created at 10 s; its owner is told at 94 s, and takes it at 95 s."""
    rows: list[Row] = [
        (94, events.MemberReconciled(G, "a", "a", 2, "STABLE", ("p0", "p2"), ())),
        (95, assigned("a", "p2")),
    ]
    if updated_s is not None:
        rows.append((updated_s, events.MemberUpdated(G, "b", "b", 2)))
    assert in_seconds(grown(*rows)) == expected
