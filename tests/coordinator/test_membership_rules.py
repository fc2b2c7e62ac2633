"""Who may be in a group, who leads it, which protocol it speaks; static members, that come back under a
new id (KIP-345)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.errors import Error
from groupstorm.javahash import JavaHashMap
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

_NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky", "a", "b", "Aa", "BB"]
_LISTS = st.lists(st.permutations(_NAMES).map(tuple), min_size=1, max_size=12)


@given(_LISTS, st.sets(st.sampled_from(_NAMES), min_size=1))
def test_the_vote_equals_counting_one_by_one(lists: list[tuple[str, ...]], common: set[str]) -> None:
    """Ties, and names of one bucket ("Aa" and "BB" have one hash), go as Java's HashMap of votes yields."""
    group = ClassicGroup("g")
    for number, names in enumerate(lists):
        protocols = tuple((name, b"") for name in names if name in common)
        group.add(Member(f"member-{number * 7919}", None, ("c", ""), (1, 1), "consumer", protocols), None)
    votes: JavaHashMap[str, int] = JavaHashMap()
    for member in group.members.values():
        choice = next(name for name in member.names if name in common)
        votes.put(choice, (votes.get(choice) or 0) + 1)
    winner, most = "", 0
    for name, count in votes.items():
        if count > most:
            winner, most = name, count
    assert group.select_protocol() == winner


def _static(rebalance: int = 60_000, **options: int) -> World:
    """m1 (i1) leads a stable group, m2 (i2) follows."""
    world = World(no_delay(**options))
    world.join(instance="i1", rebalance=rebalance)
    world.advance(0)
    world.join(instance="i2", rebalance=rebalance)
    world.join("m1", "i1", rebalance=rebalance)
    assert world.group.leader == "m1"
    world.complete({"m1": b"one", "m2": b"two"})
    return world


def test_a_leader_whose_write_ends_in_a_round_is_answered_by_the_round() -> None:
    """Kafka throws there, unseen: the leader would be sent members that have no protocol yet."""
    world = _static()
    world.driver.append_delay_ms = 25
    token = world.join(instance="i1", version=9)
    world.join()
    world.advance(25)
    assert (world.state, world.error(token)) == ("PreparingRebalance", None)
    assert world.of(events.OperationFailed) == []
    world.join("m2", "i2")
    assert (world.error(token), world.joined(token).generation) == (Error.NONE, 3)


def test_a_return_that_cannot_be_written_is_an_event_each_way_and_fences_the_new_id() -> None:
    """Also if the new id has joined a round and waits in SyncGroup meanwhile."""
    world = World(no_delay())
    world.join(instance="i")
    world.advance(0)
    world.complete()
    world.driver.append_delay_ms, world.driver.append_error = 100, Error.NOT_ENOUGH_REPLICAS
    world.join(instance="i", token="back")
    world.driver.append_error = None
    world.join()
    assert world.error("back") is Error.NONE
    parked = world.sync("m2", {"m2": b"plan"})
    world.advance(100)
    assert world.error(parked) is Error.FENCED_INSTANCE_ID
    assert [(one.member_id, one.previous_member_id) for one in world.of(events.MemberReplaced)] == [
        ("m2", "m1"),
        ("m1", "m2"),
    ]
    assert world.group.static_members == {"i": "m1"}
