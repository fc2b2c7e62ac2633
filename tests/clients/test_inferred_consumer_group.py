"""The coordinator's events of a consumer group, inferred from its members' heartbeats."""

from __future__ import annotations

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from tests.clients.inferred import Group


def shared() -> Group:
    """A group whose members a and b have a partition each, at epoch 3."""
    group = Group()
    group.beat("a", 0, 2, [0, 1], [])
    group.beat("a", 2, 2, owned=[0, 1])
    group.beat("b", 0, 3, [], [])
    group.beat("a", 2, 2, [0])
    group.beat("a", 2, 3, owned=[0])
    group.beat("b", 3, 3, [1])
    return group


def test_the_first_member_makes_the_group_stable() -> None:
    group = Group()
    assert group.beat("a", 0, 2, [0, 1], []) == [
        "MemberAdded",
        "GroupEpochBumped",
        "TargetAssigned",
        "MemberReconciled",
        "Stable 2",
    ]
    assert group.beat("a", 2, 2, owned=[0, 1]) == []


def test_a_handover_is_told_step_by_step() -> None:
    group = Group()
    group.beat("a", 0, 2, [0, 1], [])
    group.beat("a", 2, 2, owned=[0, 1])
    assert group.beat("b", 0, 3, [], [])[-1] == "Reconciling 3"
    assert group.beat("a", 2, 2, [0]) == ["MemberReconciled"]
    progress = group.of(events.MemberReconciled)[-1]
    assert progress == events.MemberReconciled(
        "g", "a", "id-a", 2, "UNREVOKED_PARTITIONS", ("t-0",), ("t-1",)
    )
    assert group.beat("a", 2, 3, owned=[0]) == ["MemberReconciled"]
    assert group.beat("b", 3, 3, [1]) == ["MemberReconciled", "Stable 3"]


def test_a_member_that_leaves_makes_the_group_assign() -> None:
    group = shared()
    assert group.beat("b", -1, -1) == ["MemberRemoved", "GroupEpochBumped", "Assigning 4"]
    assert group.beat("a", 3, 4, [0, 1])[-1] == "Stable 4"
    assert group.beat("a", -1, -1)[-1] == "Empty 5"


def test_a_dead_process_is_removed_when_the_epoch_counts_up_by_itself() -> None:
    group = shared()
    group.inferred.member_gone("b")
    assert group.beat("a", 3, 3) == []
    group.beat("a", 3, 4, [0, 1])
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "session-expired")


def test_a_fenced_member_is_removed_and_joins_again() -> None:
    group = shared()
    assert "MemberRemoved" in group.beat("b", 3, 0, error=Error.UNKNOWN_MEMBER_ID)
    assert "MemberAdded" in group.beat("b", 0, 5, [], [])


def test_a_lost_connection_and_other_errors_tell_nothing() -> None:
    group = shared()
    assert group.beat("a", 3, 0, error=Error.COORDINATOR_LOAD_IN_PROGRESS) == []
    group.told()
    group.inferred.response_received(group.sends("a", 3), Disconnected())
    assert group.told() == []


def test_a_partition_is_given_up_before_it_is_given_on_whichever_response_comes_first() -> None:
    group = Group()
    group.beat("a", 0, 2, [0, 1], [])
    group.beat("a", 2, 2, owned=[0, 1])
    group.beat("b", 0, 3, [], [])
    group.beat("a", 2, 2, [0])
    group.sends("a", 2, [0])
    assert group.beat("b", 3, 3, [1]) == ["MemberReconciled", "MemberReconciled"]
    first, second = group.of(events.MemberReconciled)[-2:]
    assert first == events.MemberReconciled("g", "a", "id-a", 2, "STABLE", ("t-0",), ())
    assert second == events.MemberReconciled("g", "b", "id-b", 3, "STABLE", ("t-1",), ())
    assert group.beat("a", 2, 3, owned=[0]) == ["MemberReconciled", "Stable 3"]


def test_a_member_has_left_before_its_partitions_are_given_on_whichever_response_comes_first() -> None:
    group = shared()
    group.sends("b", -1)
    names = group.beat("a", 3, 4, [0, 1])
    assert names.index("MemberRemoved") < names.index("MemberReconciled")
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "left")
    assert group.beat("b", -1, -1) == []


def test_a_member_whose_response_to_its_leave_is_lost_is_removed_with_the_next_epoch() -> None:
    group = shared()
    group.inferred.response_received(group.sends("b", -1), Disconnected())
    names = group.beat("a", 3, 4, [0, 1])
    assert names.index("MemberRemoved") < names.index("MemberReconciled")


def test_a_member_whose_partitions_another_gets_has_lost_its_session() -> None:
    group = shared()
    names = group.beat("a", 3, 4, [0, 1])
    assert names[:2] == ["MemberRemoved", "GroupEpochBumped"]
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "session-expired")
    assert group.beat("b", 3, 0, error=Error.UNKNOWN_MEMBER_ID) == []


def test_a_member_is_removed_if_others_reached_the_epoch_before_they_get_its_partitions() -> None:
    group = shared()
    group.beat("c", 0, 4, [], [])
    group.beat("a", 3, 5)
    assert "MemberRemoved" not in group.beat("c", 4, 5)
    assert group.beat("c", 5, 5, [1])[0] == "MemberRemoved"
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 5, "session-expired")


def test_what_a_heartbeat_gives_up_may_have_arrived_although_its_response_is_lost() -> None:
    group = Group()
    group.beat("a", 0, 2, [0, 1], [])
    group.beat("a", 2, 2, owned=[0, 1])
    group.beat("b", 0, 3, [], [])
    group.beat("a", 2, 2, [0])
    group.inferred.response_received(group.sends("a", 2, [0]), Disconnected())
    assert group.beat("b", 3, 3, [1]) == ["MemberReconciled", "MemberReconciled"]
