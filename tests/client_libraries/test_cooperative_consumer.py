"""`CooperativeConsumer` in one group with other libraries' cooperative consumers, on the emulator."""

from __future__ import annotations

from collections import Counter

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.conftest import PARTITIONS
from tests.client_libraries.groups import (
    ALL_PARTITIONS,
    COOPERATIVE,
    is_shared_out,
    records,
    stopping,
)
from tests.client_libraries.members import MEMBERS, wait_until
from tests.client_libraries.our_member import OurMember
from tests.client_libraries.producers import PRODUCERS


@pytest.mark.slow
def test_a_mixed_group_shares_and_hands_over(broker: EmbeddedBroker, cooperative_library: str) -> None:
    ours = OurMember(broker.address, COOPERATIVE)
    with stopping([ours]) as members:
        wait_until(lambda: is_shared_out(members), "all six are ours")
        theirs = MEMBERS[cooperative_library](broker.address, COOPERATIVE)
        members.append(theirs)
        wait_until(lambda: is_shared_out(members), "three each")
        moved = theirs.owned
        assert ours.notes.callbacks[0] == ("assigned", ALL_PARTITIONS)
        changes = [call for call in ours.notes.callbacks[1:] if call[1]]
        assert changes == [("revoked", moved)]
        PRODUCERS[cooperative_library](broker.address, records(0, 60))
        wait_until(lambda: len(ours.values) + len(theirs.values) == 60, "all records read")
        assert {partition for partition, _, _ in ours.notes.records} == ALL_PARTITIONS - moved
        theirs.stop()
        members.remove(theirs)
        wait_until(lambda: is_shared_out(members), "all six are ours again")
        PRODUCERS[cooperative_library](broker.address, records(60, 60))
        wait_until(lambda: len(ours.values) + len(theirs.values) >= 120, "the rest read")
    read = Counter([*ours.values, *theirs.values])
    assert read == Counter(value for _, value in records(0, 120))


@pytest.mark.slow
def test_they_lead_or_we_lead(broker: EmbeddedBroker, cooperative_library: str) -> None:
    """The first member leads, and its assignor decides: the other library's consumer, then ours."""
    theirs = MEMBERS[cooperative_library](broker.address, COOPERATIVE)
    with stopping([theirs]) as members:
        wait_until(lambda: is_shared_out(members), "all six are theirs")
        members += [OurMember(broker.address, COOPERATIVE) for _ in range(2)]
        wait_until(lambda: is_shared_out(members), "two each")
        theirs.stop()
        members.remove(theirs)
        wait_until(lambda: is_shared_out(members), "three each")
        PRODUCERS[cooperative_library](broker.address, records(0, PARTITIONS * 5))
        wait_until(lambda: sum(len(one.values) for one in members) == PARTITIONS * 5, "all read")
        for one in members:  # nobody was told of a partition that it kept
            told = [
                partition
                for method, gone in one.notes.callbacks
                for partition in gone
                if method == "assigned"
            ]
            assert len(told) == len(set(told))
