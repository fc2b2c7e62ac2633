"""Deletions that cannot be written or that a loaded group refuses, and the expiry of offsets and groups."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DeleteGroup,
    DeleteGroupResponse,
    OffsetCommit,
    OffsetDelete,
    OffsetDeleteResponse,
)
from groupstorm.coordinator.records import OffsetCommitRecord
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

MINUTE_MS = 60_000
#: A subscription of version 0 to the topic "t", without user data.
READS_T = (("range", b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"),)


@pytest.fixture
def world() -> World:
    return World(no_delay())


def delete_offset(world: World, topic: str = "t", group: str = "g") -> tuple[Error, Any]:
    response = world.replies[world.send(OffsetDelete(group, {topic: (0, 7)}))]
    assert isinstance(response, OffsetDeleteResponse)
    return response.error, [error for _, _, error in response.partitions]


def delete_group(world: World, group: str = "g") -> Error:
    response = world.replies[world.send(DeleteGroup(group))]
    assert isinstance(response, DeleteGroupResponse)
    return response.error


def test_what_members_read_is_not_deleted_either_by_the_coordinator_that_has_loaded_them(
    world: World,
) -> None:
    world.stable(protocols=READS_T)
    world.commit("m1", generation=world.group.generation, offset=5)
    later = world.successor()
    assert delete_offset(later) == (Error.NONE, [Error.GROUP_SUBSCRIBED_TO_TOPIC] * 2)
    assert delete_offset(later, "other") == (Error.NONE, [Error.NONE, Error.NONE])


def test_members_whose_subscription_cannot_be_read_may_read_everything(world: World) -> None:
    world.stable(protocols=(("range", b"\x00"),))
    assert delete_offset(world)[1] == [Error.GROUP_SUBSCRIBED_TO_TOPIC] * 2


def test_a_deletion_that_cannot_be_written_leaves_the_group(world: World) -> None:
    world.commit(offset=5)
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    assert delete_group(world) is Error.COORDINATOR_NOT_AVAILABLE
    assert delete_offset(world)[0] is Error.COORDINATOR_NOT_AVAILABLE
    world.append_error = None
    assert world.committed() == 5


def retaining(minutes: int, every_ms: int = MINUTE_MS) -> World:
    """A coordinator that looks for expired offsets every ``every_ms``."""
    config = no_delay(offsets_retention_ms=minutes * MINUTE_MS, offsets_retention_check_interval_ms=every_ms)
    world = World(config)
    world.take(world.coordinator.load((), world.now_ms))
    return world


def test_nothing_expires_before_the_coordinator_was_loaded(world: World) -> None:
    world.commit()
    assert world.coordinator.next_deadline() is None


def test_commits_from_outside_expire_by_their_own_age_and_then_the_group_goes() -> None:
    world = retaining(10)
    world.commit(offset=5)
    world.advance(10 * MINUTE_MS - 1)
    assert world.committed() == 5
    world.advance(1)
    assert world.committed() == -1
    assert world.coordinator.groups == []
    assert [one.cause for one in world.of(events.GroupDeleted)] == ["expired"]


def test_a_later_commit_keeps_its_group_and_its_own_partition_alone() -> None:
    world = retaining(10)
    world.commit(offset=5)
    world.advance(5 * MINUTE_MS)
    world.send(OffsetCommit("g", "", None, -1, {"u": {3: CommittedOffset(8)}}, 9))
    world.advance(5 * MINUTE_MS)
    assert world.committed() == -1
    assert world.coordinator.groups == ["g"]
    world.advance(5 * MINUTE_MS)
    assert world.coordinator.groups == []


def test_a_topic_that_a_stable_group_no_longer_reads_expires_by_its_commit() -> None:
    world = retaining(10)
    world.stable(members=1, protocols=READS_T, session=1_800_000)
    world.send(OffsetCommit("g", "m1", None, 1, {"old": {0: CommittedOffset(8)}}, 9))
    before = len(world.appended)
    world.advance(10 * MINUTE_MS)
    tombstone = OffsetCommitRecord("g", "old", 0, None, 0, None, None)
    assert world.appended[before][0] == [tombstone]
    assert world.coordinator.groups == ["g"]


def test_groups_of_other_types_keep_their_offsets_while_they_have_members() -> None:
    world = retaining(1)
    world.stable(members=1, kind="connect", session=1_800_000)
    world.commit("m1", generation=1, offset=5)
    world.advance(5 * MINUTE_MS)
    assert world.committed() == 5


def test_a_commit_of_version_2_says_itself_how_long_it_is_kept() -> None:
    world = retaining(10)
    offsets = {"t": {0: CommittedOffset(5)}}
    world.send(OffsetCommit("g", "", None, -1, offsets, 2, retention_ms=2 * MINUTE_MS))
    world.advance(2 * MINUTE_MS - 1)
    assert world.committed() == 5
    world.advance(1)
    assert world.committed() == -1


def test_an_empty_group_without_offsets_goes_at_the_next_look() -> None:
    world = retaining(10)
    world.stable(members=1)
    world.leave("m1")
    world.advance(MINUTE_MS)
    assert world.coordinator.groups == []
