"""Committed offsets: what is stored, what is read, and in which order."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
)
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay


def _fetch(world: World, topics: dict[str, tuple[int, ...]] | None) -> OffsetFetchResponse:
    response = world.replies[world.send(OffsetFetch("g", topics, 9))]
    assert isinstance(response, OffsetFetchResponse)
    return response


@pytest.mark.parametrize(("metadata", "refused"), [("x" * 8, False), ("x" * 9, True), ("😀" * 5, True)])
def test_long_metadata_is_refused_partition_by_partition(metadata: str, refused: bool) -> None:
    """Kafka counts UTF-16 code units: five emoji are ten."""
    world = World(CoordinatorConfig(offset_metadata_max_bytes=8))
    offsets = {"t": {0: CommittedOffset(1, metadata=metadata), 1: CommittedOffset(2)}}
    response = world.replies[world.send(OffsetCommit("g", "", None, -1, offsets, 9))]
    assert isinstance(response, OffsetCommitResponse)
    error = Error.OFFSET_METADATA_TOO_LARGE if refused else Error.NONE
    assert response.partitions == (("t", 0, error), ("t", 1, Error.NONE))
    assert world.committed() == (-1 if refused else 1)


def test_stable_reads_wait_for_writes_in_flight() -> None:
    world = World()
    world.commit()
    world.driver.append_delay_ms = 10
    world.send(OffsetCommit("g", "", None, -1, {"t": {0: CommittedOffset(2)}}, 9))
    at_once = world.send(OffsetFetch("g", {"t": (0,)}, 9))
    later = world.send(OffsetFetch("g", {"t": (0,)}, 9, require_stable=True))
    assert at_once in world.replies
    assert later not in world.replies
    world.advance(10)
    assert later in world.replies


def test_a_topic_whose_last_offset_was_deleted_takes_nothing_along() -> None:
    """Nothing of the group is written when the topic goes: it has offsets of the other topic still."""
    world = World()
    for topic in ("t", "u"):
        world.send(OffsetCommit("g", "", None, -1, {topic: {0: CommittedOffset(1)}}, 9))
    world.send(OffsetDelete("g", {"t": (0,)}))
    written = len(world.appended)
    world.take(world.coordinator.update_topics({}, ["t"], 0))
    assert len(world.appended) == written
    assert [row[0] for row in _fetch(world, None).partitions] == ["u"]


def test_a_driver_that_knows_the_positions_has_members_commits_checked_and_answered_alone() -> None:
    world = World(no_delay(), keeps_offsets=False)
    (member,) = world.stable(1)
    generation = world.group.generation
    written = len(world.appended)
    world.advance(9_000)
    assert world.commit(member, generation=generation, offset=7) is Error.NONE
    assert world.commit(member, generation=generation + 1) is Error.ILLEGAL_GENERATION
    assert world.committed() == -1
    assert not world.of(events.OffsetsCommitted)
    assert len(world.appended) == written
    world.advance(9_000)
    assert world.state == "Stable", "the commit has kept the session of ten seconds alive"
    assert world.commit(offset=9) is Error.UNKNOWN_MEMBER_ID, "from outside, as ever"


def test_a_commit_of_which_nothing_is_stored_is_an_event() -> None:
    world = World(CoordinatorConfig(offset_metadata_max_bytes=8))
    assert world.commit(offset=7, metadata="x" * 9) is Error.OFFSET_METADATA_TOO_LARGE
    [event] = world.of(events.OffsetsCommitted)
    assert (event.partitions, event.positions, event.error) == (("t-0",), (7,), "OFFSET_METADATA_TOO_LARGE")


def test_a_commit_of_a_wrong_generation_is_no_event_either_for_a_driver_that_knows_the_positions() -> None:
    world = World(no_delay(), keeps_offsets=False)
    (member,) = world.stable(1)
    assert world.commit(member, generation=0) is Error.ILLEGAL_GENERATION
    assert world.of(events.OffsetsCommitted) == []
    assert world.commit(generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert len(world.of(events.OffsetsCommitted)) == 1, "from outside"
