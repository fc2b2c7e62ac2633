"""What a run needs besides its members: topics that are created, grow and go, groups that go."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.clients.refusals import COORDINATOR_MOVED
from groupstorm.clients.requests import heartbeat
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.clients.wire.connection import Api, Connection, RequestTypes
from groupstorm.clients.wire.group_requests import EXCHANGES
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    DescribeGroup,
    DescribeGroupResponse,
    Heartbeat,
    HeartbeatResponse,
    LeaveGroup,
    OffsetFetch,
    OffsetFetchResponse,
)
from groupstorm.problems import InputError

CREATE_TOPICS = Api(19, "CreateTopics", 2, 7)
DELETE_TOPICS = Api(20, "DeleteTopics", 1, 5)
CREATE_PARTITIONS = Api(37, "CreatePartitions", 1, 3)
DELETE_GROUPS = Api(42, "DeleteGroups", 0, 2)
DESCRIBE_GROUPS = Api(15, "DescribeGroups", 0, 5)

#: Answers of a coordinator that is not ready.
_NOT_YET = COORDINATOR_MOVED | {Error.COORDINATOR_LOAD_IN_PROGRESS}

_TIMEOUT = datetime.timedelta(seconds=30)
_POLL_S = 0.05


async def create_topics(cluster: Cluster, topics: Mapping[str, int]) -> None:
    """Create ``topics`` (name -> partitions) and wait until all partitions have leaders.

    Replicas are the cluster's default. Raises InputError for what the cluster refuses.
    """

    def build(types: RequestTypes) -> Any:
        wanted = tuple(
            types.make(
                "CreatableTopic",
                name=name,
                num_partitions=partitions,
                replication_factor=-1,
                assignments=(),
                configs=(),
            )
            for name, partitions in topics.items()
        )
        return types.make(types.root.__name__, topics=wanted, timeout=_TIMEOUT, validate_only=False)

    answer = await cluster.ask_any(CREATE_TOPICS, build)
    _check("topic", ((topic.name, topic.error_code, topic.error_message) for topic in answer.topics))
    await _await_partitions(cluster, topics)


async def await_coordinator(cluster: Cluster, group: str) -> None:
    """Wait until somebody coordinates ``group``: a new cluster makes its offsets topic first."""
    await ask_coordinator(
        cluster, heartbeat(ConsumerConfig(group, cluster.client_id, ()), Generation(0, "nobody"))
    )


async def describe_group(cluster: Cluster, group: str) -> DescribeGroupResponse:
    """State and members; a group that is not there is Dead. Raises ConnectionLost."""
    heard = await ask_coordinator(cluster, DescribeGroup(group, version=0))
    assert isinstance(heard, DescribeGroupResponse)
    return heard


async def committed_offsets(cluster: Cluster, group: str) -> dict[str, int]:
    """What the group has committed, by partition as Kafka prints them. Raises ConnectionLost."""
    heard = await ask_coordinator(cluster, OffsetFetch(group, None, version=8))
    assert isinstance(heard, OffsetFetchResponse)
    return {f"{topic}-{partition}": offset.offset for topic, partition, offset, _ in heard.partitions}


async def ask_coordinator(
    cluster: Cluster, request: Heartbeat | DescribeGroup | OffsetFetch
) -> HeartbeatResponse | DescribeGroupResponse | OffsetFetchResponse:
    """The answer of whoever coordinates the request's group, as soon as somebody does.

    Raises ConnectionLost, and InputError where the cluster says that it will tell nobody.
    """
    exchange = EXCHANGES[type(request)]
    while True:
        found = await cluster.find_coordinator(request.group)
        if found.error is Error.NONE:
            connection = await cluster.connect(found.endpoint)
            try:
                answer = await connection.ask(
                    exchange.api,
                    exchange.api.highest,
                    lambda types: exchange.write(types, request),
                    cluster.request_timeout_ms,
                )
            finally:
                connection.close()
            heard = exchange.read(answer)
            assert isinstance(heard, HeartbeatResponse | DescribeGroupResponse | OffsetFetchResponse)
            if heard.error not in _NOT_YET:
                return heard
        elif found.error not in _NOT_YET:
            _check("group", [(request.group, found.error, None)])
        await asyncio.sleep(_POLL_S)


async def grow_topic(cluster: Cluster, topic: str, partitions: int) -> None:
    """Give ``topic`` so many partitions. Raises InputError for what the cluster refuses."""

    def build(types: RequestTypes) -> Any:
        wanted = types.make("CreatePartitionsTopic", name=topic, count=partitions, assignments=None)
        return types.make(types.root.__name__, topics=(wanted,), timeout=_TIMEOUT, validate_only=False)

    answer = await cluster.ask_any(CREATE_PARTITIONS, build)
    _check("topic", ((one.name, one.error_code, one.error_message) for one in answer.results))


async def delete_topics(cluster: Cluster, topics: Collection[str]) -> None:
    """Of a topic that is there no more nothing is said. Raises InputError for what the cluster refuses."""

    def build(types: RequestTypes) -> Any:
        return types.make(types.root.__name__, topic_names=tuple(topics), timeout=_TIMEOUT)

    answer = await cluster.ask_any(DELETE_TOPICS, build)
    results = [(one.name, one.error_code, None) for one in answer.responses]
    gone = Error.UNKNOWN_TOPIC_OR_PARTITION
    _check("topic", (result for result in results if Error(result[1]) is not gone))


async def delete_group(cluster: Cluster, group: str) -> None:
    """With the members that it still has, whose processes are gone.

    Of a group that is there no more nothing is said. Raises InputError for what the cluster refuses.
    """
    found = await cluster.find_coordinator(group)
    _check("group", [(group, found.error, None)])
    connection = await cluster.connect(found.endpoint)
    try:
        await _remove_members(connection, group, cluster.request_timeout_ms)
        answer = await connection.ask(
            DELETE_GROUPS,
            DELETE_GROUPS.highest,
            lambda types: types.make(types.root.__name__, groups_names=(group,)),
            cluster.request_timeout_ms,
        )
    finally:
        connection.close()
    results = [(one.group_id, one.error_code, None) for one in answer.results]
    _check("group", (result for result in results if Error(result[1]) is not Error.GROUP_ID_NOT_FOUND))


async def _remove_members(connection: Connection, group: str, timeout_ms: int) -> None:
    """What `kafka-consumer-groups` does when it removes members (AdminClient's RemoveMembers)."""
    described = await connection.ask(
        DESCRIBE_GROUPS,
        DESCRIBE_GROUPS.highest,
        lambda types: types.make(types.root.__name__, groups=(group,), include_authorized_operations=False),
        timeout_ms,
    )
    members = [member.member_id for one in described.groups for member in one.members]
    if not members:
        return

    def build(types: RequestTypes) -> Any:
        leaving = tuple(
            types.make("MemberIdentity", member_id=member, group_instance_id=None, reason="the run is over")
            for member in members
        )
        return types.make(types.root.__name__, group_id=group, members=leaving)

    leave = EXCHANGES[LeaveGroup].api
    await connection.ask(leave, leave.highest, build, timeout_ms)


def _check(what: str, results: Iterable[tuple[str, int, str | None]]) -> None:
    for name, code, message in results:
        error = Error(code)
        if error is not Error.NONE:
            raise InputError(
                f"{what} {name}: the cluster says {error.name}{f' ({message})' if message else ''}"
            )


async def _await_partitions(cluster: Cluster, topics: Mapping[str, int]) -> None:
    while True:
        await cluster.refresh(topics.keys())
        if all(cluster.led(topic) == partitions for topic, partitions in topics.items()):
            return
        await asyncio.sleep(_POLL_S)
