"""Real clients, unmodified, in groups of the emulator: over TCP, in real time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from groupstorm.coordinator.events import JoinAnswered
from groupstorm.coordinator.server.embedded import EmbeddedBroker
from tests.clients_real.conftest import PARTITIONS
from tests.clients_real.members import MEMBERS, Member, wait_until
from tests.clients_real.producers import PRODUCERS

ALL_PARTITIONS = frozenset(range(PARTITIONS))
COOPERATIVE = "cooperative-sticky"


@contextmanager
def stopping(members: list[Member]) -> Iterator[list[Member]]:
    """Members added to the list are stopped at the end, whatever happens."""
    try:
        yield members
    finally:
        for member in members:
            member.stop()


def is_shared_out(members: list[Member]) -> bool:
    """Everybody owns the same number of partitions and every partition has one owner."""
    for member in members:
        assert member.failure is None
    owned = [partition for member in members for partition in member.owned]
    return sorted(owned) == sorted(ALL_PARTITIONS) and len({len(member.owned) for member in members}) == 1


def records(start: int, count: int) -> list[tuple[int, str]]:
    return [(number % PARTITIONS, f"record-{number}") for number in range(start, start + count)]


def test_what_is_produced_is_consumed_by_a_group_of_three(broker: EmbeddedBroker, library: str) -> None:
    with stopping([MEMBERS[library](broker.address) for _ in range(3)]) as members:
        wait_until(lambda: is_shared_out(members), "two partitions each")
        PRODUCERS[library](broker.address, records(0, 60))
        wait_until(lambda: sum(len(member.values) for member in members) >= 60, "all records read")
        read = Counter(value for member in members for value in member.values)
        assert read == Counter(value for _, value in records(0, 60))
        for member in members:
            assert {partition for partition, _, _ in member.notes.records} == set(member.owned)
            assert len(member.values) == 20
    assert broker.closed == [], "no request was refused"


def test_a_group_rebalances_when_members_join_and_leave(broker: EmbeddedBroker, library: str) -> None:
    with stopping([MEMBERS[library](broker.address)]) as members:
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the first member owns everything")
        members.append(MEMBERS[library](broker.address))
        wait_until(lambda: is_shared_out(members), "three partitions each")
        members.append(MEMBERS[library](broker.address))
        wait_until(lambda: is_shared_out(members), "two partitions each")
        members.pop(0).stop()
        wait_until(lambda: is_shared_out(members), "three partitions each again")
        members.pop(0).stop()
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the last member owns everything")
    joined = {
        event.member_id for _, event in broker.events if isinstance(event, JoinAnswered) and not event.error
    }
    assert len(joined) == 3, "nobody lost its member id in between"


def test_a_group_resumes_where_it_committed(broker: EmbeddedBroker, library: str) -> None:
    PRODUCERS[library](broker.address, records(0, 30))
    with stopping([MEMBERS[library](broker.address)]) as members:
        wait_until(lambda: len(members[0].values) == 30, "the first thirty read")
    PRODUCERS[library](broker.address, records(30, 30))
    with stopping([MEMBERS[library](broker.address)]) as members:
        wait_until(lambda: len(members[0].values) >= 30, "the next thirty read")
        assert sorted(members[0].values) == sorted(value for _, value in records(30, 30))


def test_cooperative_members_give_up_in_one_round_what_others_get_in_the_next(
    broker: EmbeddedBroker, cooperative_library: str
) -> None:
    member_type = MEMBERS[cooperative_library]
    with stopping([member_type(broker.address, COOPERATIVE)]) as members:
        first = members[0]
        wait_until(lambda: first.owned == ALL_PARTITIONS, "the first member owns everything")
        before = _generation(broker)
        second = member_type(broker.address, COOPERATIVE)
        members.append(second)
        wait_until(lambda: is_shared_out(members), "three partitions each")
        moved = second.owned
        # the first member gave up exactly what moved, and was never without the rest
        revoked = [
            partitions for kind, partitions in first.notes.callbacks if kind == "revoked" and partitions
        ]
        assert revoked == [moved]
        # the second got nothing in the round that only took away
        given = [partitions for kind, partitions in second.notes.callbacks if kind == "assigned"]
        assert given[-1] == moved
        assert not any(given[:-1])
        wait_until(lambda: _generation(broker) == before + 2, "two rounds for one change")


def _generation(broker: EmbeddedBroker) -> int:
    return max(event.generation for _, event in broker.events if isinstance(event, JoinAnswered))
