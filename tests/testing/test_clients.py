"""Waiting for groups of real clients."""

from __future__ import annotations

import importlib.util

import pytest

import groupstorm
from tests.client_libraries.members import GROUP, TOPIC, ConfluentMember, KafkaPythonMember, Member
from tests.testing.members import AT_ONCE

CLIENTS = {"confluent_kafka": ConfluentMember, "kafka": KafkaPythonMember}


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(CLIENTS))
def test_a_cooperative_group_is_waited_for_through_both_its_rounds(module: str) -> None:
    """Between the rounds the group is Stable as well, while the moving partitions have no owner."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module} (extra `kafka`)")
    start: type[Member] = CLIENTS[module]
    with groupstorm.broker({TOPIC: 6}, AT_ONCE) as broker:
        group = broker.group(GROUP)
        members = [start(broker.bootstrap_servers, "cooperative-sticky")]
        try:
            group.wait_stable(members=1, partitions=6)
            members.append(start(broker.bootstrap_servers, "cooperative-sticky"))
            group.wait_stable(members=2, partitions=6)
            assert [len(member.partitions) for member in group.members] == [3, 3]
            stable = [row for row in broker.trace if row.get("state") == "Stable"]
            assert len(stable) >= 3, "a round for the first member, two for the second"
        finally:
            for member in members:
                member.stop()
