"""Timers of sessions and rounds where the transcripts and the recorded answers do not reach, and the
events of answers to JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import Any

from groupstorm.assignors.userdata import TopicPartition, encode_assignment
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay


def _removed(world: World) -> list[tuple[str, str]]:
    return [(event.member_id, event.cause) for event in world.of(events.MemberRemoved)]


def test_a_session_that_is_ended_on_command_ends_as_by_its_timer() -> None:
    """Two members, one of which goes silent; in the other world it is told to expire at that time."""

    def one_alive(world: World) -> None:
        world.stable()
        world.advance(6_000)
        world.heartbeat("m2")

    by_timer, by_command = World(no_delay()), World(no_delay())
    one_alive(by_timer)
    by_timer.advance(4_000)
    one_alive(by_command)
    by_command.take(by_command.coordinator.expire_session("g", "m1", by_command.now_ms))
    assert _removed(by_command) == [("m1", "session-expired")]
    assert by_command.events == by_timer.events
    assert by_command.state == "PreparingRebalance"


def test_the_session_of_an_id_that_was_given_out_ends_on_command() -> None:
    world = World(no_delay())
    world.stable()
    world.join(version=4)
    world.take(world.coordinator.expire_session("g", "m3", world.now_ms))
    gone = [(event.member_id, event.cause) for event in world.of(events.PendingMemberRemoved)]
    assert gone == [("m3", "session-expired")]
    assert (_removed(world), world.state) == ([], "Stable")
    assert world.error(world.join("m3", version=4)) is Error.UNKNOWN_MEMBER_ID


def test_ending_the_session_of_nobody_changes_nothing() -> None:
    world = World(no_delay())
    world.stable()
    before = len(world.events)
    for group, member in (("g", "nobody"), ("none", "m1")):
        world.take(world.coordinator.expire_session(group, member, world.now_ms))
    assert len(world.events) == before
    assert world.coordinator.next_deadline() is not None


def test_a_round_whose_timeout_is_0_and_that_nobody_joins_looks_again_after_a_millisecond() -> None:
    world = World(no_delay())
    settings: dict[str, Any] = {"rebalance": 0, "session": 30_000}
    world.join(instance="i1", **settings)
    closed = world.coordinator.fire_one(world.now_ms)  # before the sync times out at the same instant
    assert closed is not None
    world.take(closed)
    world.complete()
    world.advance(1_000)
    world.join(**settings)
    world.leave("m2")
    world.advance(0)
    assert world.state == "PreparingRebalance"
    assert world.coordinator.next_deadline() == world.now_ms + 1


def test_once_all_have_synced_nothing_of_the_round_is_awaited() -> None:
    world = World(no_delay())
    world.stable(rebalance=7_000, session=10_000)
    assert world.coordinator.next_deadline() == 10_000, "the sessions"


PLAN = {"m1": encode_assignment([TopicPartition("t", 0), TopicPartition("t", 2)]), "m2": b""}


def test_each_answer_to_a_join_is_an_event() -> None:
    """Both wait for the first round to close; an id that nobody has is refused at once."""
    world = World(no_delay())
    world.join()
    world.join()
    assert world.of(events.JoinAnswered) == []
    world.advance(0)
    world.join("m9")
    assert world.of(events.JoinAnswered) == [
        events.JoinAnswered("g", "c", "m1", 1, None),
        events.JoinAnswered("g", "c", "m2", 1, None),
        events.JoinAnswered("g", "c", "m9", -1, "UNKNOWN_MEMBER_ID"),
    ]


def test_each_answer_to_a_sync_is_an_event_with_the_partitions() -> None:
    """The follower waits for the leader's plan, which has no bytes for it."""
    world = World(no_delay())
    world.join()
    world.join()
    world.advance(0)
    world.sync("m2")
    assert world.of(events.SyncAnswered) == []
    world.sync("m1", PLAN)
    world.sync("m1", generation=7)
    found = world.of(events.SyncAnswered)
    assert [(each.member_id, each.generation, each.error, each.partitions) for each in found] == [
        ("m1", 1, None, ("t-0", "t-2")),
        ("m2", 1, None, None),
        ("m1", 7, "ILLEGAL_GENERATION", None),
    ]


def test_nothing_is_left_of_members_that_did_not_sync() -> None:
    """Sessions of 10 s and a rebalance timeout of 8 s: nobody syncs, and the group is Empty at 8 s. It has no
    timer then, not even one that would end a session at 10 s."""
    world = World(no_delay())
    world.join(rebalance=8_000)
    world.join(rebalance=8_000)
    world.advance(0)
    assert world.state == "CompletingRebalance"
    world.advance(8_000)
    assert world.state == "Empty"
    assert [event.cause for event in world.of(events.MemberRemoved)] == ["sync-timeout", "sync-timeout"]
    assert (world.coordinator.next_deadline() or 60_000) > 10_000
