"""Heartbeats and descriptions of consumer, share and streams groups over the wire: bytes in, bytes out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from groupstorm.assignors.userdata.consumer_protocol import encode_assignment
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events.coordinator import (
    ClientReason,
    MemberAdded,
    MemberReconciled,
    MemberRemoved,
    SyncAnswered,
)
from groupstorm.trace.events.scenario import PartitionsDeleted
from tests.broker import wire
from tests.broker.asking import (
    alter_configs,
    consumer_join,
    create_partitions,
    delete_topics,
    describe_configs,
    join,
    share_beat,
    topic_id,
)
from tests.broker.driver import PEER, Driver
from tests.broker.streams_members import streams_beat, streams_join, subtopology, topic, topology
from tests.broker.wire import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
)

CONSUMER_OPTIONS = {"group.consumer.assignment.interval.ms": "0"}


class ConsumerMembers(Driver):
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
def consumers() -> ConsumerMembers:
    return ConsumerMembers(CONSUMER_OPTIONS, {"t": 4, "u": 2})


def test_topics_reach_the_consumer_group_when_they_grow_and_go(consumers: ConsumerMembers) -> None:
    consumers.join("a", subscribed_topic_regex=".*", subscribed_topic_names=None)
    assert consumers.assigned(consumers.beat("a", 1)) == {"t": [0, 1, 2, 3], "u": [0, 1]}
    create_partitions(consumers, 3, 3, "u")
    assert consumers.assigned(consumers.beat("a", 2)) == {"t": [0, 1, 2, 3], "u": [0, 1, 2]}
    delete_topics(consumers, 5, "t")
    answer = consumers.beat("a", 3)
    assert (answer.error_code, answer.member_epoch) == (Error.NONE, 3)
    (described,) = consumers.describe("g")
    assert [one.topic_name for one in described.members[0].target_assignment.topic_partitions] == ["u"]


def test_a_restarted_broker_has_the_consumer_group_it_had(consumers: ConsumerMembers) -> None:
    """The journal of `serve --data` holds every record of the group, bytes and back."""
    consumers.join("a", instance_id="i", subscribed_topic_regex="u|x", subscribed_topic_names=("t",))
    consumers.join("b")
    before = consumers.describe("g")
    consumers.restart()
    assert consumers.describe("g") == before
    epoch = next(one.member_epoch for one in before[0].members if one.member_id == "b")
    assert consumers.beat("b", epoch).error_code == Error.NONE


SHARE_OPTIONS = {"groupstorm.compatibility": "4.4.0-repaired", "group.share.assignment.interval.ms": "0"}
#: Resource type of groups (ConfigResource.Type).
GROUP = 32


class ShareMembers(Driver):
    """A broker with the topic t, and members that send heartbeats to it."""

    def __init__(self, **options: str) -> None:
        super().__init__(SHARE_OPTIONS | options, {"t": 2})

    def beat(self, member: str, epoch: int, *topics: str) -> Any:
        """The answer to a heartbeat, behind which the broker asks for share partitions."""
        answer = self.ask(SHARE_GROUP_HEARTBEAT, 1, **share_beat("g", member, epoch, *topics))
        self.advance(0)
        return answer

    def describe(self) -> Any:
        return self.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=("g",)).groups


@pytest.fixture
def sharers() -> ShareMembers:
    return ShareMembers()


def test_a_share_group_has_options_of_its_own(sharers: ShareMembers) -> None:
    alter_configs(sharers, 1, ("share.heartbeat.interval.ms", 0, "7000"), kind=GROUP, name="g")
    assert sharers.beat("a", 0, "t").heartbeat_interval == wire.milliseconds(7_000)
    shown = {one.name: one.value for one in describe_configs(sharers, 4, GROUP, "g").configs}
    assert shown["share.heartbeat.interval.ms"] == "7000"
    assert shown["share.session.timeout.ms"] == "45000"


def test_a_restarted_broker_has_the_share_group_it_had(sharers: ShareMembers) -> None:
    """The journal of `serve --data` holds every record of the group."""
    sharers.beat("a", 0, "t")
    sharers.beat("a", 2)
    before = sharers.describe()
    sharers.restart()
    assert sharers.describe() == before
    assert sharers.beat("b", 0, "t").assignment is not None
    assert sharers.beat("a", 3).error_code == Error.NONE


def test_the_share_offset_of_a_partition_below_zero_is_refused(sharers: ShareMembers) -> None:
    partition = {"partition_index": -1, "start_offset": 0}
    topics = ({"topic_name": "t", "partitions": (partition,)},)
    broken = sharers.ask(wire.ALTER_SHARE_OFFSETS, 0, group_id="new", topics=topics)
    assert broken.error_code == Error.UNKNOWN_SERVER_ERROR
    assert broken.error_message.endswith(" -1")


HEARTBEAT_MS = 5_000
STREAMS_OPTIONS = {
    "groupstorm.compatibility": "4.4.0-repaired",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
CHANGELOG = "g-store-changelog"
MISSING = f"Internal topics are missing: {CHANGELOG}"


class StreamsMembers(Driver):
    """A broker with the topic t, and members that send heartbeats to it."""

    def __init__(self, **options: str) -> None:
        super().__init__(STREAMS_OPTIONS | options, {"t": 2})

    def beat(self, member: str, epoch: int, **values: Any) -> Any:
        return self.ask(STREAMS_GROUP_HEARTBEAT, 1, **streams_beat("g", member, epoch, **values))

    def join(self, member: str, **values: Any) -> Any:
        return self.ask(STREAMS_GROUP_HEARTBEAT, 1, **streams_join("g", "t", member=member, **values))

    def describe(self) -> Any:
        return self.ask(STREAMS_GROUP_DESCRIBE, 1, group_ids=("g",)).groups[0]


@pytest.fixture
def threads() -> StreamsMembers:
    return StreamsMembers()


def tasks(answer: Any) -> dict[str, list[int]] | None:
    """The active tasks of an answer, by subtopology."""
    if answer.active_tasks is None:
        return None
    return {one.subtopology_id: list(one.partitions) for one in answer.active_tasks}


def test_a_topic_that_cannot_be_made_is_left_alone_for_two_intervals(threads: StreamsMembers) -> None:
    changelog = topic(CHANGELOG, replicas=2)
    wanted = topology(subtopology("t", state_changelog_topics=(changelog,)))
    details = [threads.join("a", topology=wanted).status[0].status_detail]
    for after_ms in (0, 2 * HEARTBEAT_MS - 1, 1, 0):
        threads.advance(after_ms)
        details.append(threads.beat("a", 2).status[0].status_detail)
    failed = (
        f"{MISSING}; Creation failed: {CHANGELOG} (Unable to replicate the partition 2 time(s): The target "
        "replication factor of 2 cannot be reached because only 1 broker(s) are registered or some brokers "
        "have all their log directories cordoned.)."
    )
    assert details == [MISSING, failed, failed, MISSING, failed]


def test_topics_that_grow_give_more_tasks(threads: StreamsMembers) -> None:
    stateless = topology(subtopology("t"))
    assert tasks(threads.join("a", topology=stateless)) == {"0": [0, 1]}
    create_partitions(threads, 3, 3, "t")
    assert tasks(threads.beat("a", 2)) == {"0": [0, 1, 2]}


def test_a_topology_that_no_record_can_hold_never_reaches_the_coordinator() -> None:
    """The coordinator would refuse it in the same way, after it has worked through it."""
    options: dict[str, Any] = {"message.max.bytes": "1000"}
    threads = StreamsMembers(**options)
    answer = threads.join("a", topology=topology(subtopology(*(f"topic-{n}" for n in range(200)))))
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
    assert threads.describe().error_code == Error.GROUP_ID_NOT_FOUND
    assert threads.events == []


def test_an_error_of_a_streams_group_has_a_list_of_statuses_that_is_empty(threads: StreamsMembers) -> None:
    """By the schema: the list may be null, and is empty by default."""
    frame = wire.request(STREAMS_GROUP_HEARTBEAT, 1, **streams_beat("g", "a", 1))
    (output,) = threads.broker.refuse(1, PEER, frame, Error.NOT_COORDINATOR, 1_000).outputs
    assert output.payload is not None
    _, answer = wire.parse_response(STREAMS_GROUP_HEARTBEAT, 1, output.payload[4:])
    assert (answer.error_code, answer.status, answer.active_tasks) == (Error.NOT_COORDINATOR, (), None)


def test_a_restarted_broker_has_the_streams_group_it_had(threads: StreamsMembers) -> None:
    """The journal of `serve --data` holds every record of the group and its configurations. The numbers of
    partitions that were decided are no record."""
    alter_configs(threads, 1, ("streams.num.standby.replicas", 0, "1"), kind=GROUP, name="g")
    threads.join("a", instance_id="i", rack_id="r", process_id="p")
    threads.join("b")
    threads.beat("a", 2, instance_id="i")
    before = threads.describe()
    threads.restart()
    assert replace(threads.describe(), topology=None) == replace(before, topology=None)
    epoch = next(one.member_epoch for one in before.members if one.member_id == "b")
    answer = threads.beat("b", epoch)
    assert answer.error_code == Error.NONE
    owned = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    for _ in range(3):
        for member, instance in (("a", "i"), ("b", None)):
            at = next(one.member_epoch for one in threads.describe().members if one.member_id == member)
            threads.beat(member, at, instance_id=instance, **owned)
    standby = [one.target_assignment.standby_tasks for one in threads.describe().members]
    assert sorted(number for tasks in standby for one in tasks for number in one.partitions) == [0, 1]


def test_the_trace_has_the_reasons_that_clients_give(driver: Driver) -> None:
    """KIP-800: as in a broker's log, only of joins and leaves that count, and ahead of what they change."""
    asked = join(driver, 9, reason="a first try gets an id")
    member = driver.answers[asked].member_id
    join(driver, 9, member_id=member, reason="need to re-join")
    driver.advance(3_000)
    unknown = {"member_id": "x", "group_instance_id": None, "reason": "unknown"}
    leaving = unknown | {"member_id": member, "reason": "consumer poll timeout has expired."}
    driver.ask(wire.LEAVE_GROUP, 5, group_id="g", members=(unknown, leaving))
    told = [
        (event.member_id, event.detail, type(behind))
        for event, behind in itertools.pairwise(driver.events)
        if isinstance(event, ClientReason)
    ]
    assert told == [
        (member, "need to re-join", MemberAdded),
        (member, "consumer poll timeout has expired.", MemberRemoved),
    ]


def test_the_trace_says_that_assigned_partitions_are_deleted(consumers: ConsumerMembers) -> None:
    """Else those of a deleted topic would be without an owner for good. `u` is none of the group's topics."""
    consumers.join("a", subscribed_topic_names=("t",))
    delete_topics(consumers, 5, "t", "u")
    consumers.beat("a", 2)
    told = [one for one in consumers.events if isinstance(one, PartitionsDeleted)]
    assert told == [PartitionsDeleted("g", ("t",), ("t-0", "t-1", "t-2", "t-3"))]
    held = [one.partitions for one in consumers.events if isinstance(one, MemberReconciled)]
    assert held[-1] == ()


def test_the_trace_says_that_what_a_leader_assigned_does_not_exist(driver: Driver) -> None:
    """Its metadata may be of before a topic was deleted."""
    asked = join(driver, 3)
    driver.advance(3_000)
    member = driver.answers[asked].member_id
    plan = {"member_id": member, "assignment": encode_assignment([("orders", 0), ("gone", 0)])}
    own = {"group_id": "g", "generation_id": 1, "member_id": member}
    driver.ask(wire.SYNC_GROUP, 3, assignments=(plan,), **own)
    told = [one for one in driver.events if isinstance(one, SyncAnswered | PartitionsDeleted)]
    assert told[1:] == [PartitionsDeleted("g", ("gone",), ("gone-0",))]
