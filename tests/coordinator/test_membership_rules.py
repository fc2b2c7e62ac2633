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


def test_pending_ids_do_not_count_but_awaiting_members_do_in_an_open_round() -> None:
    world = World(no_delay(max_size=2))
    for _ in range(3):
        world.join(version=4)
    tokens = [world.join(f"m{number}", version=4) for number in (1, 2, 3)]
    assert [world.error(token) for token in tokens] == [None, None, Error.GROUP_MAX_SIZE_REACHED]
    assert world.joined(tokens[2]).member_id == ""
    assert not world.group.pending_members, "the refused id is forgotten"
    assert [event.cause for event in world.of(events.PendingMemberRemoved)] == ["group-full"]


def test_ids_are_drawn_after_the_refusals() -> None:
    world = World(no_delay(max_size=1))
    world.stable(1)
    world.join()
    world.join(kind="connect", instance="i1")
    world.leave("m1")
    world.join()
    assert "m2" in world.group.members


def test_the_leader_leaves_and_javas_order_decides_who_follows() -> None:
    world = World(no_delay())
    ids = world.stable(12)
    order = JavaHashMap[str, None]()
    for member in ids:
        order.put(member, None)
    while len(order) > 1:
        leader = world.group.leader
        assert leader is not None
        order.remove(leader)
        world.leave(leader)
        assert world.group.leader == order.first()


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


def test_a_new_static_member_of_a_full_group_is_refused_and_a_known_one_counts_as_new() -> None:
    """It asks with no id, so that Kafka 4.3.1 does not see that the group holds its instance."""
    world = _static(max_size=2)
    assert world.error(world.join(instance="i3")) is Error.GROUP_MAX_SIZE_REACHED
    assert world.error(world.join(instance="i2")) is Error.GROUP_MAX_SIZE_REACHED


def test_the_old_id_that_had_not_synced_still_brings_the_sync_timeout() -> None:
    """Kafka leaves it among those that have not synced."""
    world = _static(rebalance=8_000)
    world.join("m1", "i1", rebalance=8_000)
    world.join("m2", "i2", rebalance=8_000)
    world.sync("m1", {"m2": b"two"})
    world.join(instance="i2", version=9, rebalance=8_000)
    assert world.error(world.sync("m3", instance="i2")) is Error.NONE
    for _ in range(8):
        world.heartbeat("m1")
        world.heartbeat("m3")
        world.advance(1_000)
    assert world.state == "PreparingRebalance"
    assert [event.cause for event in world.of(events.GroupStateChanged)][-1] == "sync-timeout"
    assert world.of(events.MemberRemoved) == []


def test_failed_write_puts_the_old_id_back() -> None:
    world = _static()
    world.append_error = Error.NOT_ENOUGH_REPLICAS
    token = world.join(instance="i1", version=9, session=20_000, protocols=(("range", b"other"),))
    answer = world.joined(token)
    assert (answer.error, answer.member_id) == (Error.COORDINATOR_NOT_AVAILABLE, "")
    assert world.group.static_members["i1"] == world.group.leader == "m1"
    member = world.group.members["m1"]
    assert (member.session_timeout_ms, member.protocols) == (10_000, (("range", b""),))
    assert world.group.awaiting_join == 0
    assert world.heartbeat("m1", instance="i1") is Error.NONE


def test_a_rebalance_in_the_meantime_answers_it_and_the_write_comes_too_late() -> None:
    world = _static()
    world.append_delay_ms = 25
    token = world.join(instance="i2", version=9)
    leader = world.join("m1", "i1")
    assert world.error(token) is world.error(leader) is Error.NONE
    assert world.joined(token).generation == 3
    world.advance(25)
    assert world.state == "CompletingRebalance"


def test_a_leader_whose_write_ends_in_a_round_is_answered_by_the_round() -> None:
    """Kafka throws there, unseen: the leader would be sent members that have no protocol yet."""
    world = _static()
    world.append_delay_ms = 25
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
    world.append_delay_ms, world.append_error = 100, Error.NOT_ENOUGH_REPLICAS
    world.join(instance="i", token="back")
    world.append_error = None
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
