"""The coordinator's events of a group that migrates, inferred from its members' requests and responses."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from tests.clients.inferred import Group


def alone(*, downgrades: bool = True) -> Group:
    """b has left a classic group: a has both partitions, in generation 2."""
    group = Group(downgrades=downgrades)
    group.join("a", 1, "a", members=("a", "b"))
    group.join("b", 1, "a")
    group.sync("a", 1, 0)
    group.sync("b", 1, 1)
    group.leave("b")
    group.join("a", 2, "a", owned=(0,), members=("a",))
    group.sync("a", 2, 0, 1)
    assert group.told()[-2:] == ["Stable 2", "SyncAnswered"]
    return group


def upgraded(*, downgrades: bool = True) -> Group:
    """c has come to it with the new protocol: a has t-0, c has t-1, at epoch 3."""
    group = alone(downgrades=downgrades)
    group.beat("c", 0, 3, (), ())
    group.join("a", 2, owned=(0, 1))
    group.sync("a", 2, 0)
    group.join("a", 3, owned=(0,))
    group.sync("a", 3, 0)
    group.beat("c", 3, 3, (1,))
    return group


def test_a_classic_member_gives_a_partition_up_before_the_new_one_has_it() -> None:
    group = upgraded()
    held = group.of(events.MemberReconciled)
    assert [(event.member, event.generation, event.partitions) for event in held] == [
        ("c", 3, ()),
        ("a", 2, ("t-0", "t-1")),
        ("a", 2, ("t-0",)),
        ("a", 3, ("t-0",)),
        ("c", 3, ("t-1",)),
    ]
    assert group.told()[-1] == "Stable 3"


def test_a_joingroup_that_has_no_response_yet_gives_partitions_up() -> None:
    """An eager member owns nothing when it joins."""
    group = alone()
    group.beat("c", 0, 3, (), ())
    group.join("a", 2, owned=(0, 1))
    group.emitted.clear()
    group.asks("a")
    group.beat("c", 3, 3, (1,))
    assert [(event.member, event.partitions) for event in group.of(events.MemberReconciled)] == [
        ("a", ()),
        ("c", ("t-1",)),
    ]


def test_the_last_member_of_the_new_protocol_leaves_and_the_others_rebalance() -> None:
    group = upgraded()
    group.told()
    group.beat("c", -1, -1)
    assert group.told() == ["MemberRemoved", "downgraded 3", "PreparingRebalance 3"]
    group.join("a", 4, "a", owned=(0,), members=("a",))
    group.sync("a", 4, 0, 1)
    assert group.told() == ["CompletingRebalance 4", "JoinAnswered", "Stable 4", "SyncAnswered"]


def test_without_a_policy_that_allows_it_the_group_stays_a_consumer_group() -> None:
    group = upgraded(downgrades=False)
    group.told()
    group.beat("c", -1, -1)
    assert group.told() == ["MemberRemoved", "GroupEpochBumped", "Assigning 4"]
    group.join("a", 4, owned=(0,))
    group.sync("a", 4, 0, 1)
    assert group.told()[-2:] == ["Stable 4", "SyncAnswered"]


def test_a_leader_in_a_response_says_that_the_members_of_the_new_protocol_are_gone() -> None:
    """Nobody told that c's session has expired."""
    group = upgraded()
    group.told()
    group.heartbeat("a", 3, Error.REBALANCE_IN_PROGRESS)
    assert group.told() == []
    group.join("a", 4, "a", owned=(0,), members=("a",))
    assert group.told() == [
        "MemberRemoved", "downgraded 3", "PreparingRebalance 3", "CompletingRebalance 4", "JoinAnswered",
    ]  # fmt: skip


def test_a_static_member_takes_the_place_of_the_last_one_without_a_rebalance() -> None:
    group = Group()
    group.join("a", 1, "a", instance="i", members=("a",))
    group.sync("a", 1, 0, 1)
    group.beat("a2", 0, 1, (0, 1), (), instance="i")
    assert group.told()[-3:] == ["upgraded 1", "MemberReplaced", "MemberReconciled"]
    group.beat("b", 0, 2, (), (), instance="j")
    group.beat("b", -2, -2, instance="j")
    group.told()
    group.join("b2", 2, instance="j")
    assert group.told()[0] == "MemberReplaced"
    group.join("a3", 2, instance="i")
    assert group.told() == ["MemberReplaced", "downgraded 2", "Stable 2", "JoinAnswered"]


def test_members_that_are_out_are_removed() -> None:
    group = upgraded()
    group.told()
    group.heartbeat("a", 3, Error.UNKNOWN_MEMBER_ID)
    assert group.told()[0] == "MemberRemoved"
    group = upgraded()
    group.told()
    group.leave("a")
    assert group.told() == ["MemberRemoved", "GroupEpochBumped", "Assigning 4"]


def test_a_group_without_members_becomes_one_of_the_other_kind() -> None:
    group = upgraded()
    group.leave("a")
    group.beat("c", -1, -1)
    group.told()
    group.join("d", 1, "d", members=("d",))
    assert group.told()[0] == "GroupCreated"
    group.leave("d")
    group.told()
    group.beat("e", 0, 2, (0, 1), ())
    assert group.told()[:2] == ["GroupCreated", "MemberAdded"]
