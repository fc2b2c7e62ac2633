"""Real clients, unmodified, in groups on every broker: over TCP, in real time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from groupstorm.clients.brokers import EMULATOR
from groupstorm.trace.events.coordinator import JoinAnswered
from tests.client_libraries.groups import ALL_PARTITIONS, COOPERATIVE, is_shared_out, records, stopping
from tests.client_libraries.members import Member
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.backends import Backend
from tests.conformance.members import CONFLUENT, FRANZ_GO, JAVA, LIBRARIES, OURS, Library, each_library
from tests.waiting import wait_until

PARTITIONS = len(ALL_PARTITIONS)


library = each_library(LIBRARIES)
#: The libraries that have cooperative-sticky.
cooperative_library = each_library(name for name, one in LIBRARIES.items() if one.cooperative)


class Group:
    """A group and a topic of a test's own."""

    def __init__(self, backend: Backend) -> None:
        LIBRARIES[CONFLUENT].check()  # its producer and its administrator
        self.backend = backend
        self.topic = backend.topic(PARTITIONS)
        self.name = backend.group("readers")

    def start(self, library: Library, assignor: str = "range", instance: str | None = None) -> Member:
        return library.member(
            self.backend.address, assignor, topics=(self.topic,), group=self.name, instance=instance
        )

    def produce(self, start: int, count: int) -> None:
        produce_with_confluent(self.backend.address, records(start, count), self.topic)

    def joins(self) -> list[JoinAnswered]:
        """Return the emulator's answers to JoinGroup; Kafka's coordinator does not tell."""
        assert self.backend.kind == EMULATOR
        events = list(self.backend.events)
        return [one for one in events if isinstance(one, JoinAnswered) and one.group == self.name]

    def generation(self) -> int:
        """The emulator's."""
        return max(event.generation for event in self.joins())


@pytest.fixture
def group(backend: Backend) -> Group:
    return Group(backend)


@pytest.mark.slow
def test_what_is_produced_is_consumed_by_a_group_of_three(group: Group, library: Library) -> None:
    with stopping([group.start(library) for _ in range(3)]) as members:
        wait_until(lambda: is_shared_out(members), "two partitions each")
        group.produce(0, 60)
        wait_until(lambda: sum(len(member.values) for member in members) >= 60, "all records read")
        read = Counter(value for member in members for value in member.values)
        assert read == Counter(value for _, value in records(0, 60))
        for member in members:
            assert {partition for partition, _, _ in member.notes.records} == set(member.owned)
            assert len(member.values) == 20


@pytest.mark.slow
def test_a_group_rebalances_when_members_join_and_leave(group: Group, library: Library) -> None:
    with stopping([group.start(library)]) as members:
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the first member owns everything")
        members.append(group.start(library))
        wait_until(lambda: is_shared_out(members), "three partitions each")
        members.append(group.start(library))
        wait_until(lambda: is_shared_out(members), "two partitions each")
        members.pop(0).stop()
        wait_until(lambda: is_shared_out(members), "three partitions each again")
        members.pop(0).stop()
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the last member owns everything")
    if group.backend.kind == EMULATOR:
        joined = {event.member_id for event in group.joins() if not event.error}
        assert len(joined) == 3, "nobody lost its member id in between"


@pytest.mark.slow
def test_a_group_resumes_where_it_committed(group: Group, library: Library) -> None:
    group.produce(0, 30)
    with stopping([group.start(library)]) as members:
        wait_until(lambda: len(members[0].values) == 30, "the first thirty read")
    group.produce(30, 30)
    with stopping([group.start(library)]) as members:
        wait_until(lambda: len(members[0].values) >= 30, "the next thirty read")
        assert sorted(members[0].values) == sorted(value for _, value in records(30, 30))


@pytest.mark.slow
def test_cooperative_members_give_up_in_one_round_what_others_get_in_the_next(
    group: Group, cooperative_library: Library
) -> None:
    with stopping([group.start(cooperative_library, COOPERATIVE)]) as members:
        first = members[0]
        wait_until(lambda: first.owned == ALL_PARTITIONS, "the first member owns everything")
        before = group.generation() if group.backend.kind == EMULATOR else None
        second = group.start(cooperative_library, COOPERATIVE)
        members.append(second)
        wait_until(lambda: is_shared_out(members), "three partitions each")
        moved = second.owned
        # the first member gave up exactly what moved, and was never without the rest
        assert _told(first, "revoked") == [moved]
        # the second got nothing in the round that only took away
        given = [partitions for kind, partitions in second.notes.callbacks if kind == "assigned"]
        assert given[-1] == moved
        assert not any(given[:-1])
        if before is not None:
            wait_until(lambda: group.generation() == before + 2, "two rounds for one change")


def _told(member: Member, what: str) -> list[frozenset[int]]:
    return [partitions for kind, partitions in member.notes.callbacks if kind == what and partitions]


@pytest.mark.slow
def test_a_static_member_comes_back_without_a_round(group: Group, library: Library) -> None:
    other = group.start(library, instance="other")
    with stopping([other, group.start(library, instance="restarted")]) as members:
        wait_until(lambda: is_shared_out(members), "three partitions each")
        told, owned = list(other.notes.callbacks), members[1].owned
        members.pop().stop()
        members.append(group.start(library, instance="restarted"))
        wait_until(lambda: members[1].owned == owned, "the same three as before")
        group.produce(0, 60)
        wait_until(lambda: sum(len(member.values) for member in members) >= 60, "all records read")
        assert other.notes.callbacks == told, "the other member was not told of a rebalance"


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param((JAVA, FRANZ_GO, CONFLUENT), id="java-franz-go-confluent"),
        pytest.param((OURS, JAVA, "kafka-python"), id="ours-java-kafka-python"),
    ],
)
@pytest.mark.parametrize("assignor", ["range", COOPERATIVE])
def test_libraries_share_a_group(group: Group, names: Sequence[str], assignor: str) -> None:
    """Whoever comes first leads: each library's assignor has to understand the others' subscriptions."""
    for name in names:
        LIBRARIES[name].check()
    with stopping([]) as members:
        for name in names:
            members.append(group.start(LIBRARIES[name], assignor))
            wait_until(lambda: is_shared_out(members), f"equal shares with {name}")
        group.produce(0, 60)
        wait_until(lambda: sum(len(member.values) for member in members) >= 60, "all records read")
        read = Counter(value for member in members for value in member.values)
        assert read == Counter(value for _, value in records(0, 60))
        members.pop(0).stop()
        wait_until(lambda: is_shared_out(members), "three partitions each, another leader")
        group.produce(60, 60)
        wait_until(lambda: all(len(member.values) >= 20 + 30 for member in members), "the rest read by both")
