"""Real clients with the newer protocol (KIP-848): alone, beside classic members, in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.client_libraries.groups import ALL_PARTITIONS, COOPERATIVE, is_shared_out, records, stopping
from tests.client_libraries.members import CONSUMER, Member
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.backends import PATIENT, Backend, Backends
from tests.conformance.members import CONFLUENT, FRANZ_GO, JAVA, LIBRARIES, OURS, Library, each, each_library
from tests.waiting import wait_until

PARTITIONS = len(ALL_PARTITIONS)
#: The libraries that have the protocol.
NAMES = (CONFLUENT, OURS, JAVA, FRANZ_GO)


@pytest.fixture
def group(backends: Backends, kind: str) -> ConsumerGroup:
    LIBRARIES[CONFLUENT].check()  # its producer
    return ConsumerGroup(backends.needed(kind, PATIENT))


library = each_library(NAMES)


class ConsumerGroup:
    """A group and a topic of a test's own."""

    def __init__(self, backend: Backend) -> None:
        self._address = backend.address
        self._topic = backend.topic(PARTITIONS)
        self._name = backend.group("readers")

    def start(self, library: Library, instance: str | None = None, pattern: str = "") -> Member:
        """A member of the newer protocol. ``pattern``: it subscribes to this, with the topic as `{}`."""
        topics = (pattern.format(self._topic) if pattern else self._topic,)
        return library.member(
            self._address, topics=topics, group=self._name, instance=instance, protocol=CONSUMER
        )

    def start_classic(self, library: Library, assignor: str = COOPERATIVE) -> Member:
        return library.member(self._address, assignor, topics=(self._topic,), group=self._name)

    def check_everything_is_read(self, members: Sequence[Member], start: int) -> None:
        """Produce sixty records: each of them is read."""
        produce_with_confluent(self._address, records(start, 60), self._topic)
        wanted = {value for _, value in records(start, 60)}
        wait_until(
            lambda: wanted <= {value for member in members for value in member.values}, "all records read"
        )


@pytest.mark.slow
def test_members_share_and_hand_over(group: ConsumerGroup, library: Library) -> None:
    with stopping([group.start(library)]) as members:
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the first member owns everything")
        members.append(group.start(library))
        wait_until(lambda: is_shared_out(members), "three partitions each")
        group.check_everything_is_read(members, 0)
        kept = members[0].owned
        members.append(group.start(library))
        wait_until(lambda: is_shared_out(members), "two partitions each")
        assert members[0].owned < kept, "it gave one up and got no other"
        group.check_everything_is_read(members, 60)
        members.pop(0).stop()
        wait_until(lambda: is_shared_out(members), "three partitions each again")
        read = Counter(value for member in members for value in member.values)
        assert max(read.values()) == 1, "nothing twice"


def test_a_regular_expression_is_resolved_by_the_broker(group: ConsumerGroup) -> None:
    confluent = LIBRARIES[CONFLUENT]
    with stopping([group.start(confluent), group.start(confluent, pattern="^{}.*")]) as members:
        wait_until(lambda: is_shared_out(members), "three partitions each")


@pytest.mark.parametrize("name", each([CONFLUENT, OURS, JAVA]))
def test_a_static_member_returns(group: ConsumerGroup, name: str) -> None:
    """franz-go 1.22.2 is left out: its member comes back with other partitions, on Kafka 4.3.1 too."""
    library = LIBRARIES[name]
    library.check()
    other = group.start(library, instance="other")
    with stopping([other, group.start(library, instance="restarted")]) as members:
        wait_until(lambda: is_shared_out(members), "three partitions each")
        told, owned = list(other.notes.callbacks), members[1].owned
        members.pop().stop()
        members.append(group.start(library, instance="restarted"))
        wait_until(lambda: members[1].owned == owned, "the same three as before")
        group.check_everything_is_read(members, 0)
        assert other.notes.callbacks == told, "the other member was not told of a rebalance"


@pytest.mark.slow
def test_a_group_of_all_libraries(group: ConsumerGroup) -> None:
    for name in NAMES:
        LIBRARIES[name].check()
    members: list[Member] = []
    with stopping(members):
        for number, name in enumerate(NAMES):
            if len(members) == 3:  # four cannot have equal shares
                members.pop(0).stop()
            members.append(group.start(LIBRARIES[name]))
            wait_until(lambda: is_shared_out(members), f"equal shares with {name}")
            group.check_everything_is_read(members, 60 * number)


@pytest.mark.slow
@pytest.mark.parametrize("library", each(list(LIBRARIES)), indirect=True)
def test_a_rolling_migration_and_back(group: ConsumerGroup, library: Library) -> None:
    """Classic members are replaced one by one, and come back one by one."""
    newer = library if library.name in NAMES else LIBRARIES[OURS]
    # confluent-kafka: see the last test; the others with range have no newer member of their own
    assignor = COOPERATIVE if library.name in {*NAMES} - {CONFLUENT} else "range"

    def classic() -> Member:
        return group.start_classic(library, assignor)

    def replacement() -> Member:
        return group.start(newer)

    with stopping([classic(), classic()]) as members:
        wait_until(lambda: is_shared_out(members), "classic members share")
        group.check_everything_is_read(members, 0)
        for step, start in enumerate((replacement, replacement, classic, classic), 1):
            members.pop(0).stop()
            members.append(start())
            wait_until(lambda: is_shared_out(members), f"equal shares after step {step}")
            group.check_everything_is_read(members, 60 * step)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_group_that_librdkafka_leads_by_cooperative_sticky_is_not_upgraded(group: ConsumerGroup) -> None:
    """Its leader copies the members' user data into their assignments: to the broker a custom assignor."""
    confluent = LIBRARIES[CONFLUENT]
    with stopping([group.start_classic(confluent)]) as members:
        wait_until(lambda: members[0].owned == ALL_PARTITIONS, "the first member owns everything")
        members.append(group.start_classic(confluent))
        wait_until(lambda: is_shared_out(members), "three partitions each")
        refused = group.start(confluent)
        wait_until(lambda: refused.failure is not None, "the upgrade is refused")
        assert "The group id does not exist" in str(refused.failure)
        group.check_everything_is_read(members, 0)
