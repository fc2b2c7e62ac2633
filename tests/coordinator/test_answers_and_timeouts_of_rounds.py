"""The events of answers to JoinGroup and SyncGroup, and what a member that does not sync leaves behind."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition, encode_assignment
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

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
