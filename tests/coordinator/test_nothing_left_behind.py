"""A timer goes with what it was set for: a coordinator whose group has ended waits for nothing.

Kafka cancels the heartbeat, join and sync timers of a member or a group that goes (GroupMetadataManager:
removeMember, cancelTimers, prepareRebalance). A timer that stays would fire into a later generation.
"""

from __future__ import annotations

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    OffsetCommitResponse,
    TxnOffsetCommit,
)
from tests.coordinator.world import World, no_delay


def test_members_that_leave_take_their_sessions_along() -> None:
    world = World(no_delay())
    first, second = world.stable(2)
    assert world.leave(first, second) == [Error.NONE, Error.NONE]
    assert world.state == "Empty"
    assert world.coordinator.next_deadline() is None


def test_a_pending_member_that_leaves_takes_its_session_along() -> None:
    world = World(no_delay())
    token = world.join(version=4, session=10_000)
    assert world.error(token) is Error.MEMBER_ID_REQUIRED
    assert world.coordinator.next_deadline() == 10_000
    assert world.leave("m1") == [Error.NONE]
    assert world.coordinator.next_deadline() is None


def test_a_round_that_opens_while_members_sync_ends_the_wait_for_them() -> None:
    world = World(no_delay())
    (first,) = world.stable(1)
    world.join(first, protocols=(("range", b"more"),))
    assert world.state == "CompletingRebalance"
    world.advance(1_000)
    world.join()
    assert world.state == "PreparingRebalance"
    assert not world.group.pending_sync
    assert world.leave(first, "m2") == [Error.NONE, Error.NONE]
    world.advance(60_000)
    assert world.state == "Empty"
    assert world.coordinator.next_deadline() is None


def test_a_member_that_does_not_come_back_takes_its_session_along() -> None:
    """Its round ends after 5 s; its session of 10 s would end 5 s later."""
    world = World(no_delay())
    first, _silent = world.stable(2, rebalance=5_000, session=10_000)
    world.join(first, rebalance=5_000, session=10_000, protocols=(("range", b"more"),))
    world.advance(5_000)
    assert world.state == "CompletingRebalance"
    assert list(world.group.members.keys()) == [first]
    world.leave(first)
    assert world.coordinator.next_deadline() is None


def test_a_group_that_moves_while_members_sync_waits_for_no_sync_any_more() -> None:
    """The next coordinator loads the last Stable generation: only the member's session of 10 s counts."""
    world = World(no_delay())
    (first,) = world.stable(1, rebalance=5_000, session=10_000)
    world.join(first, rebalance=5_000, session=10_000, protocols=(("range", b"more"),))
    assert world.state == "CompletingRebalance"
    assert world.coordinator.next_deadline() == 5_000
    world.move()
    assert world.state == "Stable"
    assert world.coordinator.next_deadline() == 10_000


def _producer_commits(world: World, member: str, instance: str | None, generation: int) -> Error:
    offsets = {"t": {0: CommittedOffset(7)}}
    answer = world.replies[world.send(TxnOffsetCommit("g", 1, member, instance, generation, offsets, 5))]
    assert isinstance(answer, OffsetCommitResponse)
    return answer.partitions[0][2]


@pytest.mark.parametrize(
    ("member", "instance", "generation", "error"),
    [
        # whoever names nothing is believed
        ("", None, -1, Error.NONE),
        # whoever names a member or a generation must be right in all
        ("m1", None, 1, Error.NONE),
        ("m1", None, 0, Error.ILLEGAL_GENERATION),
        ("m1", None, 2, Error.ILLEGAL_GENERATION),
        ("m1", None, -1, Error.ILLEGAL_GENERATION),
        ("m9", None, 1, Error.UNKNOWN_MEMBER_ID),
        ("m9", None, -1, Error.UNKNOWN_MEMBER_ID),
        ("", None, 0, Error.UNKNOWN_MEMBER_ID),
        ("", None, 1, Error.UNKNOWN_MEMBER_ID),
        ("", "i", -1, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit_offsets_in_a_transaction(
    member: str, instance: str | None, generation: int, error: Error
) -> None:
    """ClassicGroup.validateOffsetCommit with isTransactional, while the group is Stable in generation 1."""
    world = World(no_delay())
    world.stable(1)
    assert world.group.generation == 1
    assert _producer_commits(world, member, instance, generation) is error


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [
        ("m1", -1, Error.NONE),
        ("m1", 0, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_outside_of_an_empty_group_anyone_may_commit(member: str, generation: int, error: Error) -> None:
    world = World(no_delay())
    world.leave(*world.stable(1))
    assert world.state == "Empty"
    assert _producer_commits(world, member, None, generation) is error


@pytest.mark.parametrize(("generation", "error"), [(-1, Error.NONE), (0, Error.ILLEGAL_GENERATION)])
def test_a_group_that_does_not_exist_has_no_generation(generation: int, error: Error) -> None:
    assert _producer_commits(World(no_delay()), "", None, generation) is error
