"""The coordinator's events of a classic group, inferred from its members' requests and responses."""

from __future__ import annotations

from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Heartbeat
from groupstorm.trace.events import coordinator as events
from tests.clients.inferred import Group


def of_two() -> Group:
    """a leads, b follows, generation 1 is Stable."""
    group = Group()
    group.given_id("a")
    a = group.asks("a")
    group.given_id("b")
    b = group.asks("b")
    group.joined(a, 1, "a", ["a", "b"])
    group.joined(b, 1, "a")
    group.sync("a", 1, 0)
    group.sync("b", 1, 1)
    return group


STABLE_1 = [
    ("PreparingRebalance", 0, "pending-member"),
    ("CompletingRebalance", 1, "initial-delay"),
    ("Stable", 1, "assigned"),
]


def test_first_round() -> None:
    group = of_two()
    assert group.states == STABLE_1
    completing = group.of(events.GroupStateChanged)[1]
    assert (completing.leader, completing.protocol) == ("id-a", "range")
    assert [event.member for event in group.of(events.MemberAdded)] == ["a", "b"]
    assert [event.partitions for event in group.of(events.SyncAnswered)] == [("t-0",), ("t-1",)]


def test_new_member_opens_a_round_and_others_notice_later() -> None:
    group = of_two()
    group.given_id("c")
    assert group.states == STABLE_1, "MEMBER_ID_REQUIRED changes nothing"
    group.asks("c")
    group.heartbeat("a", 1, Error.REBALANCE_IN_PROGRESS)
    assert group.states[3:] == [("PreparingRebalance", 1, "pending-member")]


def test_heartbeat_shows_a_foreign_round_and_the_leaders_response_the_removed_member() -> None:
    group = of_two()
    group.heartbeat("a", 1, Error.REBALANCE_IN_PROGRESS)
    group.join("a", 2, "a", members=["a"])
    assert group.states[3:] == [
        ("PreparingRebalance", 1, "session-expired"),
        ("CompletingRebalance", 2, "all-joined"),
    ]
    removed = events.MemberRemoved("g", "b", "id-b", None, 2, "session-expired")
    assert group.of(events.MemberRemoved) == [removed]


def test_a_member_that_is_told_so_has_been_removed() -> None:
    """Both were without a network for longer than their sessions: the group was empty, and begins anew."""
    group = of_two()
    group.heartbeat("a", 1, Error.UNKNOWN_MEMBER_ID)
    group.heartbeat("b", 1, Error.UNKNOWN_MEMBER_ID)
    group.given_id("c")
    group.joined(group.asks("c"), 3, "c", ["c"])
    assert group.states[3:] == [
        ("PreparingRebalance", 1, "session-expired"),
        ("Empty", 2, "no-members"),
        ("PreparingRebalance", 2, "pending-member"),
        ("CompletingRebalance", 3, "initial-delay"),
    ]
    assert [one.cause for one in group.of(events.MemberRemoved)] == ["session-expired"] * 2


def test_follower_that_rejoins_unchanged_stays_in_the_generation() -> None:
    group = of_two()
    group.join("b", 1, "a")
    assert group.states == STABLE_1


def test_returning_static_member_replaces_itself() -> None:
    group = Group()
    group.joined(group.asks("a", "", "i"), 1, "a", ["a"], member_id="id-a")
    group.sync("a", 1)
    group.joined(group.asks("a", "", "i"), 1, "a", member_id="id-a2")
    assert group.states == [("PreparingRebalance", 0, "static-member"), *STABLE_1[1:]]
    assert group.of(events.MemberReplaced) == [events.MemberReplaced("g", "a", "id-a2", "id-a", "i", 1)]


def test_last_member_that_leaves_empties_the_group() -> None:
    group = of_two()
    group.leave("b")
    group.leave("a")
    assert group.states[3:] == [("PreparingRebalance", 1, "left"), ("Empty", 2, "no-members")]
    assert [event.member for event in group.of(events.MemberRemoved)] == ["b", "a"]


def test_lost_response_emits_nothing() -> None:
    group = of_two()
    emitted = list(group.emitted)
    group.inferred.response_received(Heartbeat("g", "id-a", None, 1, 4, "a"), Disconnected())
    assert group.emitted == emitted
