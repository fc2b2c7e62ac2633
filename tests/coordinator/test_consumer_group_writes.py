"""Writes of a consumer group that fail or take their time, and who waits for them."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import DescribeConsumerGroup
from groupstorm.coordinator.records import AppendCause
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group
from tests.coordinator.group_state import group_state


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_a_failed_append_leaves_the_group_as_it_was(delay_ms: int) -> None:
    group = Group()
    group.join("a", instance="i")
    group.join("b", topics=["t"], regex="u")
    group.settle()
    before = group_state(group.group)
    group.driver.append_delay_ms, group.driver.append_error = delay_ms, Error.NOT_ENOUGH_REPLICAS
    answers = [
        group.join("c"),
        group.beat("b", topics=["u"], regex=""),
        group.beat("a", epoch=-2, instance="i"),
    ]
    answers = [answer for answer in answers if answer is not None] + group.advance(delay_ms)
    assert [answer.error for answer in answers] == [Error.COORDINATOR_NOT_AVAILABLE] * 3
    assert group_state(group.group) == before
    assert AppendCause.MEMBER_HEARTBEAT in {event.cause for event in group.events if hasattr(event, "cause")}


def test_later_writes_fail_with_the_one_that_they_build_on() -> None:
    group = Group()
    group.driver.append_delay_ms, group.driver.append_error = 100, Error.NOT_ENOUGH_REPLICAS
    assert group.join("a") is None
    group.driver.append_error = None
    assert group.join("b") is None
    assert [answer.error for answer in group.advance(100)] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert group.driver.coordinator.groups == []


def test_a_write_whose_request_has_timed_out_still_ends_before_the_one_behind_it() -> None:
    """Both end at the same time; nobody waits for the second, a session that ends. A third takes longer."""
    group = Group(**{"offsets.commit.timeout.ms": 5_000})
    group.join("a")
    before = group_state(group.group)
    group.advance(44_000)
    group.driver.append_delay_ms, group.driver.append_error = 10_000, Error.NOT_ENOUGH_REPLICAS
    assert group.join("b") is None
    group.driver.append_delay_ms, group.driver.append_error = 0, None
    (refused,) = group.advance(9_500)
    assert refused.error is Error.COORDINATOR_NOT_AVAILABLE
    assert list(group.group.members) == ["b"]
    group.driver.append_delay_ms = 1_000
    assert group.join("c") is None
    assert group.advance(500) == []
    assert group_state(group.group) == before, "the removal fails with the join that it builds on"
    assert len(group.of(events.AppendFailed)) == 2
    assert group.advance(499) == []
    assert [answer.error for answer in group.advance(1)] == [Error.COORDINATOR_NOT_AVAILABLE]


def _with_classic_member(append_ms: int, error: Error | None = None) -> Group:
    """A consumer group with the classic member "c", and a commit of "a" under way: ``append_ms`` long."""
    group = Group(**{"offsets.commit.timeout.ms": 5_000})
    group.join("a")
    for _ in range(2):
        group.classic("c", "t")
        group.sync("c")
        group.settle()
    group.driver.append_delay_ms, group.driver.append_error = append_ms, error
    group.step(op="commit", **{"as": "c-a"}, epoch=True, generation="$", offsets={"t": {"0": 5}})
    return group


def test_a_classic_member_without_news_waits_as_long_as_any_request() -> None:
    """Its JoinGroup and SyncGroup write nothing, and wait for the commit. That one gives up first."""
    group = _with_classic_member(20_000)
    group.advance(4_900)
    assert group.classic("c", "t") is None
    assert group.sync("c") is None
    assert [type(answer).__name__ for answer in group.advance(4_999)] == ["OffsetCommitResponse"]
    refused = group.advance(1)
    assert [answer.error for answer in refused] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert {event.error for event in group.of(events.JoinAnswered)} == {"COORDINATOR_NOT_AVAILABLE", None}
    group.advance(5_200)
    assert group.classic("c", "t") is None
    (joined,) = group.advance(4_900)
    assert (joined.error, joined.member_id) == (Error.NONE, group.id_of("c"))


def test_a_classic_member_without_news_is_told_if_the_write_before_fails() -> None:
    group = _with_classic_member(100, Error.NOT_ENOUGH_REPLICAS)
    assert group.classic("c", "t") is None
    assert group.sync("c") is None
    _, joined, synced = group.advance(100)
    assert (joined.error, synced.error) == (Error.COORDINATOR_NOT_AVAILABLE,) * 2


def test_reads_see_a_group_once_it_is_written() -> None:
    group = Group()
    group.driver.append_delay_ms = 100
    group.join("a")
    assert group.send(DescribeConsumerGroup("g")).error is Error.GROUP_ID_NOT_FOUND
    group.advance(100)
    assert group.send(DescribeConsumerGroup("g")).state == "Stable"
