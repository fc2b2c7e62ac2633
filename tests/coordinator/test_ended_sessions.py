"""Commands that end the session of a member of a consumer group."""

from __future__ import annotations

from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group


def in_group() -> Group:
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    return group


def test_the_session_of_a_member_of_a_consumer_group_ends_on_command() -> None:
    group = in_group()
    effects = group.driver.coordinator.expire_session("g", "a", group.driver.now_ms)
    removed = [event for event in effects.events if isinstance(event, events.MemberRemoved)]
    assert [(event.member_id, event.cause) for event in removed] == [("a", "session-expired")]
    assert list(group.group.members) == ["b"]
    assert effects.records, "the removal is written"


def test_the_session_of_nobody_in_a_consumer_group_ends_with_nothing() -> None:
    group = in_group()
    before = group.driver.coordinator.next_deadline()
    effects = group.driver.coordinator.expire_session("g", "c", group.driver.now_ms)
    assert effects.events == []
    assert group.driver.coordinator.next_deadline() == before
    assert sorted(group.group.members) == ["a", "b"]
