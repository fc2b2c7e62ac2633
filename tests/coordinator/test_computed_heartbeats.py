"""The coordinator of storms asks its driver before a session ends: about whom, and what the answer does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, Heartbeat, JoinGroup, OffsetCommit, SyncGroup
from groupstorm.coordinator.records import GroupMetadataRecord, OffsetCommitRecord
from groupstorm.coordinator.script.driver import Driver
from groupstorm.coordinator.script.names import Names
from groupstorm.coordinator.simulated import IN_TOUCH, SimulatedGroupCoordinator
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group
from tests.coordinator.world import World, no_delay


class Asked:
    """A driver that gives the same answer about everybody, and what it was asked."""

    def __init__(self, answer: int | None = IN_TOUCH) -> None:
        self.answer = answer
        self.about: list[tuple[str, int]] = []

    def __call__(self, group: str, member_id: str, deadline_ms: int) -> int | None:
        self.about.append((member_id, deadline_ms))
        return self.answer


def consumer_group(asked: Asked, **options: Any) -> Group:
    group = Group()
    group.driver = Driver(
        CoordinatorConfig.from_mapping(
            {"group.consumer.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0} | options
        ),
        names=Names("test"),
        topics={"t": 4, "u": 2},
        coordinator=partial(SimulatedGroupCoordinator, last_contact=asked, keeps_offsets=False),
    )
    return group


def removed(group: Group) -> list[tuple[str, str]]:
    return [(event.member_id, event.cause) for event in group.of(events.MemberRemoved)]


@pytest.mark.parametrize(("answer", "gone"), [(IN_TOUCH, []), (None, [("n", "session-expired")])])
def test_a_member_of_a_consumer_group_stays_as_long_as_it_is_in_touch(
    answer: int | None, gone: list[tuple[str, str]]
) -> None:
    asked = Asked(answer)
    group = consumer_group(asked)
    group.join("n")
    group.advance(200_000)
    assert asked.about == [("n", 45_000)]
    assert removed(group) == gone


def test_a_member_that_keeps_its_partitions_is_fenced_although_it_is_in_touch() -> None:
    asked = Asked()
    group = consumer_group(asked)
    group.join("n")
    group.join("m")
    group.beat("n")  # it has to give two partitions up, within its ten seconds
    group.advance(10_000)
    assert removed(group) == [("n", "rebalance-timeout")]
    assert asked.about == []


def both_protocols(asked: Asked) -> Group:
    """n and the classic c have their partitions, and sessions until 45 s."""
    group = consumer_group(asked)
    group.join("n")
    group.classic("c", "t")
    group.settle()
    group.classic("c", "t")
    group.sync("c")
    return group


def goes_on_as_a_classic_group(group: Group) -> None:
    """n leaves after a second. The group becomes a classic one, which cancels no timer of its members."""
    group.advance(1_000)
    group.beat("n", epoch=-1)
    group.classic("c", "t")
    group.sync("c", assignments="auto-consumer")
    assert group.driver.coordinator.group("g") is not None


def test_nobody_asks_about_a_session_of_the_protocol_that_the_group_had() -> None:
    """c's session as a member of the consumer group ends at 45 s, that in the classic group at 46 s."""
    asked = Asked()
    group = both_protocols(asked)
    goes_on_as_a_classic_group(group)
    group.advance(60_000)
    assert asked.about == [(group.id_of("c"), 46_000)]


def test_nobody_asks_about_the_session_of_a_member_that_has_left() -> None:
    """k makes the group a consumer group again, before n's session ends at 45 s."""
    asked = Asked()
    group = both_protocols(asked)
    goes_on_as_a_classic_group(group)
    group.advance(1_000)
    group.join("k", topics=[])
    assert sorted(group.group.members) == sorted(["k", group.id_of("c")])
    group.advance(60_000)
    assert sorted(asked.about) == sorted([("k", 47_000), (group.id_of("c"), 47_000)])
    assert removed(group) == [("n", "left")]


def test_nobody_asks_about_a_classic_session_that_kafka_does_not_cancel() -> None:
    """Kafka 4.3.1 upgrades a group and leaves the session timers of its members, here until 45 s."""
    asked = Asked()
    group = consumer_group(asked, **{"groupstorm.compatibility": "4.3.1"})
    group.classic("c", "t")
    group.advance(0)
    group.sync("c", assignments="auto-consumer")
    group.advance(1_000)
    group.join("n", topics=[])
    group.advance(60_000)
    assert sorted(asked.about) == sorted([("n", 46_000), (group.id_of("c"), 46_000)])
    assert group.of(events.OperationFailed) == []


def test_nobody_asks_about_a_new_member_in_its_first_five_minutes() -> None:
    asked = Asked()
    world = World(no_delay(), last_contact=asked)
    world.stable(1, rebalance=400_000)
    parked = world.join(rebalance=400_000)
    world.advance(299_999)
    assert world.error(parked) is None
    world.advance(1)
    assert world.error(parked) is Error.UNKNOWN_MEMBER_ID
    assert [(event.member_id, event.cause) for event in world.of(events.MemberRemoved)] == [
        ("m2", "new-member-timeout")
    ]
    assert asked.about == [("m1", 10_000)]


def heartbeat(world: World, member: str, generation: int = 1) -> Error | None:
    return world.coordinator.heartbeat("g", member, None, generation, world.now_ms)


def test_a_computed_heartbeat_is_answered_at_once_unless_its_answer_waits_for_a_write() -> None:
    world = World(no_delay())
    world.stable()
    assert heartbeat(world, "m1") is Error.NONE
    assert world.coordinator.last_write("g") is None
    world.append_delay_ms = 50
    world.send(OffsetCommit("g", "m1", None, 1, {"t": {0: CommittedOffset(7)}}, 9))
    world.send(OffsetCommit("g", "m2", None, 1, {"t": {1: CommittedOffset(8)}}, 9))
    last = world.coordinator.last_write("g")
    assert last is not None
    assert last.records == [OffsetCommitRecord("g", "t", 1, CommittedOffset(8))], "the later one"
    assert heartbeat(world, "m1") is None
    assert heartbeat(world, "m1", generation=0) is Error.ILLEGAL_GENERATION
    assert heartbeat(world, "nobody") is Error.UNKNOWN_MEMBER_ID
    world.join("m1")
    assert world.state == "PreparingRebalance"
    assert heartbeat(world, "m2") is None
    world.advance(50)
    assert heartbeat(world, "m2") is Error.REBALANCE_IN_PROGRESS
    assert world.coordinator.last_write("g") is None


def test_writes_under_way_are_counted_without_what_waits_for_them() -> None:
    world = World(no_delay())
    world.stable()
    world.append_delay_ms = 50
    assert world.coordinator.writes_under_way("g") == 0
    for number in (1, 2):
        world.send(OffsetCommit("g", "m1", None, 1, {"t": {0: CommittedOffset(7)}}, 9))
        world.send(Heartbeat("g", "m1", None, 1, 4))
        assert world.coordinator.writes_under_way("g") == number


@pytest.mark.parametrize("kind", [GroupCoordinator, SimulatedGroupCoordinator])
def test_unless_it_is_asked_a_coordinator_keeps_offsets_but_no_records_of_members(
    kind: type[GroupCoordinator],
) -> None:
    coordinator = kind(no_delay(), member_ids=lambda _prefix: "m1")
    protocols = (("range", b""),)
    coordinator.handle(JoinGroup("g", "", None, 10_000, 10_000, "consumer", protocols, 3, "c"), 0, "join")
    coordinator.fire(0)
    sync = SyncGroup("g", "m1", None, 1, "consumer", "range", (("m1", b"plan"),), 5, "c")
    [record] = coordinator.handle(sync, 0, "sync").records
    assert isinstance(record, GroupMetadataRecord)
    assert (record.members, record.roster) == (1, ())
    assert coordinator.snapshot() == []
    coordinator.handle(OffsetCommit("g", "m1", None, 1, {"t": {0: CommittedOffset(7)}}, 9), 0, "commit")
    assert coordinator.committed_offsets("g") == {"t-0": 7}


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("n", 2, Error.NONE),
        ("n", 3, Error.STALE_MEMBER_EPOCH),
        ("nobody", 2, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_of_a_consumer_group_are_checked_and_answered_but_not_stored(
    member: str, epoch: int, error: Error
) -> None:
    group = consumer_group(Asked())
    assert group.join("n").member_epoch == 2
    answer = group.send(OffsetCommit("g", member, None, epoch, {"t": {0: CommittedOffset(7)}}, 9))
    assert answer.partitions == (("t", 0, error),)
    assert group.driver.coordinator.committed_offsets("g") == {}
    assert group.of(events.OffsetsCommitted) == []
