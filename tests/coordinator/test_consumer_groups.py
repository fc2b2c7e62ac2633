"""Consumer groups (KIP-848) where scripts do not reach: expiry, loading, migration, member ids, and writes
that fail or take their time. Each rule is Kafka 4.3.1's."""

from __future__ import annotations

from uuid import UUID

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    DescribeConsumerGroup,
)
from groupstorm.coordinator.records import AppendCause
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group, group_state


@pytest.mark.slow
def test_offsets_expire_when_nobody_reads_the_topic_and_the_empty_group_with_them() -> None:
    group = Group()
    group.driver.coordinator.load((), 0)
    group.join("a")
    group.step(
        op="commit", **{"as": "c-a"}, epoch=True, generation="$", offsets={"t": {"0": 5}, "u": {"1": 6}}
    )
    for _ in range(8 * 24 * 60 * 2):
        group.advance(30_000)
        group.beat("a")
    assert group.driver.coordinator.committed_offsets("g") == {"t-0": 5}
    group.beat("a", epoch=-1)
    group.advance(600_000)
    assert group.driver.coordinator.groups == []


# another coordinator


def test_a_successor_has_the_group_that_was_written() -> None:
    group = Group()
    group.join("a", instance="i", assignor="range")
    group.join("b", topics=None, regex="t|u")
    group.join("c")
    group.beat("a")
    group.step(op="join", **{"as": "d"}, member="d", protocols=[["range", {"topics": ["t"]}]])
    other = group.successor()
    assert group_state(other.group) == group_state(group.group)
    other.settle()
    assert other.beat("b").error is Error.NONE
    assert {event.cause for event in other.events if isinstance(event, events.MemberRemoved)} == set()


def test_a_successor_begins_the_sessions_and_the_rebalance_timeouts_anew() -> None:
    group = Group()
    group.join("a", rebalance=10_000)
    group.join("b")
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert group.group.members["a"].state == "UNREVOKED_PARTITIONS"
    other = group.successor()
    other.advance(10_000)
    other.advance(35_000)
    removed = [(one.member_id, one.cause) for one in other.events if isinstance(one, events.MemberRemoved)]
    assert removed == [("a", "rebalance-timeout"), ("b", "session-expired")]


# migration


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_the_policy_says_which_live_groups_may_change(policy: str, upgrades: bool, downgrades: bool) -> None:
    options = {"group.consumer.migration.policy": policy, "group.initial.rebalance.delay.ms": 0}
    group = Group(**options)
    protocols = [["range", {"topics": ["t"]}]]
    group.step(op="join", **{"as": "old"}, version=3, protocols=protocols)
    group.driver.advance(0)
    for outcome in group.driver.fire_due():
        group.events += outcome.events
    group.step(op="sync", **{"as": "old"}, assignments="auto-consumer")
    joined = group.join("new")
    assert joined.error is (Error.NONE if upgrades else Error.GROUP_ID_NOT_FOUND)
    if not upgrades:
        assert group.classic_group is not None
        return
    group.beat("new", epoch=-1)
    assert (group.classic_group is not None) == downgrades


@pytest.mark.parametrize("compatibility", ["4.3.1", "4.3.1-repaired"])
def test_a_refused_join_of_an_empty_consumer_group(compatibility: str) -> None:
    """Kafka 4.3.1 forgets the group without a record: only reads see it, until something is written."""
    group = Group(**{"groupstorm.compatibility": compatibility})
    group.join("a")
    group.beat("a", epoch=-1)
    refused = group.step(op="join", member="a", protocols=[["range", {"topics": ["t"]}]])
    assert refused.error is Error.UNKNOWN_MEMBER_ID
    assert (group.driver.coordinator.groups == ["g"]) == (compatibility == "4.3.1-repaired")
    assert group.send(DescribeConsumerGroup("g")).error is Error.NONE
    group.join("other", group="h")
    error = group.send(DescribeConsumerGroup("g")).error
    assert error is (Error.GROUP_ID_NOT_FOUND if compatibility == "4.3.1" else Error.NONE)


def test_an_instance_id_that_a_member_had_before_its_last_one_is_not_forgotten() -> None:
    """ConsumerGroup.removeStaticMember of 4.3.1: the older id still points to the member that has gone."""
    group = Group(**{"groupstorm.compatibility": "4.3.1-repaired"})
    group.join("a", instance="i1")
    group.join("a", instance="i2")
    group.beat("a", epoch=-1, instance="i2")
    assert group.join("a", instance="i1").error is Error.UNKNOWN_MEMBER_ID
    assert group.join("a", instance="i2").error is Error.NONE


def test_a_write_that_fails_after_the_group_was_loaded_takes_back_its_own_changes_alone() -> None:
    group = Group()
    group.join("a")
    other = group.successor()
    before = group_state(other.group)
    other.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    assert other.join("b").error is Error.COORDINATOR_NOT_AVAILABLE
    assert group_state(other.group) == before
    assert before["epoch"] == 2
    assert before["members"].keys() == {"a"}


# member ids


@pytest.mark.parametrize(
    ("drawn", "member_id"),
    [
        # base64 of 16 bytes without padding; the six bits 111110 are "-", with which no id of Kafka begins
        ([UUID(int=1)], "AAAAAAAAAAAAAAAAAAAAAQ"),
        ([UUID(int=0b111110 << 122), UUID(int=2)], "AAAAAAAAAAAAAAAAAAAAAg"),
        (["m7"], "m7"),  # a driver that counts its ids
    ],
)
def test_a_member_of_an_old_client_gets_a_uuid_as_kafka_prints_it(
    drawn: list[UUID | str], member_id: str
) -> None:
    group, ids = Group(), iter(drawn)
    group.driver = Driver(
        CoordinatorConfig(),
        names=Names("test"),
        member_ids=lambda prefix: f"{prefix}-{next(ids)}",
        topics={"t": 4},
    )
    assert group.join("", version=0).member_id == member_id
    assert next(ids, None) is None


# sessions that end on command


def _of_two() -> Group:
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    return group


def test_the_session_of_a_member_of_a_consumer_group_ends_on_command() -> None:
    group = _of_two()
    effects = group.driver.coordinator.expire_session("g", "a", group.driver.now_ms)
    removed = [event for event in effects.events if isinstance(event, events.MemberRemoved)]
    assert [(event.member_id, event.cause) for event in removed] == [("a", "session-expired")]
    assert list(group.group.members) == ["b"]
    assert effects.records, "the removal is written"


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
