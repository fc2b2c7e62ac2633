"""Members of the classic protocol in a consumer group: their timers, what their joins say, how they leave.

Kafka: GroupMetadataManager.classicGroupJoinToConsumerGroup, ...Sync..., ...Heartbeat..., ...Leave....
"""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroup, LeavingMember
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group


def test_a_member_that_has_joined_syncs_within_its_rebalance_timeout() -> None:
    group = Group()
    group.join("n")
    group.classic("slow", "t", rebalance=10_000)
    group.classic("fast", "t", rebalance=10_000)
    group.sync("fast")
    group.advance(9_999)
    assert group.of(events.MemberRemoved) == []
    group.advance(1)
    removed = [(one.member_id, one.cause) for one in group.of(events.MemberRemoved)]
    assert removed == [(group.id_of("slow"), "sync-timeout")]


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


def test_no_timer_of_the_consumer_group_hits_the_member_after_another_upgrade() -> None:
    """A classic static member takes the place of the last member of the new protocol."""
    group = Group()
    group.join("n", instance="i")
    group.classic("c", "t")
    group.settle()
    group.classic("c", "t")
    group.sync("c")
    back = group.classic("back", "t", instance="i", version=5).member_id
    group.advance(5_000)
    assert group.join("new").error is Error.NONE
    group.advance(5_000)
    assert group.of(events.MemberRemoved) == []
    assert back in group.group.members
