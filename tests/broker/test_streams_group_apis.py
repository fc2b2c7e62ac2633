"""StreamsGroupHeartbeat and StreamsGroupDescribe (KIP-1071) over the wire: bytes in, bytes out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, create_partitions
from tests.broker.driver import PEER, Driver
from tests.broker.streams_members import streams_beat, streams_join, subtopology, topic, topology
from tests.broker.wire import STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT

HEARTBEAT_MS = 5_000
OPTIONS = {
    "groupstorm.compatibility": "4.4.0-repaired",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
CHANGELOG = "g-store-changelog"
#: Resource types of configurations.
GROUP, TOPIC = 32, 2
MISSING = f"Internal topics are missing: {CHANGELOG}"


class Members(Driver):
    """A broker with the topic t, and members that send heartbeats to it."""

    def __init__(self, **options: str) -> None:
        super().__init__(OPTIONS | options, {"t": 2})

    def beat(self, member: str, epoch: int, **values: Any) -> Any:
        return self.ask(STREAMS_GROUP_HEARTBEAT, 1, **streams_beat("g", member, epoch, **values))

    def join(self, member: str, **values: Any) -> Any:
        return self.ask(STREAMS_GROUP_HEARTBEAT, 1, **streams_join("g", "t", member=member, **values))

    def describe(self) -> Any:
        return self.ask(STREAMS_GROUP_DESCRIBE, 1, group_ids=("g",)).groups[0]


@pytest.fixture
def members() -> Members:
    return Members()


def tasks(answer: Any) -> dict[str, list[int]] | None:
    """The active tasks of an answer, by subtopology."""
    if answer.active_tasks is None:
        return None
    return {one.subtopology_id: list(one.partitions) for one in answer.active_tasks}


def test_a_topic_that_cannot_be_made_is_left_alone_for_two_intervals(members: Members) -> None:
    changelog = topic(CHANGELOG, replicas=2)
    wanted = topology(subtopology("t", state_changelog_topics=(changelog,)))
    details = [members.join("a", topology=wanted).status[0].status_detail]
    for after_ms in (0, 2 * HEARTBEAT_MS - 1, 1, 0):
        members.advance(after_ms)
        details.append(members.beat("a", 2).status[0].status_detail)
    failed = (
        f"{MISSING}; Creation failed: {CHANGELOG} (Unable to replicate the partition 2 time(s): The target "
        "replication factor of 2 cannot be reached because only 1 broker(s) are registered or some brokers "
        "have all their log directories cordoned.)."
    )
    assert details == [MISSING, failed, failed, MISSING, failed]


def test_topics_that_grow_give_more_tasks(members: Members) -> None:
    stateless = topology(subtopology("t"))
    assert tasks(members.join("a", topology=stateless)) == {"0": [0, 1]}
    create_partitions(members, 3, 3, "t")
    assert tasks(members.beat("a", 2)) == {"0": [0, 1, 2]}


def test_a_topology_that_no_record_can_hold_never_reaches_the_coordinator() -> None:
    """The coordinator would refuse it in the same way, after it has worked through it."""
    options: dict[str, Any] = {"message.max.bytes": "1000"}
    members = Members(**options)
    answer = members.join("a", topology=topology(subtopology(*(f"topic-{n}" for n in range(200)))))
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
    assert members.describe().error_code == Error.GROUP_ID_NOT_FOUND
    assert members.events == []


def test_an_error_has_a_list_of_statuses_that_is_empty(members: Members) -> None:
    """By the schema: the list may be null, and is empty by default."""
    frame = wire.request(STREAMS_GROUP_HEARTBEAT, 1, **streams_beat("g", "a", 1))
    (output,) = members.broker.refuse(1, PEER, frame, Error.NOT_COORDINATOR, 1_000).outputs
    assert output.payload is not None
    _, answer = wire.parse_response(STREAMS_GROUP_HEARTBEAT, 1, output.payload[4:])
    assert (answer.error_code, answer.status, answer.active_tasks) == (Error.NOT_COORDINATOR, (), None)


def test_a_restarted_broker_has_the_group_it_had(members: Members) -> None:
    """The journal of `serve --data` holds every record of the group and its configurations. The numbers of
    partitions that were decided are no record."""
    alter_configs(members, 1, ("streams.num.standby.replicas", 0, "1"), kind=GROUP, name="g")
    members.join("a", instance_id="i", rack_id="r", process_id="p")
    members.join("b")
    members.beat("a", 2, instance_id="i")
    before = members.describe()
    members.restart()
    assert replace(members.describe(), topology=None) == replace(before, topology=None)
    epoch = next(one.member_epoch for one in before.members if one.member_id == "b")
    answer = members.beat("b", epoch)
    assert answer.error_code == Error.NONE
    owned = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    for _ in range(3):
        for member, instance in (("a", "i"), ("b", None)):
            at = next(one.member_epoch for one in members.describe().members if one.member_id == member)
            members.beat(member, at, instance_id=instance, **owned)
    standby = [one.target_assignment.standby_tasks for one in members.describe().members]
    assert sorted(number for tasks in standby for one in tasks for number in one.partitions) == [0, 1]
