"""Waiting for groups of real clients."""

from __future__ import annotations

import pytest

import groupstorm
from tests.client_libraries.conftest import checked
from tests.client_libraries.groups import COOPERATIVE, stopping
from tests.client_libraries.members import GROUP, MEMBERS, TOPIC
from tests.testing.members import AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_cooperative_group_is_waited_for_through_both_its_rounds(library: str) -> None:
    """Between the rounds the group is Stable as well, while the moving partitions have no owner."""
    start = MEMBERS[checked(library)]
    with groupstorm.broker({TOPIC: 6}, AT_ONCE) as broker, stopping([]) as members:
        group = broker.group(GROUP)
        for count in (1, 2):
            members.append(start(broker.bootstrap_servers, COOPERATIVE))
            group.wait_stable(members=count, partitions=6)
        assert [len(member.partitions) for member in group.members] == [3, 3]
        stable = [row for row in broker.trace if row.get("state") == "Stable"]
        assert len(stable) >= 3, "a round for the first member, two for the second"
