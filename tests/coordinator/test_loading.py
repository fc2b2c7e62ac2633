"""A coordinator takes over what another has written, or hands groups to another; transactional offsets."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DeleteGroup,
    Heartbeat,
    HeartbeatResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

PRODUCER = 7


@pytest.fixture
def world() -> World:
    return World(no_delay())


def test_a_stable_group_is_loaded_with_its_members_assignments_and_sessions(world: World) -> None:
    world.stable(members=2)
    world.commit("m1", generation=world.group.generation, offset=5)
    other = world.successor()
    assert (other.state, other.group.generation, other.group.leader) == ("Stable", 1, "m1")
    assert other.synced(other.sync("m2")).assignment == b"m2"
    assert other.committed() == 5
    other.advance(9_999)
    assert other.state == "Stable"
    other.advance(1)
    assert other.coordinator.group("g") is not None
    assert other.state == "Empty"


@pytest.mark.parametrize(("members", "rebalances"), [(2, False), (3, True)])
def test_a_loaded_group_may_have_as_many_members_as_group_max_size(members: int, rebalances: bool) -> None:
    """One more, and the loaded group opens a round, in which the places go to those who come first."""
    world = World(no_delay())
    world.stable(members)
    smaller = world.successor(max_size=2)
    assert smaller.state == ("PreparingRebalance" if rebalances else "Stable")
    assert [change.cause for change in smaller.of(events.GroupStateChanged)] == ["over-capacity"] * rebalances
    tokens = [smaller.join(f"m{number}") for number in range(1, members + 1)]
    if rebalances:
        assert smaller.error(tokens[2]) is Error.GROUP_MAX_SIZE_REACHED
        smaller.advance(60_000)
    assert [smaller.error(token) for token in tokens[:2]] == [Error.NONE] * 2
    assert sorted(smaller.group.members) == ["m1", "m2"]


def test_a_deleted_group_is_not_loaded_from_the_whole_log(world: World) -> None:
    """A log that is not compacted yet has the group's records before its tombstone."""
    world.stable(members=1)
    world.leave("m1")
    world.send(DeleteGroup("g"))
    records = [record for batch, _ in world.appended for record in batch]
    other = World(no_delay())
    other.coordinator.load(records, world.now_ms)
    assert other.coordinator.group("g") is None
    again = World(no_delay())
    again.coordinator.load([*records, *records[:1]], world.now_ms)
    assert again.coordinator.group("g") is not None


def test_what_was_deleted_is_not_loaded(world: World) -> None:
    world.commit(offset=5)
    world.send(OffsetDelete("g", {"t": (0,)}))
    assert world.successor().committed() == -1


def test_a_group_that_was_never_written_is_gone_and_offsets_alone_make_one(world: World) -> None:
    world.commit(offset=5)
    world.move()
    assert world.committed() == 5
    other = World(no_delay())
    other.driver.append_delay_ms = 1_000
    other.join()
    other.move()
    assert other.coordinator.groups == []


def _commit_under_way(world: World) -> list[Any]:
    """A commit and a heartbeat that wait for a write of 500 ms, and the sync of the next round's leader."""
    world.stable(members=2)
    world.driver.append_delay_ms = 500
    generation = world.group.generation
    commit = world.send(OffsetCommit("g", "m1", None, generation, {"t": {0: CommittedOffset(7)}}, 9))
    heartbeat = world.send(Heartbeat("g", "m1", None, generation, 4))
    world.join("m1")
    world.join("m2")
    return [commit, heartbeat, world.sync("m1", {"m1": b"new", "m2": b"new"})]


@pytest.mark.parametrize("ends", ["move", "unload"])
def test_who_waits_for_a_write_of_a_coordinator_that_gives_up_is_told(world: World, ends: str) -> None:
    waiting = _commit_under_way(world)
    assert not any(token in world.replies for token in waiting)
    if ends == "move":
        world.move()
    else:
        world.take(world.coordinator.unload(world.now_ms))
    commit, heartbeat, sync = (world.replies[token] for token in waiting)
    assert isinstance(sync, SyncGroupResponse)
    assert isinstance(commit, OffsetCommitResponse)
    assert isinstance(heartbeat, HeartbeatResponse)
    assert sync.error is Error.NOT_COORDINATOR
    assert commit.partitions == (("t", 0, Error.NOT_COORDINATOR),)
    assert heartbeat.error is Error.NOT_COORDINATOR
    assert ends == "move" or world.coordinator.next_deadline() is None


def test_a_write_of_a_former_coordinator_never_lands(world: World) -> None:
    """The log of the next one ends where it has loaded it."""
    _commit_under_way(world)
    for _ in range(2):
        world.move()
        world.advance(500)
        assert (world.state, world.group.generation, world.committed()) == ("Stable", 1, -1)
        assert world.group.members["m1"].assignment == b"m1"
    assert world.of(events.AppendFailed) == []


# offsets in transactions


def txn_commit(world: World, offset: int = 3, **more: Any) -> Error:
    fields = {"member_id": "", "group_instance_id": None, "generation": -1, **more}
    request = TxnOffsetCommit("g", PRODUCER, offsets={"t": {0: CommittedOffset(offset)}}, version=4, **fields)
    response = world.replies[world.send(request)]
    assert isinstance(response, OffsetCommitResponse)
    return response.partitions[0][2]


def end(world: World, is_commit: bool) -> None:
    world.take(world.coordinator.end_transaction(PRODUCER, is_commit, world.now_ms))


def stable_offset(world: World) -> tuple[int, Error]:
    response = world.replies[world.send(OffsetFetch("g", {"t": (0,)}, 9, require_stable=True))]
    assert isinstance(response, OffsetFetchResponse)
    return response.partitions[0][2].offset, response.partitions[0][3]


def test_deleted_topics_take_waiting_offsets_along(world: World) -> None:
    txn_commit(world)
    world.take(world.coordinator.update_topics({}, ["t"], world.now_ms))
    assert stable_offset(world) == (-1, Error.NONE)


def test_offsets_that_wait_are_loaded_as_such(world: World) -> None:
    txn_commit(world)
    other = world.successor()
    assert stable_offset(other) == (-1, Error.UNSTABLE_OFFSET_COMMIT)
    end(other, is_commit=True)
    assert stable_offset(other) == (3, Error.NONE)
    end(world, is_commit=True)
    assert stable_offset(world.successor()) == (3, Error.NONE)


def test_every_partition_of_a_transaction_is_committed_and_a_deleted_one_is_not(world: World) -> None:
    offsets = {"t": {number: CommittedOffset(number) for number in range(3)}, "u": {0: CommittedOffset(9)}}
    world.commit(offset=5)
    world.send(TxnOffsetCommit("g", PRODUCER, "", None, -1, offsets, 4))
    world.send(OffsetDelete("g", {"u": (0,), "t": (1,)}))
    assert stable_offset(world) == (-1, Error.UNSTABLE_OFFSET_COMMIT)
    end(world, is_commit=True)
    assert world.coordinator.committed_offsets("g") == {"t-0": 0, "t-2": 2}
    assert world.of(events.OperationFailed) == []
