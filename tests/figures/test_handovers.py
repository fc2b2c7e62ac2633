"""When a partition left its old owner and came to its new one, by the coordinator's rows."""

from __future__ import annotations

from groupstorm.history.coordinator_view import Handover, Handovers
from groupstorm.trace.events.coordinator import MemberReconciled, MemberRemoved


def _has(member: str, *partitions: str, revoking: tuple[str, ...] = ()) -> MemberReconciled:
    return MemberReconciled("g", member, f"{member}-id", 2, "STABLE", partitions, revoking)


def test_a_partition_that_its_owner_gives_up_is_released_when_it_is_told_and_nobody_expired() -> None:
    handovers = Handovers()
    handovers.reconciled(10, _has("a", "t-0"))
    handovers.reconciled(20, _has("a", revoking=("t-0",)))
    handovers.reconciled(30, _has("a"))
    handovers.reconciled(40, _has("b", "t-0"))
    assert handovers.of("t-0", 25, "b", False) == Handover(30, False, 40)
    assert handovers.of("t-0", 35, "b", False) == Handover(35, False, 40)
    assert handovers.of("t-0", 41, "b", False) is None
    assert handovers.of("t-0", 25, "a", False) is None


def test_only_a_member_whose_session_ended_has_expired() -> None:
    for cause, expired in (("session-expired", True), ("left", False)):
        handovers = Handovers()
        handovers.reconciled(10, _has("a", "t-0"))
        handovers.removed(50, MemberRemoved("g", "a", "a-id", None, 2, cause))
        handovers.reconciled(60, _has("b", "t-0"))
        assert handovers.of("t-0", 15, "b", False) == Handover(50, expired, 60)
