"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848) over the wire: bytes in, bytes out."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from groupstorm.broker.apis import apis_of
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.changes import Change
from groupstorm.broker.journal import decode, encode
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, create_partitions, delete_topics, topic_id, versions
from tests.broker.driver import Driver
from tests.broker.wire import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT, milliseconds, structure

OPTIONS = {"group.consumer.assignment.interval.ms": "0"}
#: Resource type of groups (ConfigResource.Type).
GROUP = 32


class Members(Driver):
    """A broker with the topics t and u, and members that send heartbeats to it."""

    def __init__(self, journal: list[Change] | None = None) -> None:
        super().__init__(OPTIONS, {} if journal else {"t": 4, "u": 2})
        if journal is not None:
            self.broker = make_broker(OPTIONS, {}, journal=journal, now_ms=self.now_ms)

    def beat(self, member: str, epoch: int, version: int = 1, **values: Any) -> Any:
        """A heartbeat that says nothing but what ``values`` say."""
        silent = {"subscribed_topic_names": None, "topic_partitions": None, "group_id": "g"}
        fields = silent | {"member_id": member, "member_epoch": epoch} | values
        return self.ask(CONSUMER_GROUP_HEARTBEAT, version, **fields)

    def join(self, member: str, version: int = 1, **values: Any) -> Any:
        joins = {"rebalance_timeout": milliseconds(30_000), "topic_partitions": ()}
        return self.beat(member, 0, version, **(joins | {"subscribed_topic_names": ("t",)} | values))

    def assigned(self, answer: Any) -> dict[str, list[int]]:
        """The answer's partitions by topic name."""
        names = {topic_id(self, name): name for name in ("t", "u")}
        topics = answer.assignment.topic_partitions
        return {names[one.topic_id]: sorted(one.partitions) for one in topics}

    def describe(self, *groups: str, version: int = 1) -> Any:
        return self.ask(CONSUMER_GROUP_DESCRIBE, version, group_ids=groups).groups


@pytest.fixture
def members() -> Members:
    return Members()


@pytest.mark.parametrize("version", versions(CONSUMER_GROUP_HEARTBEAT))
def test_heartbeat_in_each_version(members: Members, version: int) -> None:
    joined = members.join("", version) if version == 0 else members.join("mine", version)
    assert (joined.error_code, joined.member_epoch) == (Error.NONE, 2)
    assert joined.heartbeat_interval == milliseconds(5_000)
    assert len(joined.member_id) == 22 if version == 0 else joined.member_id == "mine"
    assert members.assigned(joined) == {"t": [0, 1, 2, 3]}
    quiet = members.beat(joined.member_id, 2, version)
    assert (quiet.error_code, quiet.assignment) == (Error.NONE, None)
    left = members.beat(joined.member_id, -1, version)
    assert (left.error_code, left.member_epoch) == (Error.NONE, -1)


def test_owned_partitions_by_topic_id_acknowledge_a_revocation(members: Members) -> None:
    members.join("a")
    members.join("b")
    told = members.beat("a", 2)
    assert members.assigned(told) == {"t": [0, 1]}
    owned = structure(
        CONSUMER_GROUP_HEARTBEAT, 1, "TopicPartitions", topic_id=topic_id(members, "t"), partitions=(0, 1)
    )
    assert members.beat("a", 2, topic_partitions=(owned,)).member_epoch == 3
    assert members.assigned(members.beat("b", 3)) == {"t": [2, 3]}


def test_refusals_have_kafkas_errors_and_a_message(members: Members) -> None:
    members.join("a")
    strange = structure(
        CONSUMER_GROUP_HEARTBEAT, 1, "TopicPartitions", topic_id=uuid.UUID(int=7), partitions=(2**31 - 1,)
    )
    for answer, error in (
        (members.join(""), Error.INVALID_REQUEST),
        (members.join("b", subscribed_topic_regex="("), Error.INVALID_REGULAR_EXPRESSION),
        (members.join("b", server_assignor="nonsense"), Error.UNSUPPORTED_ASSIGNOR),
        (members.beat("a", 99), Error.FENCED_MEMBER_EPOCH),
        (members.beat("a", 1, topic_partitions=(strange,)), Error.FENCED_MEMBER_EPOCH),
        (members.beat("b", 2), Error.UNKNOWN_MEMBER_ID),
        (members.beat("b", 2, group_id="none"), Error.GROUP_ID_NOT_FOUND),
        (members.beat("a", -3), Error.INVALID_REQUEST),
    ):
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (error, 0, None)
        assert answer.error_message
    assert [one.member_id for one in members.describe("g")[0].members] == ["a"]


def test_topics_reach_the_group_when_they_grow_and_go(members: Members) -> None:
    members.join("a", subscribed_topic_regex=".*", subscribed_topic_names=None)
    assert members.assigned(members.beat("a", 1)) == {"t": [0, 1, 2, 3], "u": [0, 1]}
    create_partitions(members, 3, 3, "u")
    assert members.assigned(members.beat("a", 2)) == {"t": [0, 1, 2, 3], "u": [0, 1, 2]}
    delete_topics(members, 5, "t")
    answer = members.beat("a", 3)
    assert (answer.error_code, answer.member_epoch) == (Error.NONE, 3)
    (described,) = members.describe("g")
    assert [one.topic_name for one in described.members[0].target_assignment.topic_partitions] == ["u"]


def test_options_of_a_group_take_effect_at_its_next_heartbeat(members: Members) -> None:
    changed = ("consumer.heartbeat.interval.ms", 0, "9000")
    assert alter_configs(members, 1, changed, kind=GROUP, name="g") is Error.NONE
    assert members.join("a").heartbeat_interval == milliseconds(9_000)
    assert members.join("a", group_id="h").heartbeat_interval == milliseconds(5_000)


@pytest.mark.parametrize("version", versions(CONSUMER_GROUP_DESCRIBE))
def test_describe_in_each_version(members: Members, version: int) -> None:
    members.join("a", instance_id="i", rack_id="r", server_assignor="range")
    group, other = members.describe("g", "other", version=version)
    assert (group.error_code, group.group_state, group.assignor_name) == (Error.NONE, "Stable", "range")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")
    assert (member.client_id, member.client_host, member.member_epoch) == ("raw", "/127.0.0.1", 2)
    assert member.subscribed_topic_names == ("t",)
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_name, topic.topic_id) == ("t", topic_id(members, "t"))
        assert topic.partitions == (0, 1, 2, 3)
    if version >= 1:
        assert member.member_type == 1
    assert (other.error_code, other.error_message) == (Error.GROUP_ID_NOT_FOUND, "Group other not found.")


def test_a_classic_member_joins_a_consumer_group(members: Members) -> None:
    members.join("a")
    metadata = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
    protocols = (structure(wire.JOIN_GROUP, 9, "JoinGroupRequestProtocol", name="range", metadata=metadata),)
    joins = {
        "group_id": "g",
        "session_timeout": milliseconds(10_000),
        "rebalance_timeout": milliseconds(60_000),
        "protocol_type": "consumer",
        "protocols": protocols,
    }
    refused = members.ask(wire.JOIN_GROUP, 9, **joins)
    assert refused.error_code == Error.MEMBER_ID_REQUIRED
    joined = members.ask(wire.JOIN_GROUP, 9, **joins, member_id=refused.member_id)
    assert (joined.error_code, joined.generation_id, joined.leader) == (Error.NONE, 3, "")
    kinds = {one.member_id: one.member_type for one in members.describe("g")[0].members}
    assert kinds == {"a": 1, joined.member_id: 0}


def test_older_releases_hide_the_protocol() -> None:
    assert CONSUMER_GROUP_HEARTBEAT in apis_of("4.x")
    for release in ("2.8", "3.9"):
        assert not {CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE} & apis_of(release).keys()


def test_a_restarted_broker_has_the_group_it_had(members: Members) -> None:
    """The journal of `serve --data` holds every record of the group, bytes and back."""
    members.join("a", instance_id="i", subscribed_topic_regex="u|x", subscribed_topic_names=("t",))
    members.join("b")
    before = members.describe("g")
    changes, _ = decode(encode(members.broker.snapshot()))
    restarted = Members(changes)
    assert restarted.describe("g") == before
    epoch = next(one.member_epoch for one in before[0].members if one.member_id == "b")
    assert restarted.beat("b", epoch).error_code == Error.NONE
