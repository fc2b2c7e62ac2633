"""Who may be in a group, who leads it, which protocol it speaks."""

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
