"""Members of the classic protocol in a consumer group: their timers, what their joins say, how they leave.

Kafka: GroupMetadataManager.classicGroupJoinToConsumerGroup, ...Sync..., ...Heartbeat..., ...Leave....
"""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import decode_assignment
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroup, LeavingMember
from groupstorm.coordinator.script.clients import topic_uuid
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group, group_state

T = topic_uuid("t")


def mixed(**options: int) -> Group:
    """n speaks the new protocol, c the classic one; each has its two partitions of four."""
    group = Group(**options)
    group.join("n")
    group.classic("c", "t")
    group.beat("n", owned={"t": [0, 1, 2, 3]})
    group.beat("n", owned={"t": [0, 1]})
    group.classic("c", "t")
    assert group.sync("c").error is Error.NONE
    assert group.group.state == "Stable"
    return group


def removed(group: Group) -> list[tuple[str, str]]:
    return [(one.member_id, one.cause) for one in group.of(events.MemberRemoved)]


def classic_group(group: Group) -> ClassicGroup:
    classic = group.classic_group
    assert classic is not None
    return classic


def test_a_member_that_has_joined_syncs_within_its_rebalance_timeout() -> None:
    group = Group()
    group.join("n")
    group.classic("slow", "t", rebalance=10_000)
    group.classic("fast", "t", rebalance=10_000)
    group.sync("fast")
    group.advance(9_999)
    assert removed(group) == []
    group.advance(1)
    assert removed(group) == [(group.id_of("slow"), "sync-timeout")]


def test_a_member_that_is_told_to_join_does_so_within_its_rebalance_timeout_of_the_first_time() -> None:
    group = mixed()
    group.join("m")
    assert group.heartbeat("c") is Error.REBALANCE_IN_PROGRESS
    group.advance(6_000)
    assert group.heartbeat("c") is Error.REBALANCE_IN_PROGRESS
    group.advance(3_999)
    assert removed(group) == []
    group.advance(1)
    assert removed(group) == [(group.id_of("c"), "join-timeout")]


def test_a_sync_tells_a_member_to_join_as_well() -> None:
    group = mixed()
    group.join("m")
    assert group.sync("c").error is Error.REBALANCE_IN_PROGRESS
    group.advance(9_999)
    group.classic("c", "t", owned={"t": [2, 3]})
    group.sync("c")
    group.advance(10_000)
    assert removed(group) == [], "it has joined and synced in time"
    group.join("o")
    group.sync("c")
    group.advance(10_000)
    assert removed(group) == [(group.id_of("c"), "join-timeout")]


def test_what_a_join_leaves_out_stays_as_it_was() -> None:
    group = Group()
    group.join("n")
    group.classic("c", "t", rack="r1", rebalance=20_000)
    group.classic("c", "t", rebalance=-1)
    member = group.group.members[group.id_of("c")]
    assert (member.rack, member.rebalance_timeout_ms) == ("r1", 20_000)
    group.classic("c", "u", rack="r2", rebalance=30_000)
    member = group.group.members[group.id_of("c")]
    assert (member.rack, member.rebalance_timeout_ms, member.topics) == ("r2", 30_000, frozenset({"u"}))


def test_members_of_either_protocol_leave_by_id_or_by_instance() -> None:
    group = Group()
    group.join("n", instance="i")
    group.classic("c", "t", instance="j", version=5)
    wanted = (("other", "i"), ("", "none"), ("", None), ("n", None), ("", "j"))
    leaving = tuple(LeavingMember(*one) for one in wanted)
    answer = group.send(LeaveGroup("g", leaving, 5))
    assert [tuple(one) for one in answer.members] == [
        ("other", "i", Error.FENCED_INSTANCE_ID),
        ("", "none", Error.UNKNOWN_MEMBER_ID),
        ("", None, Error.UNKNOWN_MEMBER_ID),
        ("n", None, Error.NONE),
        ("", "j", Error.NONE),
    ]
    assert group.group.state == "Empty"
    nobody = group.send(LeaveGroup("g", (LeavingMember("n", "i"),), 5))
    assert [one.error for one in nobody.members] == [Error.UNKNOWN_MEMBER_ID]


def test_nothing_of_members_that_have_gone_is_left_to_expire() -> None:
    group = mixed()
    group.join("m")
    group.beat("n", owned={"t": [0, 1]})  # has to give a partition up
    group.heartbeat("c")  # has to join
    group.classic("d", "t")  # has to sync
    leaving = tuple(LeavingMember(one) for one in ("n", "m", group.id_of("c"), group.id_of("d")))
    group.send(LeaveGroup("g", leaving, 5))
    assert group.group.state == "Empty"
    assert group.driver.coordinator.next_deadline() is None


@pytest.mark.parametrize(
    ("who", "sync_error"),
    [
        ({}, Error.NONE),
        ({"generation": "$+1"}, Error.ILLEGAL_GENERATION),
        ({"generation": "$-1"}, Error.ILLEGAL_GENERATION),
        ({"type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "sticky"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"type": None, "protocol": None}, Error.NONE),
        ({"member": "n"}, Error.UNKNOWN_MEMBER_ID),  # speaks the other protocol
    ],
)
def test_what_a_sync_has_to_say(who: dict[str, object], sync_error: Error) -> None:
    group = mixed()
    answer = group.sync("c", **who)
    assert answer.error is sync_error
    if sync_error is Error.NONE:
        assert [str(one) for one in decode_assignment(answer.assignment).partitions] == ["t-2", "t-3"]


# a classic static member takes the place of the last member of the new protocol


def with_last_static_member(**options: int) -> Group:
    """c is a classic member, n a static one of the new protocol; each has two partitions."""
    group = Group(**options)
    group.join("n", instance="i")
    group.classic("c", "t")
    group.settle()
    group.classic("c", "t")
    group.sync("c")
    return group


def test_the_group_goes_on_without_a_rebalance_if_its_targets_are_up_to_date() -> None:
    group = with_last_static_member()
    epoch = group.group.epoch
    target = {name: sorted(numbers) for name, numbers in group.group.target("n").items()}
    joined = group.classic("back", "t", instance="i", version=5)
    assert (joined.error, joined.generation) == (Error.NONE, epoch)
    classic = classic_group(group)
    assert (classic.state.value, classic.generation, classic.protocol) == ("Stable", epoch, "range")
    assert set(classic.members) == {group.id_of("c"), joined.member_id}
    [replaced] = group.of(events.MemberReplaced)
    assert (replaced.member_id, replaced.previous_member_id, replaced.instance) == (
        joined.member_id,
        "n",
        "i",
    )
    assert [(one.generation, one.cause) for one in group.of(events.GroupConverted)] == [(epoch, "downgraded")]
    synced = decode_assignment(group.sync("back").assignment).partitions
    assert [(one.topic, one.partition) for one in synced] == [("t", number) for number in target[T]]


def test_the_group_rebalances_if_its_targets_are_behind() -> None:
    group = with_last_static_member(**{"group.consumer.assignment.interval.ms": 10_000})
    group.advance(10_000)
    group.join("n", instance="i", epoch=group.group.members["n"].epoch, topics=["t"], owned="$")
    group.classic("c", "u")  # now the targets have just been computed
    joined = group.classic("back", "t", "u", instance="i", version=5)
    assert joined.error is Error.NONE
    assert classic_group(group).state.value == "PreparingRebalance"
    [change] = [one for one in group.of(events.GroupStateChanged) if one.state == "PreparingRebalance"]
    assert (change.previous_state, change.cause) == ("Stable", "downgraded")


def test_no_timer_of_the_consumer_group_hits_the_member_after_another_upgrade() -> None:
    group = with_last_static_member()
    back = group.classic("back", "t", instance="i", version=5).member_id
    group.advance(5_000)
    assert group.join("new").error is Error.NONE
    group.advance(5_000)
    assert removed(group) == []
    assert back in group.group.members


def test_a_join_that_no_group_takes_is_refused_and_changes_nothing() -> None:
    group = mixed()
    before = group_state(group.group)
    assert group.classic("late", "t", session=1_000).error is Error.INVALID_SESSION_TIMEOUT
    assert group_state(group.group) == before
