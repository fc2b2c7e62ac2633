"""confluent-kafka with `group.protocol=consumer` (KIP-848): alone, by regular expression, in one group with
`CooperativeConsumer`; and members of the classic protocol whose live group is upgraded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import stopping
from tests.client_libraries.members import CONSUMER, MEMBERS, TOPIC, ConfluentMember, Member
from tests.client_libraries.our_member import OurNewMember
from tests.waiting import wait_until

#: The partitions of the topic.
ALL = frozenset(range(4))
#: Heartbeats as often as it takes for a quick test.
_OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(_OPTIONS, {TOPIC: 4}) as running:
        yield running


def test_two_members_share_the_partitions_by_name_and_by_regular_expression(broker: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    with stopping([ConfluentMember(broker.address, protocol=CONSUMER)]) as members:
        wait_until(lambda: members[0].owned == ALL, "the first member owns everything")
        members.append(ConfluentMember(broker.address, topics=(f"^{TOPIC}.*",), protocol=CONSUMER))
        wait_until(lambda: _split(members), "two each")
        members.pop(0).stop()
        wait_until(lambda: members[0].owned == ALL, "the second member owns everything")


def test_librdkafka_and_our_consumer_share_and_hand_over(broker: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    ours = OurNewMember(broker.address)
    members: list[Member] = [ours]
    with stopping(members):
        wait_until(lambda: ours.owned == ALL, "all four are ours")
        theirs = ConfluentMember(broker.address, protocol=CONSUMER)
        members.append(theirs)
        wait_until(lambda: _split(members), "two each")
        assert [call for call in ours.notes.callbacks[1:] if call[1]] == [("revoked", theirs.owned)]
        members.pop(0).stop()
        wait_until(lambda: theirs.owned == ALL, "all four are theirs")


def test_members_of_the_classic_protocol_of_every_library_and_our_new_one(
    broker: EmbeddedBroker, library: str
) -> None:
    """A live group of the other library is upgraded by ours, and is classic again when ours has left."""
    theirs = MEMBERS[library](broker.address, "range")
    with stopping([theirs]) as members:
        wait_until(lambda: theirs.owned == ALL, "all four are theirs")
        members.append(OurNewMember(broker.address))
        wait_until(lambda: _split(members), "two each")
        members.pop().stop()
        wait_until(lambda: theirs.owned == ALL, "all four are theirs again")


def _split(members: Sequence[Member]) -> bool:
    owned = [number for member in members for number in member.owned]
    return sorted(owned) == [0, 1, 2, 3] and all(len(member.owned) == 2 for member in members)
