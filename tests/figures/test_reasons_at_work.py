"""Why partitions were un-owned: callbacks, members that work on a batch, and traces that end meanwhile."""

from __future__ import annotations

import pytest

from groupstorm.figures.reasons import gap_sentence
from groupstorm.history.phases import Reason
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from tests.figures.gap_rows import G, Row, assigned, divided, ended, in_seconds, joined, revoked, state


def told(member: str) -> member_events.RejoinRequested:
    return member_events.RejoinRequested(G, member, member, 1, "group-rebalancing")


def lasting(row: member_events.Event, seconds: float) -> member_events.Event:
    return row._replace(duration_us=int(seconds * 1_000_000))  # type: ignore[call-arg]


def test_an_eager_group_that_drains_its_work_waits_for_callbacks() -> None:
    """b closes at 10 s and works until 15 s; a learns of the round at 17 s, works until 22 s, and takes both
    with a callback of 2 s. p1 waits for a, whose work is most of the join phase."""
    found = divided(
        (10, lasting(revoked("b", "close", "p1"), 5)),
        (15, state("PreparingRebalance", "left")),
        (17, told("a")),
        (17, lasting(revoked("a", "rebalance", "p0"), 5)),
        (22, joined("a")),
        *ended(22),
        (24, lasting(assigned("a", "p0", "p1"), 2)),
    )
    assert in_seconds(found) == {Reason.CALLBACK: (5 + 2) + (5 + 2), Reason.SLOW: 7}
    assert found.slowest == ("a", 7_000_000)
    assert found.longest is not None
    assert "the time went to rebalance callbacks" in gap_sentence(found.longest)


@pytest.mark.parametrize(("joined_s", "reason"), [(12.5, Reason.REJOIN), (16, Reason.SLOW)])
def test_a_join_phase_waits_for_a_batch_if_members_have_been_told_for_most_of_it(
    joined_s: float, reason: Reason
) -> None:
    """a is told of the round at 12 s, and polls at 12.5 s, or after its batch."""
    found = divided(
        (10, revoked("b", "close", "p1")),
        (10, state("PreparingRebalance", "left")),
        (11, told("c")),
        (11, joined("c")),
        (12, told("a")),
        (joined_s, joined("a")),
        *ended(joined_s),
        (joined_s, assigned("c", "p1")),
    )
    assert in_seconds(found) == {reason: joined_s - 10}


@pytest.mark.parametrize("row_s", [18, 20])
def test_an_assignor_runs_with_the_leader_s_next_poll(row_s: float) -> None:
    """The leader works on a batch until 18 s; its assignor takes 2 s. The row comes before them or behind."""
    computed = member_events.AssignmentComputed(G, "a", "a", 2, "range", 2_000_000, 2)
    found = divided(
        (10, revoked("b", "close", "p1")),
        (10, state("PreparingRebalance", "left")),
        (12, state("CompletingRebalance", "all-joined")),
        (row_s, computed),
        (20, state("Stable", "assigned")),
        (23, assigned("c", "p1")),
    )
    waits = {Reason.REJOIN: 2, Reason.LEADER_POLL: 6, Reason.ASSIGN: 2, Reason.NEXT_POLL: 3}
    assert in_seconds(found) == waits


_CRASH = (12, member_events.MemberCrashed(G, "a", "a", 1, ("p0",), (), ()))
_SILENT = (12, member_events.MemberClosed(G, "a", "a", "silent"))
_ROUND = (11, state("PreparingRebalance", "new-member"))


@pytest.mark.parametrize(
    ("rows", "end_s", "expected"),
    [
        ([_ROUND], 15, {Reason.REJOIN: 4}),
        ([_ROUND], 41, {Reason.SLOW: 30}),
        ([_ROUND, _CRASH], 41, {Reason.SESSION: 30 + 29}),
        ([_ROUND, _SILENT], 41, {Reason.SESSION: 30}),
        ([(11, state("Empty", "no-members")), _ROUND], 15, {Reason.INITIAL_DELAY: 4}),
    ],
)
def test_a_trace_that_ends_in_a_join_phase_waits_for_who_has_not_joined(
    rows: list[Row], end_s: float, expected: dict[Reason, float]
) -> None:
    found = divided((11, revoked("b", "rebalance", "p1")), *rows, end_s=end_s)
    assert in_seconds(found) == expected
    assert found.longest is not None
    assert ("waits for one that has not joined" in gap_sentence(found.longest)) == (Reason.SLOW in expected)


def test_a_static_member_that_is_back_waits_for_its_coordinator_and_not_for_its_process() -> None:
    """The coordinator fails over; the process has begun at 30 s."""
    found = divided(
        (10, revoked("a", "close", "p0")),
        (30, member_events.MemberStarted(G, "a", "a", ("t",))),
        (130, events.MemberReplaced(G, "a", "a-2", "a", "a", 1)),
        (130, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.RESTART: 20, Reason.COORDINATOR: 100}
