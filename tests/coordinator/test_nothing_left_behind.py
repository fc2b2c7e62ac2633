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
