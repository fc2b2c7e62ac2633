"""ShareGroupHeartbeat and ShareGroupDescribe (KIP-932) over the wire: bytes in, bytes out."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, describe_configs, share_beat
from tests.broker.driver import Driver
from tests.broker.wire import SHARE_GROUP_DESCRIBE, SHARE_GROUP_HEARTBEAT

OPTIONS = {"groupstorm.compatibility": "4.4.0-repaired", "group.share.assignment.interval.ms": "0"}
GROUP = 32


class Members(Driver):
    """A broker with the topic t, and members that send heartbeats to it."""

    def __init__(self, **options: str) -> None:
        super().__init__(OPTIONS | options, {"t": 2})

    def beat(self, member: str, epoch: int, *topics: str) -> Any:
        """The answer to a heartbeat, behind which the broker asks for share partitions."""
        answer = self.ask(SHARE_GROUP_HEARTBEAT, 1, **share_beat("g", member, epoch, *topics))
        self.advance(0)
        return answer

    def describe(self) -> Any:
        return self.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=("g",)).groups


@pytest.fixture
def members() -> Members:
    return Members()


def test_a_group_has_options_of_its_own(members: Members) -> None:
    alter_configs(members, 1, ("share.heartbeat.interval.ms", 0, "7000"), kind=GROUP, name="g")
    assert members.beat("a", 0, "t").heartbeat_interval == wire.milliseconds(7_000)
    shown = {one.name: one.value for one in describe_configs(members, 4, GROUP, "g").configs}
    assert shown["share.heartbeat.interval.ms"] == "7000"
    assert shown["share.session.timeout.ms"] == "45000"


def test_a_restarted_broker_has_the_group_it_had(members: Members) -> None:
    """The journal of `serve --data` holds every record of the group."""
    members.beat("a", 0, "t")
    members.beat("a", 2)
    before = members.describe()
    members.restart()
    assert members.describe() == before
    assert members.beat("b", 0, "t").assignment is not None
    assert members.beat("a", 3).error_code == Error.NONE


def test_a_subscription_that_no_record_can_hold_is_refused() -> None:
    members = Members(**{"message.max.bytes": "1000"})
    names = [f"topic-{number}" for number in range(200)]
    assert members.beat("a", 0, *names).error_code == Error.UNKNOWN_SERVER_ERROR


def test_a_group_is_listed_with_its_type(members: Members) -> None:
    members.beat("a", 0, "t")
    listed = members.ask(wire.LIST_GROUPS, 5, states_filter=(), types_filter=("share",)).groups
    assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed] == [
        ("g", "share", "Stable", "share")
    ]


def test_the_offset_of_a_partition_below_zero_is_refused(members: Members) -> None:
    partition = {"partition_index": -1, "start_offset": 0}
    topics = ({"topic_name": "t", "partitions": (partition,)},)
    broken = members.ask(wire.ALTER_SHARE_OFFSETS, 0, group_id="new", topics=topics)
    assert broken.error_code == Error.UNKNOWN_SERVER_ERROR
    assert broken.error_message.endswith(" -1")
