"""Writes that take time or fail: what waits for them, what they take back."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Write
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    Heartbeat,
    LeaveGroup,
    LeavingMember,
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


def test_a_plan_that_cannot_be_written_sends_everybody_back() -> None:
    world = World(no_delay())
    world.stable()
    world.join("m1")
    world.join("m2")
    follower = world.sync("m2")
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    leader = world.sync("m1", {"m2": b"plan"})
    assert world.error(follower) is world.error(leader) is Error.COORDINATOR_NOT_AVAILABLE
    assert world.state == "PreparingRebalance"
    assert world.group.members["m2"].assignment == b""
    assert [(event.error, event.cause) for event in world.of(events.AppendFailed)] == [
        ("NOT_ENOUGH_REPLICAS", "generation")
    ]


def test_a_group_whose_first_record_cannot_be_written_was_never_there() -> None:
    world = World(no_delay())
    world.append_error = Error.NOT_LEADER_OR_FOLLOWER
    answer = world.joined(world.join())
    assert (answer.error, answer.member_id, answer.protocol) == (Error.NOT_COORDINATOR, "", "")
    assert world.coordinator.groups == []
    assert [event.cause for event in world.of(events.GroupDeleted)] == ["append-failed"]


def test_member_id_required_does_not_wait_for_the_groups_first_record() -> None:
    world = World(no_delay())
    world.append_error = Error.NOT_LEADER_OR_FOLLOWER
    assert world.joined(world.join(version=4)).error is Error.MEMBER_ID_REQUIRED
    assert world.coordinator.groups == []
    assert world.error(world.join("m1", version=4)) is Error.UNKNOWN_MEMBER_ID


def test_timers_of_a_group_that_was_never_there_do_nothing_or_break_off_as_in_kafka() -> None:
    world = World()
    world.append_error = Error.NOT_LEADER_OR_FOLLOWER
    world.join(session=6_000)
    world.append_error = None
    world.join(version=4, session=60_000)
    assert (world.state, world.group.generation) == ("Empty", 0)
    world.advance(3_000)  # the old group's round closes in the new group, which is empty
    assert (world.state, world.group.generation) == ("Empty", 1)
    assert "cannot leave Empty" in world.of(events.OperationFailed)[0].detail


def test_one_call_fires_all_that_is_due_behind_a_timer_of_a_group_that_was_never_there() -> None:
    world = World(no_delay())
    world.stable(1)
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    world.join(version=4, group="never", session=9_000)
    world.append_error = None
    assert world.coordinator.groups == ["g"]
    coordinator = world.coordinator
    assert coordinator.next_deadline() == 9_000
    assert coordinator.fire_one(8_999) is None, "nothing is due"
    effects = coordinator.fire(10_000)
    assert [event.group for event in effects.events if isinstance(event, events.MemberRemoved)] == ["g"]
    assert coordinator.next_deadline() is None


def test_a_timer_of_a_group_that_was_never_there_counts_as_one_that_has_fired() -> None:
    world = World(no_delay())
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    world.join(version=4, group="never", session=9_000)
    effects = world.coordinator.fire_one(9_000)
    assert effects is not None
    assert (effects.replies, effects.events, effects.records) == ([], [], [])
    assert world.coordinator.fire_one(9_000) is None


def test_a_simple_group_whose_commit_fails_was_never_there() -> None:
    world = World()
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    assert world.commit() is Error.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.groups == []
    world.append_error = None
    assert world.committed() == -1
    assert world.commit() is Error.NONE
    world.append_error = Error.NETWORK_EXCEPTION
    assert world.commit(offset=2) is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert world.committed() == 1
    assert [event.error for event in world.of(events.OffsetsCommitted)] == [
        "NOT_ENOUGH_REPLICAS",
        None,
        "NETWORK_EXCEPTION",
    ]


def test_a_group_that_no_write_covers_goes_with_the_next_one_that_fails() -> None:
    """As Kafka reverts its timeline: the refused commit made a group, and no record of it."""
    world = World()
    assert world.commit(metadata="x" * 5_000, group="dirty") is Error.OFFSET_METADATA_TOO_LARGE
    assert world.coordinator.groups == ["dirty"]
    assert world.describe("dirty").state == "Dead", "reads see what is committed"
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    world.commit(group="other")
    assert world.coordinator.groups == []


def test_the_last_leaver_waits_for_the_empty_groups_record() -> None:
    world = World(no_delay())
    world.stable(1)
    world.append_delay_ms = 10
    token = world.send(LeaveGroup("g", (LeavingMember("m1"),), 5))
    assert world.state == "Empty"
    world.advance(9)
    assert token not in world.replies
    world.advance(1)
    assert token in world.replies


def test_a_leave_whose_record_fails_has_an_error_of_its_own_and_the_member_is_gone() -> None:
    world = World(no_delay())
    world.stable(1)
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    assert world.leave("m1") == [Error.COORDINATOR_NOT_AVAILABLE]
    assert (world.state, world.group.generation) == ("Empty", 2)


def test_heartbeats_wait_for_writes_before_them_joins_do_not() -> None:
    world = World(no_delay())
    world.stable()
    world.append_delay_ms = 10
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


def test_what_waits_for_a_write_that_fails_fails_with_it() -> None:
    world = World(no_delay())
    world.stable()
    world.append_delay_ms, world.append_error = 10, Error.NOT_LEADER_OR_FOLLOWER
    world.send(OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9))
    heartbeat = _heartbeat(world, "m1")
    world.advance(10)
    assert world.replies[heartbeat] == (Error.NOT_COORDINATOR,)


def test_writes_of_a_group_complete_in_their_order() -> None:
    world = World(no_delay())
    world.stable()
    generation = world.group.generation
    tokens = []
    for delay_ms, offset in ((20, 1), (0, 2), (5, 3)):
        world.append_delay_ms = delay_ms
        offsets = {"t": {0: CommittedOffset(offset)}}
        tokens.append(world.send(OffsetCommit("g", "m1", None, generation, offsets, 9)))
    world.advance(20)
    assert world.order[-3:] == tokens
    assert world.committed() == 3


def test_a_write_beyond_the_commit_timeout_fails_its_request_and_lands_later() -> None:
    """offsets.commit.timeout.ms: the coordinator gives up waiting, not the log."""
    world = World(no_delay(commit_timeout_ms=100))
    world.stable()
    world.append_delay_ms = 500
    token = world.send(
        OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9)
    )
    world.advance(100)
    assert world.replies[token] == ((("t", 0, Error.COORDINATOR_NOT_AVAILABLE),),)
    assert world.committed() == -1
    world.advance(400)
    assert world.committed() == 7


def test_what_waits_for_a_write_waits_no_longer_than_a_write_itself() -> None:
    """CoordinatorRuntime: an operation without records is an event of its own, with its own timeout."""
    world = World(no_delay(commit_timeout_ms=100))
    world.stable()
    world.append_delay_ms = 240
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
    began_ms, world.append_delay_ms = world.now_ms, 300
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
        world.append_delay_ms = delay_ms
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
    world.append_delay_ms, world.append_error = append_ms, error
    world.send(OffsetCommit("g", "m1", None, world.group.generation, {"t": {0: CommittedOffset(7)}}, 9))
    world.append_error = None
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


def test_parked_requests_are_answered_when_their_round_goes_on_though_a_write_before_them_is_under_way() -> (
    None
):
    world = _with_commit(World(no_delay()), error=Error.NOT_ENOUGH_REPLICAS)
    joins = [world.join("m1"), world.join("m2")]
    assert [world.error(join) for join in joins] == [Error.NONE] * 2
    parked = world.sync("m2")
    assert world.error(parked) is None
    world.advance(500)
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    assert len(world.of(events.SyncAnswered)) == 3, "two in the first round"


def test_a_plan_that_lands_in_another_round_counts_for_nothing() -> None:
    world = World(no_delay())
    world.stable()
    world.join("m1")
    world.join("m2")
    world.append_delay_ms = 10
    world.sync("m1", {"m1": b"late"})
    follower = world.sync("m2")
    world.join("m2", protocols=(("range", b"other"),))
    assert world.error(follower) is Error.REBALANCE_IN_PROGRESS
    world.advance(10)
    assert world.state == "PreparingRebalance"
    world.join("m1")
    assert world.group.members["m1"].assignment == b""


def test_the_same_plan_sent_twice_counts_once() -> None:
    world = World(no_delay())
    world.stable()
    world.join("m1")
    world.join("m2")
    world.append_delay_ms = 10
    first = world.sync("m1", {"m1": b"one"})
    second = world.sync("m1", {"m1": b"two"})
    world.advance(10)
    assert world.error(first) is None
    assert world.synced(second).assignment == b"one"
    assert len([e for e in world.of(events.GroupStateChanged) if e.state == "Stable"]) == 2


def test_a_returning_static_member_that_goes_before_its_write_ends_gets_an_error() -> None:
    world = World(no_delay())
    world.join(instance="i1")
    world.advance(0)
    world.complete()
    world.append_delay_ms, world.append_error = 10, Error.NOT_ENOUGH_REPLICAS
    world.join(instance="i1", token="comes back")
    world.send(LeaveGroup("g", (LeavingMember("", "i1"),), 5))
    assert world.error("comes back") is Error.UNKNOWN_MEMBER_ID
    world.advance(20)
    assert world.group.awaiting_join == 0
    assert world.state == "Empty"


@pytest.mark.parametrize("compatibility", Compatibility)
def test_who_is_parked_in_a_group_that_is_taken_back(compatibility: Compatibility) -> None:
    """Kafka forgets them; otherwise they are told."""
    world = World(no_delay(compatibility=compatibility))
    world.commit(metadata="x" * 5_000)  # makes the group, and no record of it
    token = world.join(version=3)
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    world.commit(group="other")
    told = not compatibility.is_to_the_letter
    assert world.error(token) is (Error.COORDINATOR_NOT_AVAILABLE if told else None)
    assert world.coordinator.groups == []


def test_a_plan_that_lands_after_its_group_was_taken_back_counts_for_nothing() -> None:
    world = World(no_delay())
    world.append_delay_ms, world.append_error = 20, Error.NOT_ENOUGH_REPLICAS
    world.join()
    world.append_error = None
    world.advance(0)
    token = world.sync("m1", {"m1": b"plan"})
    world.advance(20)
    assert world.error(token) is Error.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.groups == []
    assert [event.state for event in world.of(events.GroupStateChanged)][-1] == "CompletingRebalance"


def test_a_second_completion_is_called_after_the_first() -> None:
    called: list[tuple[str, Error | None]] = []
    for first in (None, lambda error: called.append(("first", error))):
        write = Write("g", [], AppendCause.EMPTY_GROUP, first)
        write.then(lambda error: called.append(("second", error)))
        assert write.complete is not None
        write.complete(Error.NOT_ENOUGH_REPLICAS)
    error = Error.NOT_ENOUGH_REPLICAS
    assert called == [("second", error), ("first", error), ("second", error)]


def test_what_a_timer_changes_is_written() -> None:
    world = World(no_delay())
    world.stable(1)
    world.advance(10_000)
    [record] = world.appended[-1][0]
    assert (world.state, world.appended[-1][1]) == ("Empty", AppendCause.EMPTY_GROUP)
    assert record == GroupMetadataRecord("g", 2, "consumer", None, None, 0, (), world.now_ms)
