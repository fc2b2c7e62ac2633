"""Offsets that a loaded group keeps, and the expiry of offsets and groups."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit, OffsetDelete, OffsetDeleteResponse
from groupstorm.coordinator.records import OffsetCommitRecord
from tests.coordinator.world import World, no_delay

MINUTE_MS = 60_000
#: A subscription of version 0 to the topic "t", without user data.
READS_T = (("range", b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"),)


def test_what_members_read_is_not_deleted_either_by_the_coordinator_that_has_loaded_them() -> None:
    world = World(no_delay())
    world.stable(protocols=READS_T)
    world.commit("m1", generation=world.group.generation, offset=5)
    later = world.successor()
    for topic, error in (("t", Error.GROUP_SUBSCRIBED_TO_TOPIC), ("other", Error.NONE)):
        response = later.replies[later.send(OffsetDelete("g", {topic: (0, 7)}))]
        assert response == OffsetDeleteResponse(Error.NONE, ((topic, 0, error), (topic, 7, error)))


def retaining(minutes: int) -> World:
    """A coordinator that looks for expired offsets every minute."""
    limits = {"offsets_retention_ms": minutes * MINUTE_MS, "offsets_retention_check_interval_ms": MINUTE_MS}
    world = World(no_delay(**limits))
    world.take(world.coordinator.load((), world.now_ms))
    return world


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
