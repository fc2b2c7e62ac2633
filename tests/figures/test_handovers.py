"""When a partition left its old owner and came to its new one, by the coordinator's rows."""

from __future__ import annotations

import pytest

from groupstorm.history.coordinator_view import Handover, Handovers
from groupstorm.history.phases import Reason
from groupstorm.trace.events.coordinator import GroupStateChanged, MemberReconciled, MemberRemoved
from groupstorm.trace.events.scenario import ScenarioEnded, ScenarioStarted
from groupstorm.trace.rows import TracedEvent
from tests.figures.gap_rows import G, assigned, in_seconds, of_rows, revoked


def _has(member: str, *partitions: str, revoking: tuple[str, ...] = ()) -> MemberReconciled:
    return MemberReconciled(G, member, f"{member}-id", 2, "STABLE", partitions, revoking)


def _removed(member: str, cause: str) -> MemberRemoved:
    return MemberRemoved(G, member, f"{member}-id", None, 2, cause)


def _state(before: str, name: str, cause: str) -> GroupStateChanged:
    return GroupStateChanged(G, before, name, 2, cause, None, None, None, 2)


#: A consumer group in which a and b own p0 and p1 from 1 s on.
_FORMED: list[tuple[float, TracedEvent]] = [
    (0, ScenarioStarted(G, "{}", ("p0", "p1"), 0, 1)),
    (1, _state("Empty", "Reconciling", "heartbeat")),
    (1, _has("a", "p0")),
    (1, assigned("a", "p0")),
    (1, _has("b", "p1")),
    (1, assigned("b", "p1")),
    (1, _state("Reconciling", "Stable", "heartbeat")),
]


def test_a_partition_that_its_owner_gives_up_is_released_when_it_is_told_and_nobody_expired() -> None:
    handovers = Handovers()
    handovers.reconciled(10, _has("a", "t-0"))
    handovers.reconciled(20, _has("a", revoking=("t-0",)))
    handovers.reconciled(30, _has("a"))
    handovers.reconciled(40, _has("b", "t-0"))
    assert handovers.of("t-0", 25, 99, "b", False) == Handover(30, False, [(40, 99, False)])
    assert handovers.of("t-0", 35, 99, "b", False) == Handover(35, False, [(40, 99, False)])
    assert handovers.of("t-0", 41, 99, "b", False) is None
    assert handovers.of("t-0", 25, 99, "a", False) is None


def test_only_a_member_whose_session_ended_has_expired() -> None:
    for cause, expired in (("session-expired", True), ("left", False)):
        handovers = Handovers()
        handovers.reconciled(10, _has("a", "t-0"))
        handovers.removed(50, _removed("a", cause))
        handovers.reconciled(60, _has("b", "t-0"))
        assert handovers.of("t-0", 15, 99, "b", False) == Handover(50, expired, [(60, 99, False)])


def test_nobody_is_silent_if_the_only_member_that_reads_a_topic_leaves() -> None:
    found = of_rows(
        *_FORMED,
        (10, revoked("a", "close", "p0")),
        (11, _removed("a", "left")),
        (11, _state("Stable", "Assigning", "left")),
        (12, _state("Assigning", "Stable", "heartbeat")),
        (30, ScenarioEnded(G)),
    )
    assert in_seconds(found) == {Reason.REVOCATION: 1, Reason.LEFT_OUT: 19}


def test_a_partition_waits_for_the_session_of_its_owner_though_a_member_gets_it_and_goes() -> None:
    """The LeaveGroup of ``a`` finds no coordinator."""
    found = of_rows(
        *_FORMED,
        (10, revoked("a", "close", "p0")),
        (55, _removed("a", "session-expired")),
        (56, _has("c", "p0")),
        (57, _removed("c", "left")),
        (60, _has("b", "p0", "p1")),
        (61, assigned("b", "p0")),
    )
    expected = {Reason.BROKER_SESSION: 45, Reason.NEXT_HEARTBEAT: 4, Reason.NEXT_POLL: 2}
    assert in_seconds(found) == expected


def test_a_partition_waits_for_the_session_of_a_member_that_dies_before_it_takes_it() -> None:
    found = of_rows(
        *_FORMED,
        (10, revoked("a", "close", "p0")),
        (11, _removed("a", "left")),
        (12, _has("c", "p0")),
        (57, _removed("c", "session-expired")),
        (60, _has("b", "p0", "p1")),
        (61, assigned("b", "p0")),
    )
    waits = {Reason.REVOCATION: 1, Reason.NEXT_HEARTBEAT: 4, Reason.BROKER_SESSION: 45, Reason.NEXT_POLL: 1}
    assert in_seconds(found) == waits


def test_a_partition_waits_for_a_member_that_has_to_give_up_others_first_or_that_is_dead() -> None:
    """The broker means the partition for it, and grants it nothing more. Heartbeats come within seconds."""
    gone = ((10, revoked("a", "close", "p0")), (11, _removed("a", "left")))
    taken = ((62, _has("b", "p0")), (63, assigned("b", "p0")))
    slow = _has("c", revoking=("p2",))
    for holder, reason in (
        (((9, slow), (60, _has("c"))), Reason.REVOCATION),
        (((9, slow), (60, _removed("c", "left"))), Reason.REVOCATION),
        (((60, _removed("c", "session-expired")),), Reason.BROKER_SESSION),
        (((9, slow), (30, _has("c"))), Reason.NEXT_HEARTBEAT),
    ):
        found = of_rows(*_FORMED, *sorted((*gone, *holder, *taken), key=lambda row: row[0]))
        waited = in_seconds(found)
        assert waited[Reason.NEXT_HEARTBEAT] + waited[reason] >= 51
        assert (waited[Reason.NEXT_HEARTBEAT] == 2) == (reason is not Reason.NEXT_HEARTBEAT)


@pytest.mark.parametrize("end_s", [13, 30])
def test_nobody_is_silent_if_the_trace_ends_while_the_new_owner_is_on_its_way(end_s: int) -> None:
    left = ((10, revoked("a", "close", "p0")), (11, _removed("a", "left")))
    granted = ((14, _has("b", "p0", "p1")), (14, _state("Reconciling", "Stable", "heartbeat")))
    rows = *_FORMED, *left, (11, _state("Stable", "Reconciling", "left")), *granted
    found = of_rows(*[row for row in rows if row[0] <= end_s], (end_s, ScenarioEnded(G)))
    taken = {Reason.NEXT_HEARTBEAT: 3, Reason.NEXT_POLL: 16} if end_s == 30 else {Reason.NEXT_HEARTBEAT: 2}
    assert in_seconds(found) == {Reason.REVOCATION: 1, **taken}
