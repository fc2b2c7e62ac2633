"""Writes that take time or fail: what waits for them, what they take back."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    Heartbeat,
    OffsetCommit,
    OffsetCommitResponse,
)
from groupstorm.coordinator.records import (
    AppendCause,
    GroupMetadataRecord,
    MemberRecord,
)
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay


def _heartbeat(world: World, member: str) -> object:
    return world.send(Heartbeat("g", member, None, world.group.generation, 4))


def test_what_is_written_and_why() -> None:
    world = World(no_delay())
    world.stable(1)
    world.commit("m1", generation=1)
    world.leave("m1")
    assert [cause for _, cause in world.appended] == [
        AppendCause.EMPTY_GROUP,
        AppendCause.GENERATION,
        AppendCause.OFFSET_COMMIT,
        AppendCause.EMPTY_GROUP,
    ]
    member = MemberRecord("m1", None, "c", "/127.0.0.1", 60_000, 10_000, b"", b"m1")
    expected = GroupMetadataRecord("g", 1, "consumer", "range", "m1", 1, (member,))
    assert world.appended[1][0] == [expected]
    assert world.appended[3][0] == [GroupMetadataRecord("g", 2, "consumer", None, None, 0)]


def test_without_a_policy_every_append_is_committed_at_once() -> None:
    coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=lambda prefix: f"{prefix}-1")
    effects = coordinator.handle(
        OffsetCommit("g", "", None, -1, {"t": {0: CommittedOffset(7)}}, 9), 0, "commit"
    )
    assert effects.replies == [("commit", OffsetCommitResponse((("t", 0, Error.NONE),)))]
    assert coordinator.committed_offsets("g") == {"t-0": 7}
    assert coordinator.next_deadline() is None


def test_a_timer_of_a_group_that_was_never_there_counts_as_one_that_has_fired() -> None:
    world = World(no_delay())
    world.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    world.join(version=4, group="never", session=9_000)
    effects = world.coordinator.fire_one(9_000)
    assert effects is not None
    assert (effects.replies, effects.events, effects.records) == ([], [], [])
    assert world.coordinator.fire_one(9_000) is None


def test_a_group_that_no_write_covers_goes_with_the_next_one_that_fails() -> None:
    """As Kafka reverts its timeline: the refused commit made a group, and no record of it."""
    world = World()
    assert world.commit(metadata="x" * 5_000, group="dirty") is Error.OFFSET_METADATA_TOO_LARGE
    assert world.coordinator.groups == ["dirty"]
    assert world.describe("dirty").state == "Dead", "reads see what is committed"
    world.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    world.commit(group="other")
    assert world.coordinator.groups == []


def test_heartbeats_wait_for_writes_before_them_joins_do_not() -> None:
    world = World(no_delay())
    world.stable()
    world.driver.append_delay_ms = 10
    commit = world.send(
        OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9)
    )
    heartbeat = _heartbeat(world, "m1")
    assert world.heartbeat("nobody") is Error.UNKNOWN_MEMBER_ID, "what is refused does not wait"
    assert world.error(world.join("m2")) is Error.NONE
    assert world.committed() == -1
    world.advance(10)
    assert world.order[-2:] == [commit, heartbeat]
    assert world.committed() == 7


def test_what_waits_for_a_write_waits_no_longer_than_a_write_itself() -> None:
    """CoordinatorRuntime: an operation without records is an event of its own, with its own timeout."""
    world = World(no_delay(commit_timeout_ms=100))
    world.stable()
    world.driver.append_delay_ms = 240
    offsets = {"t": {0: CommittedOffset(7)}}
    commit = world.send(OffsetCommit("g", "m1", None, world.group.generation, offsets, 9))
    world.advance(90)
    first = _heartbeat(world, "m1")
    world.advance(60)
    assert commit in world.replies
    second = _heartbeat(world, "m1")
    world.advance(90)
    assert world.replies[first] == (Error.COORDINATOR_NOT_AVAILABLE,)
    assert world.replies[second] == (Error.NONE,)
    assert [world.answered_at_ms[token] - world.answered_at_ms[commit] for token in (first, second)] == [
        90,
        140,
    ]


def test_whoever_waits_is_answered_by_a_driver_that_comes_late() -> None:
    """The write ends at 300 ms. The first heartbeat waits until 150 ms and the second until 350 ms at most.
    The timers fire at 400 ms."""
    world = World(no_delay(commit_timeout_ms=100))
    world.stable()
    began_ms, world.driver.append_delay_ms = world.now_ms, 300
    world.send(OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9))
    world.advance(50)
    first = _heartbeat(world, "m1")
    world.advance(50)
    world.driver.now_ms = began_ms + 250
    second = _heartbeat(world, "m1")
    world.driver.now_ms = began_ms + 400
    world.take(world.coordinator.fire(world.now_ms))
    assert world.coordinator.last_write("g") is None
    assert {first, second} <= world.replies.keys()


@pytest.mark.parametrize("times_out", [True, False])
def test_several_operations_wait_for_the_same_write(times_out: bool) -> None:
    """Behind it more writes and what waits for those; each write ends what waits for it and no more."""
    world = World(no_delay(commit_timeout_ms=5 if times_out else 5_000))
    world.stable()
    tokens = []
    for delay_ms in (10, 20, 30):
        world.driver.append_delay_ms = delay_ms
        tokens.append(
            world.send(
                OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(1)}}, 9)
            )
        )
        tokens += [_heartbeat(world, "m1"), _heartbeat(world, "m2")]
    began_ms = world.now_ms
    world.advance(40)
    took = [world.answered_at_ms[token] - began_ms for token in tokens]
    assert took == ([5] * 9 if times_out else [10, 10, 10, 20, 20, 20, 30, 30, 30])
    assert world.coordinator.last_write("g") is None


def _with_commit(world: World, append_ms: int = 500, error: Error | None = None) -> World:
    """A commit to a Stable group of two, whose write is under way."""
    world.stable()
    world.driver.append_delay_ms, world.driver.append_error = append_ms, error
    world.send(OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9))
    world.driver.append_error = None
    return world


@pytest.mark.parametrize(("fails", "after_ms"), [(True, 450), (False, 100)])
def test_a_parked_join_fails_with_the_write_before_it_and_its_member_has_joined_all_the_same(
    fails: bool, after_ms: int
) -> None:
    """It fails, or takes too long (GroupCoordinatorService.joinGroup, ClassicGroup.hasAllMembersJoined)."""
    world = World(no_delay(commit_timeout_ms=5_000 if fails else 100))
    _with_commit(world, error=Error.NOT_ENOUGH_REPLICAS if fails else None).advance(50)
    parked = world.join("m1")
    world.advance(after_ms - 1)
    assert world.error(parked) is None
    world.advance(1)
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    assert world.state == "PreparingRebalance"
    assert world.error(world.join("m2")) is Error.NONE
    assert world.state == "CompletingRebalance"
    answers = [event.error for event in world.of(events.JoinAnswered) if event.member_id == "m1"]
    assert answers[-1] == "COORDINATOR_NOT_AVAILABLE", "the end of the round does not answer it again"


@pytest.mark.parametrize("compatibility", Compatibility)
def test_who_is_parked_in_a_group_that_is_taken_back(compatibility: Compatibility) -> None:
    """Kafka forgets them; otherwise they are told."""
    world = World(no_delay(compatibility=compatibility))
    world.commit(metadata="x" * 5_000)  # makes the group, and no record of it
    token = world.join(version=3)
    world.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    world.commit(group="other")
    told = not compatibility.is_to_the_letter
    assert world.error(token) is (Error.COORDINATOR_NOT_AVAILABLE if told else None)
    assert world.coordinator.groups == []
