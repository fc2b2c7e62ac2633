"""`groupstorm serve --data` is killed under a group of static members and started again on its port."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.clients.brokers.jvm import held_ports
from tests.broker import wire
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient
from tests.client_libraries.conftest import PARTITIONS
from tests.client_libraries.groups import is_shared_out, stopping
from tests.client_libraries.members import GROUP, MEMBERS, TOPIC, Member
from tests.waiting import wait_until

MEMBERS_COUNT = 2


def state_and_size(client: RawClient) -> tuple[str, int]:
    """The group's state and the number of its members, of one moment."""
    (group,) = client.ask(wire.DESCRIBE_GROUPS, 0, groups=(GROUP,)).groups
    return group.group_state, len(group.members)


@pytest.mark.slow
def test_a_group_of_static_members_survives_a_kill_in_its_first_round(library: str, tmp_path: Path) -> None:
    """The new group's first record is the only one that is written when the broker dies."""
    options: tuple[str, ...] = (
        "--data",
        str(tmp_path / "data"),
        "--set",
        "group.initial.rebalance.delay.ms=4000",
    )
    members: list[Member] = []
    with held_ports(1) as (port,), stopping(members):
        options = (*options, "--port", str(port))
        with serving(*options, "--topic", f"{TOPIC}:{PARTITIONS}") as (process, address):
            members += [
                MEMBERS[library](f"127.0.0.1:{port}", instance=f"i{number}")
                for number in range(MEMBERS_COUNT)
            ]
            with RawClient(address) as client:
                wait_until(
                    lambda: state_and_size(client) == ("PreparingRebalance", MEMBERS_COUNT),
                    "every member is in the first round",
                )
            process.kill()
        with serving(*options) as (_, address), RawClient(address) as client:
            wait_until(lambda: is_shared_out(members), "the group shares the partitions")
            assert state_and_size(client) == ("Stable", MEMBERS_COUNT)
            for member in members:
                member.stop()
