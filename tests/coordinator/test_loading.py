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
from groupstorm.coordinator.records import OffsetCommitRecord
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


def test_static_members_are_loaded_under_their_instance(world: World) -> None:
    world.join(instance="i", version=5)
    world.advance(0)
    world.complete()
    other = world.successor()
    assert other.heartbeat("m1", instance="i") is Error.NONE
    assert other.heartbeat("m9", instance="i") is Error.FENCED_INSTANCE_ID


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


def test_a_round_that_was_open_is_forgotten_and_its_members_join_again(world: World) -> None:
    world.stable(members=1)
    world.join()  # opens a round that nobody closes
    other = world.successor()
    assert (other.state, other.group.generation, list(other.group.members)) == ("Stable", 1, ["m1"])
    assert other.heartbeat("m2") is Error.UNKNOWN_MEMBER_ID


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


def test_a_deleted_group_is_in_no_later_snapshot_and_does_not_come_back_with_a_move(world: World) -> None:
    world.stable(members=1)
    world.leave("m1")
    world.send(DeleteGroup("g"))
    for one in (world, world.successor()):
        assert one.coordinator.snapshot() == []
        one.commit(offset=5)
        one.move()
        assert (one.group.generation, one.group.protocol_type, one.committed()) == (0, None, 5)


def test_what_was_deleted_is_not_loaded(world: World) -> None:
    world.commit(offset=5)
    world.send(OffsetDelete("g", {"t": (0,)}))
    assert world.successor().committed() == -1


def test_moving_a_group_between_join_and_sync_answers_the_parked_sync(world: World) -> None:
    world.stable(members=2)
    world.join("m2", protocols=(("range", b"new"),))
    world.join("m1")
    parked = world.sync("m2", token="sync")
    world.move()
    assert world.error(parked) is Error.NOT_COORDINATOR
    assert world.heartbeat("m2", generation=3) is Error.ILLEGAL_GENERATION


def test_a_group_that_was_never_written_is_gone_and_offsets_alone_make_one(world: World) -> None:
    world.commit(offset=5)
    world.move()
    assert world.committed() == 5
    other = World(no_delay())
    other.append_delay_ms = 1_000
    other.join()
    other.move()
    assert other.coordinator.groups == []


def test_unloading_leaves_nobody_without_an_answer(world: World) -> None:
    world.join(token="a")
    world.join(token="b", group="h")
    world.take(world.coordinator.unload(world.now_ms))
    assert [world.error("a"), world.error("b")] == [Error.NOT_COORDINATOR] * 2
    assert world.coordinator.next_deadline() is None


def _commit_under_way(world: World) -> list[Any]:
    """A commit and a heartbeat that wait for a write of 500 ms, and the sync of the next round's leader."""
    world.stable(members=2)
    world.append_delay_ms = 500
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


def test_a_group_whose_end_is_not_written_yet_is_there_again_at_the_next_coordinator(world: World) -> None:
    world.stable(members=1)
    world.leave("m1")
    world.append_delay_ms = 500
    deleted = world.send(DeleteGroup("g"))
    world.move()
    assert world.replies[deleted] == (Error.NOT_COORDINATOR,)
    world.advance(500)
    assert world.state == "Empty"


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


def test_the_first_offset_of_a_transaction_makes_an_empty_group(world: World) -> None:
    assert txn_commit(world) is Error.NONE
    assert world.of(events.GroupCreated) == [("g", "offset-commit")]
    assert (world.state, world.describe().state) == ("Empty", "Empty")


def test_a_commit_that_came_after_the_one_in_the_transaction_stays(world: World) -> None:
    txn_commit(world, offset=3)
    world.commit(offset=2)
    end(world, is_commit=True)
    assert world.committed() == 2


def test_deleting_an_offset_takes_the_one_that_waits_along(world: World) -> None:
    txn_commit(world)
    world.send(OffsetDelete("g", {"t": (0,)}))
    end(world, is_commit=True)
    assert world.committed() == -1


def test_a_deleted_group_takes_the_offsets_that_wait_along(world: World) -> None:
    """One is committed alone, one waits alone, one does both: each has one record."""
    world.commit(offset=1)
    world.send(OffsetCommit("g", "", None, -1, {"t": {1: CommittedOffset(1)}}, 9))
    txn_commit(world)
    world.send(TxnOffsetCommit("g", PRODUCER, "", None, -1, {"t": {2: CommittedOffset(1)}}, 4))
    world.send(DeleteGroup("g"))
    records = world.appended[-1][0]
    deleted = [one.partition for one in records if isinstance(one, OffsetCommitRecord)]
    assert sorted(deleted) == [0, 1, 2]
    end(world, is_commit=True)
    assert world.committed() == -1


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
