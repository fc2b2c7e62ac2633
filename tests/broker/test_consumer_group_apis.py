"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848) over the wire: bytes in, bytes out."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker.asking import consumer_join, create_partitions, delete_topics, topic_id
from tests.broker.driver import Driver
from tests.broker.wire import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT

OPTIONS = {"group.consumer.assignment.interval.ms": "0"}


class Members(Driver):
    """A broker with the topics t and u, and members that send heartbeats to it."""

    def beat(self, member: str, epoch: int, version: int = 1, **values: Any) -> Any:
        """A heartbeat that says nothing but what ``values`` say."""
        silent = {"subscribed_topic_names": None, "topic_partitions": None, "group_id": "g"}
        fields = silent | {"member_id": member, "member_epoch": epoch} | values
        return self.ask(CONSUMER_GROUP_HEARTBEAT, version, **fields)

    def join(self, member: str, version: int = 1, **values: Any) -> Any:
        return self.ask(CONSUMER_GROUP_HEARTBEAT, version, **(consumer_join("g", member, "t") | values))

    def assigned(self, answer: Any) -> dict[str, list[int]]:
        """The answer's partitions by topic name."""
        names = {topic_id(self, name): name for name in ("t", "u")}
        topics = answer.assignment.topic_partitions
        return {names[one.topic_id]: sorted(one.partitions) for one in topics}

    def describe(self, *groups: str, version: int = 1) -> Any:
        return self.ask(CONSUMER_GROUP_DESCRIBE, version, group_ids=groups).groups


@pytest.fixture
def members() -> Members:
    return Members(OPTIONS, {"t": 4, "u": 2})


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


def test_a_restarted_broker_has_the_group_it_had(members: Members) -> None:
    """The journal of `serve --data` holds every record of the group, bytes and back."""
    members.join("a", instance_id="i", subscribed_topic_regex="u|x", subscribed_topic_names=("t",))
    members.join("b")
    before = members.describe("g")
    members.restart()
    assert members.describe("g") == before
    epoch = next(one.member_epoch for one in before[0].members if one.member_id == "b")
    assert members.beat("b", epoch).error_code == Error.NONE
