"""Timers of sessions and rounds where the transcripts and the recorded answers do not reach, and the
events of answers to JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import Any

from groupstorm.assignors.userdata import TopicPartition, encode_assignment
from groupstorm.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay


def _removed(world: World) -> list[tuple[str, str]]:
    return [(event.member_id, event.cause) for event in world.of(events.MemberRemoved)]


def test_a_static_member_that_came_back_is_not_new() -> None:
    """As Kafka 4.3.1 was seen to do: the five minutes do not count for the one that replaces another."""
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS))
    world.join(instance="i1", rebalance=4 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    token = world.join(instance="i1", rebalance=4 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    world.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 1)
    assert world.error(token) is None
    assert "m2" in world.group.members


def test_where_nobody_comes_the_round_waits_for_sessions_to_end() -> None:
    """Only static members are left and none has joined (KAFKA-8220's leader rule has nobody to elect)."""
    world = World(no_delay())
    world.join(instance="i1", session=20_000, rebalance=6_000)
    world.advance(0)
    world.complete()
    generation = world.group.generation
    dynamic = world.join(version=4, session=6_000, rebalance=6_000)
    assert world.joined(dynamic).error is Error.MEMBER_ID_REQUIRED
    world.leave("m2")  # a pending id that leaves a stable group brings a rebalance
    assert world.state == "PreparingRebalance"
    world.advance(6_000)
    world.advance(6_000)
    assert (world.state, world.group.generation) == ("PreparingRebalance", generation)
    world.advance(8_000)
    assert (world.state, world.group.generation) == ("Empty", generation + 1)


def test_a_sync_from_the_last_one_missing_ends_the_sync_timer_in_a_stable_group_too() -> None:
    world = World(no_delay())
    world.stable(rebalance=8_000)
    world.join("m1", rebalance=8_000)
    world.join("m2", rebalance=8_000)
    world.sync("m1")
    assert world.state == "Stable"
    world.sync("m2")
    for _ in range(10):
        world.heartbeat("m1")
        world.heartbeat("m2")
        world.advance(1_000)
    assert _removed(world) == []


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


def test_a_parked_member_does_not_expire_on_command_either() -> None:
    world = World(no_delay())
    world.stable()
    parked = world.join("m1")
    world.take(world.coordinator.expire_session("g", "m1", world.now_ms))
    assert (_removed(world), world.error(parked)) == ([], None)


def test_a_round_that_no_static_member_has_joined_is_closed_at_the_next_timeout_for_those_who_have() -> None:
    """Both are silent for the first 5 s. One joins at 7 s; the other one's session would last for 30 s."""
    world = World(no_delay())
    settings: dict[str, Any] = {"rebalance": 5_000, "session": 30_000}
    for instance in ("i1", "i2"):
        world.join(instance=instance, **settings)
    world.advance(0)
    world.join("m1", "i1", **settings)
    world.join("m2", "i2", **settings)
    world.complete()
    began_ms = world.now_ms
    world.join(**settings)
    assert world.state == "PreparingRebalance"
    world.leave("m3")
    world.advance(7_000)
    token = world.join("m1", "i1", **settings)
    world.advance(10_000)
    assert world.answered_at_ms[token] == began_ms + 10_000
    assert world.joined(token).leader == "m1"


def test_a_round_without_members_ends_at_once_although_an_id_is_pending() -> None:
    """The longest rebalance timeout of nobody is 0."""
    world = World(no_delay())
    world.stable(1)
    world.join(version=4)
    world.leave("m1")
    assert (world.state, list(world.group.members)) == ("PreparingRebalance", [])
    world.advance(0)
    assert world.state == "Empty"


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


def test_only_who_joins_during_the_initial_delay_extends_it() -> None:
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=3_000))
    world.join()
    world.advance(3_000)
    world.complete({"m1": b""})
    world.join()  # in a round of a group that was stable
    world.leave("m1")
    world.leave("m2")
    assert world.state == "Empty"
    began_ms = world.now_ms
    token = world.join()
    world.advance(3_000)
    assert world.answered_at_ms[token] == began_ms + 3_000


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


def test_an_id_that_did_not_sync_in_one_generation_owes_nothing_in_the_next() -> None:
    """The static member i2 restarts before it has synced, and a third member opens a round. All sync in the
    next generation: no time-out is left that would open another round."""
    world = World(no_delay())
    world.join(instance="i1", rebalance=8_000)
    world.join(instance="i2", rebalance=8_000)
    world.advance(0)
    world.sync("m1", instance="i1")
    world.join(instance="i2", rebalance=8_000)
    assert world.state == "Stable"
    world.join(rebalance=8_000)
    world.join("m1", "i1", rebalance=8_000)
    world.join("m3", "i2", rebalance=8_000)
    members = {"m1": "i1", "m3": "i2", "m4": None}
    assert world.group.generation == 2
    for member, instance in members.items():
        world.sync(member, instance=instance)
    for _ in range(20):
        world.advance(1_000)
        for member, instance in members.items():
            world.heartbeat(member, instance=instance)
    assert (world.state, world.group.generation) == ("Stable", 2)
    assert world.of(events.MemberRemoved) == []
