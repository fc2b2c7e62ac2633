"""ShareGroupHeartbeat and ShareGroupDescribe (KIP-932) over the wire: bytes in, bytes out."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, describe_configs, join, topic_id
from tests.broker.driver import Driver
from tests.broker.share_members import Sharing
from tests.broker.wire import SHARE_GROUP_DESCRIBE, SHARE_GROUP_HEARTBEAT

OPTIONS = {"groupstorm.compatibility": "4.4.0-repaired", "group.share.assignment.interval.ms": "0"}
GROUP = 32


class Members(Driver):
    """A broker with the topic t, and members that send heartbeats to it."""

    def __init__(self, **options: str) -> None:
        super().__init__(OPTIONS | options, {"t": 2})

    def beat(self, member: str, epoch: int, *topics: str) -> Any:
        """The answer to a heartbeat, behind which the broker asks for share partitions."""
        answer = self.ask(
            SHARE_GROUP_HEARTBEAT,
            1,
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=topics or None,
        )
        self.advance(0)
        return answer

    def describe(self, *groups: str) -> Any:
        return self.ask(
            SHARE_GROUP_DESCRIBE, 1, group_ids=groups or ("g",), include_authorized_operations=False
        ).groups


@pytest.fixture
def members() -> Members:
    return Members()


def partitions(members: Members, answer: Any) -> list[int] | None:
    """The partitions of t in an answer or a description."""
    if answer.assignment is None:
        return None
    listed = answer.assignment.topic_partitions
    assert all(one.topic_id == topic_id(members, "t") for one in listed)
    return sorted(number for one in listed for number in one.partitions)


def test_members_join_share_partitions_are_described_and_leave(members: Members) -> None:
    first = members.beat("a", 0, "t")
    assert (first.error_code, first.member_id, first.member_epoch) == (Error.NONE, "a", 2)
    assert partitions(members, first) == []
    given = members.beat("a", 2)
    assert (given.member_epoch, partitions(members, given)) == (3, [0, 1])
    for name in ("b", "c"):
        members.beat(name, 0, "t")
    (group,) = members.describe()
    assert (group.error_code, group.group_state, group.assignor_name) == (Error.NONE, "Stable", "simple")
    assert sorted((one.member_id, one.subscribed_topic_names) for one in group.members) == [
        (name, ("t",)) for name in ("a", "b", "c")
    ]
    for name in ("a", "b", "c"):
        assert members.beat(name, -1).member_epoch == -1
    (group,) = members.describe()
    assert (group.group_state, group.members) == ("Empty", ())


def test_errors_are_told(members: Members) -> None:
    answer = members.beat("a", 5)
    assert (answer.error_code, answer.error_message) == (Error.GROUP_ID_NOT_FOUND, "Share group g not found.")
    (unknown,) = members.describe("h")
    assert (unknown.error_code, unknown.error_message) == (Error.GROUP_ID_NOT_FOUND, "Group h not found.")
    members = Members(**{"message.max.bytes": "1000"})
    names = [f"topic-{number}" for number in range(200)]
    assert members.beat("a", 0, *names).error_code == Error.UNKNOWN_SERVER_ERROR


def test_a_group_is_listed_and_deleted(members: Members) -> None:
    members.beat("a", 0, "t")
    listed = members.ask(wire.LIST_GROUPS, 5, states_filter=(), types_filter=("share",)).groups
    assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed] == [
        ("g", "share", "Stable", "share")
    ]
    (refused,) = members.ask(wire.DELETE_GROUPS, 2, groups_names=("g",)).results
    assert refused.error_code == Error.NON_EMPTY_GROUP
    members.beat("a", -1)
    (deleted,) = members.ask(wire.DELETE_GROUPS, 2, groups_names=("g",)).results
    assert deleted.error_code == Error.NONE
    assert members.describe()[0].error_code == Error.GROUP_ID_NOT_FOUND


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
    assert partitions(members, members.beat("b", 0, "t")) is not None
    assert members.beat("a", 3).error_code == Error.NONE


def offsets(members: Sharing, *groups: str, topics: object = None) -> Any:
    asked = tuple({"group_id": one, "topics": topics} for one in groups or ("g",))
    return members.ask(wire.DESCRIBE_SHARE_OFFSETS, 1, groups=asked).groups


def alter(members: Sharing, group: str, *offsets: tuple[int, int], topic: str = "orders") -> Any:
    key = wire.ALTER_SHARE_OFFSETS
    partitions = tuple({"partition_index": number, "start_offset": offset} for number, offset in offsets)
    asked = {"topic_name": topic, "partitions": partitions}
    return members.ask(key, 0, group_id=group, topics=(asked,))


def delete(members: Sharing, *topics: str) -> Any:
    key = wire.DELETE_SHARE_OFFSETS
    asked = tuple({"topic_name": topic} for topic in topics)
    return members.ask(key, 0, group_id="g", topics=asked)


def rows(group: Any) -> list[tuple[str, int, int, int]]:
    """Topic, partition, start offset and lag."""
    return [
        (topic.topic_name, one.partition_index, one.start_offset, one.lag)
        for topic in group.topics
        for one in topic.partitions
    ]


def test_start_offsets_are_described_altered_and_deleted() -> None:
    members = Sharing()
    members.produce(b"0", b"1", b"2")
    assert rows(offsets(members)[0]) == [("orders", 0, -1, -1), ("orders", 1, -1, -1)]
    refused = alter(members, "g", (0, 1))
    assert (refused.error_code, refused.error_message) == (Error.NON_EMPTY_GROUP, "The group is not empty.")
    assert delete(members, "orders").error_code == Error.NON_EMPTY_GROUP
    assert members.fetch("a") == [(0, 2, 1)]
    members.acknowledge("a", (0, 0, 1))
    assert rows(offsets(members)[0])[0] == ("orders", 0, 0, 2)
    members.fetch("a", epoch=-1)
    members.beat("a", -1)
    answer = alter(members, "g", (0, 1), (7, 0))
    assert [one.error_code for one in answer.responses[0].partitions] == [
        Error.NONE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    topics = {"topic_name": "orders", "partitions": (0,)}
    assert rows(offsets(members, "g", topics=(topics,))[0]) == [("orders", 0, 1, 2)]
    deleted = delete(members, "orders", "none")
    assert [(one.topic_name, one.error_code) for one in deleted.responses] == [
        ("none", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", Error.NONE),
    ]
    assert rows(offsets(members)[0]) == []
    again = delete(members, "orders").responses
    assert again[0].error_message == "There is no offset information to delete."


def test_altering_the_offsets_of_an_unknown_group_makes_it() -> None:
    members = Sharing()
    assert alter(members, "new", (1, 0)).error_code == Error.NONE
    assert rows(offsets(members, "new")[0]) == [("orders", 1, 0, 0)]
    listed = members.ask(wire.LIST_GROUPS, 5, states_filter=(), types_filter=("share",)).groups
    assert ("new", "Empty") in [(one.group_id, one.group_state) for one in listed]
    unknown = alter(members, "new", (1, 0), topic="none").responses[0].partitions[0]
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    broken = alter(members, "new", (-1, 0))
    assert broken.error_code == Error.UNKNOWN_SERVER_ERROR
    assert broken.error_message.endswith(" -1")
    join(members, 2, "classic")
    assert alter(members, "classic", (1, 0)).error_code == Error.GROUP_ID_NOT_FOUND
