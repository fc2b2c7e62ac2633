"""What the broker of the virtual world says of its group, and how it passes times on to its coordinator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.consumer.group import ConsumerGroupState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    JoinGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.records import GroupMetadataRecord
from groupstorm.coordinator.topics import Topic
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.broker import GROUP, VirtualBroker, topic_id
from groupstorm.storms.world.time_loop import TimeLoop
from tests.storms.test_broker_by_hand import MS, World

NOTHING: Any = SimpleNamespace(events=[], replies=[])
CONFIG: Any = SimpleNamespace(group_instance_id=None, profile=SimpleNamespace(heartbeat_version=4))


def consumer_group(
    state: ConsumerGroupState = ConsumerGroupState.STABLE, is_writing: bool = False, exists: bool = True
) -> World:
    """At 0 ms, a group that looks at its topics again at 100 ms, with one member in epoch 7."""
    world = World()
    member = SimpleNamespace(epoch=7, classic=None)
    group = SimpleNamespace(state=state, members={"m-1": member}, refresh_ms=100)
    coordinator: Any = SimpleNamespace(
        consumer_group=lambda name: group if exists and name == GROUP else None,
        last_write=lambda name: SimpleNamespace(error=None) if is_writing else None,
    )
    world.broker.coordinator = coordinator
    return world


# --- consumer groups


@pytest.mark.parametrize(
    ("more", "is_quiet"),
    [
        ({}, True),
        ({"state": ConsumerGroupState.RECONCILING}, False),
        ({"state": ConsumerGroupState.ASSIGNING}, False),
        ({"is_writing": True}, False),
        ({"exists": False}, False),
    ],
)
def test_a_consumer_group_is_quiet_if_it_is_stable_and_all_of_it_is_written(
    more: dict[str, Any], is_quiet: bool
) -> None:
    assert consumer_group(**more).broker.is_quiet("m-1", 7) is is_quiet


@pytest.mark.parametrize(
    ("epoch", "member_id", "exists", "is_earlier"),
    [
        (6, "m-1", True, True),
        (7, "m-1", True, False),
        (8, "m-1", True, False),
        (6, "m-2", True, False),
        (6, "m-1", False, False),
    ],
)
def test_a_request_is_of_an_earlier_epoch_if_its_member_has_a_later_one(
    epoch: int, member_id: str, exists: bool, is_earlier: bool
) -> None:
    broker = consumer_group(exists=exists).broker
    assert broker.is_of_earlier_epoch(Generation(epoch, member_id)) is is_earlier


def test_a_session_of_a_consumer_group_counts_from_the_microsecond_of_its_last_heartbeat() -> None:
    world, asked = World(), list[tuple[Any, ...]]()
    coordinator: Any = SimpleNamespace(session_since=lambda *what: asked.append(what))
    world.broker.coordinator = coordinator
    world.clock.now_us = 9_000_999
    world.broker.session_since("m-1", 7_000_999)
    assert asked == [(GROUP, "m-1", 7_000_999, 9_000)]


# --- topics


def test_the_coordinator_learns_at_its_millisecond_which_topics_changed() -> None:
    world, told = World(), list[tuple[Any, ...]]()

    def update_topics(*what: Any) -> Any:
        told.append(what)
        return NOTHING

    coordinator: Any = SimpleNamespace(update_topics=update_topics)
    world.broker.coordinator = coordinator
    world.clock.now_us = 9_000_999
    world.broker.topics_changed({"a": 2}, ["b"])
    world.broker.topics_changed({})
    assert told == [({"a": Topic(topic_id("a"), 2)}, ["b"], 9_000), ({}, (), 9_000)]


def test_a_member_is_assigned_the_partitions_that_the_coordinator_knows_of() -> None:
    def assigned(world: World) -> Any:
        joins = ConsumerGroupHeartbeat(
            GROUP, "m-1", 0, rebalance_timeout_ms=20_000, topics=("a",), owned=(), client_id="m"
        )
        world.broker.handle(joins, world._receive)
        [(_, answer)] = world.to(1_000).answers
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        assert answer.error is Error.NONE
        return answer.assignment

    nothing: dict[UUID, tuple[int, ...]] = {}
    assert assigned(World()) == nothing
    world = World()
    world.broker.topics_changed({"a": 2})
    assert assigned(world) == {topic_id("a"): (0, 1)}


# --- the classic group


def test_the_group_is_there_from_its_first_member_on() -> None:
    assert World().broker.any_group is None
    world = World()
    member = world.joined()
    group = world.broker.any_group
    assert group is not None
    assert [*group.members.keys()] == [member.member_id]
    assert world.broker.consumer_group is None


def test_the_offsets_of_a_member_are_accepted_without_a_write() -> None:
    world = World()
    member = world.joined()
    world.to(10).answers.clear()
    rows = len(world.sink.rows)
    offsets = {"t": {0: CommittedOffset(5)}}
    commit = OffsetCommit(GROUP, member.member_id, None, member.id, offsets, 9)
    world.broker.handle(commit, world._receive)
    assert not world.broker.is_writing
    assert world.answers == [(10, OffsetCommitResponse((("t", 0, Error.NONE),)))]
    assert len(world.to(20).sink.rows) == rows


@pytest.mark.parametrize("fails_over", [None, False, True])
def test_written_members_are_kept_if_another_coordinator_has_to_read_them(fails_over: bool | None) -> None:
    """None: the broker is not told."""
    world = World(fails_over=bool(fails_over))
    if fails_over is None:
        settings = Settings(("", {"group.initial.rebalance.delay.ms": 0, "append_latency_ms": 0}))
        world.broker = VirtualBroker(
            settings, 1, world.clock, world.trace, None, lambda _event: None, lambda: None
        )
        world.loop = TimeLoop(world.clock, world.broker, world.trace)
    member = world.joined()
    records = world.to(10).broker.coordinator.snapshot()
    rosters = [record.roster for record in records if isinstance(record, GroupMetadataRecord)]
    assert [[each.member_id for each in roster] for roster in rosters] == (
        [[member.member_id]] if fails_over else []
    )


# --- times


def test_a_write_at_the_very_beginning_is_neither_slow_nor_fails() -> None:
    """Everything arrives at 0 ms, and a write takes 5 ms."""
    world = World()
    world.join()
    world.join(world.answers.pop()[1].member_id)
    _, joined = world.to(0).answers.pop()
    assert isinstance(joined, JoinGroupResponse)
    sync = SyncGroup(GROUP, joined.member_id, None, joined.generation, "consumer", "range", (), 5)
    world.broker.handle(sync, world._receive)
    assert (world.broker.is_writing, world.broker.is_failing, world.failing) == (True, False, 0)
    [(at_ms, synced)] = world.to(100).answers
    assert isinstance(synced, SyncGroupResponse)
    assert (at_ms, synced.error) == (5, Error.NONE)


def test_a_heartbeat_begins_the_session_again_at_its_millisecond() -> None:
    """It arrives at 6,005.999 ms, and the session lasts 10 s."""
    world = World()
    member = world.joined()
    world.to(6_005.999)
    assert world.broker.heartbeat(CONFIG, member) is Error.NONE
    assert world.to(16_004.999).broker.is_current(member)
    assert not world.to(16_005).broker.is_current(member)


def test_a_timer_that_is_set_in_passing_is_due_at_its_millisecond() -> None:
    """A member joins at 1 ms, and the first round waits for others until 3,001 ms. Something else happens at
    3,002 ms."""
    more: dict[str, Any] = {"group.initial.rebalance.delay.ms": 3_000}
    world = World(**more)

    def join() -> None:
        world.join()
        world.join(world.answers.pop()[1].member_id)

    seen: list[int] = []
    world.clock.at(1 * MS, join)
    world.clock.at(3_002 * MS, lambda: seen.append(len(world.answers)))
    world.to(4_000)
    assert [at_ms for at_ms, _ in world.answers] == [3_001]
    assert seen == [1]


def test_a_coordinator_that_fails_over_at_the_very_beginning_is_back_when_it_is_told() -> None:
    for until_us in (0, 1, 2):
        world = World(fails_over=True)
        world.broker.fail_over(until_us)
        assert world.broker.due_us() == until_us
        world.loop.run_until(until_us)
        assert world.broker.due_us() is None
