"""Administration for a run: create, grow and delete topics, describe and delete groups."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.error_tables import COORDINATOR_MOVED
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import heartbeat
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import BrokerConnection, Build, ClientApi, ConnectionLost, fields
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint

CREATE_TOPICS = ClientApi(19, "CreateTopics", 2, 7)
DELETE_TOPICS = ClientApi(20, "DeleteTopics", 1, 5)
CREATE_PARTITIONS = ClientApi(37, "CreatePartitions", 1, 3)
DELETE_GROUPS = ClientApi(42, "DeleteGroups", 0, 2)
INCREMENTAL_ALTER_CONFIGS = ClientApi(44, "IncrementalAlterConfigs", 0, 1)
DESCRIBE_CONFIGS = ClientApi(32, "DescribeConfigs", 1, 4)
CONSUMER_GROUP_DESCRIBE = ClientApi(69, "ConsumerGroupDescribe", 0, 1)
#: The first version that tells the lag.
DESCRIBE_SHARE_GROUP_OFFSETS = ClientApi(90, "DescribeShareGroupOffsets", 1, 1)

#: Errors of a coordinator that is not ready.
_NOT_YET = COORDINATOR_MOVED | {Error.COORDINATOR_LOAD_IN_PROGRESS}

#: ConfigResource.Type
_BROKER, _GROUP = 4, 32

_TIMEOUT = datetime.timedelta(seconds=30)
_POLL_S = 0.05


async def create_topics(cluster: ClusterClient, topics: Mapping[str, int]) -> None:
    """Create ``topics`` (name -> partitions) and wait until all partitions have leaders.

    The replication factor is the cluster's default. Raises InputError if the cluster refuses a topic.
    """
    default = {"replication_factor": -1, "assignments": (), "configs": ()}
    wanted = [{"name": name, "num_partitions": count, **default} for name, count in topics.items()]
    build = fields(topics=wanted, timeout=_TIMEOUT, validate_only=False)
    response = await cluster.ask_any(CREATE_TOPICS, build)
    _check("topic", ((topic.name, topic.error_code, topic.error_message) for topic in response.topics))
    await _await_partitions(cluster, topics)


async def broker_options(cluster: ClusterClient, names: Collection[str]) -> dict[str, str]:
    """The values of these options on the cluster's first broker; without those that it does not tell.

    A user needs the right to describe the cluster's configuration. Raises ConnectionLost.
    """
    node_id = await _first_node(cluster)
    broker = {
        "resource_type": _BROKER,
        "resource_name": str(node_id),
        "configuration_keys": tuple(names),
    }
    build = fields(resources=[broker], include_synonyms=False, include_documentation=False)
    response = await cluster.ask_node(node_id, DESCRIBE_CONFIGS, build, cluster.request_timeout_ms)
    return {
        option.name: option.value
        for result in response.results
        for option in result.configs
        if option.name in names and option.value is not None
    }


async def _first_node(cluster: ClusterClient) -> int:
    """A Kafka that has just started answers Metadata without brokers: ask again, as its own clients do."""
    await cluster.refresh(())
    try:
        async with asyncio.timeout(cluster.request_timeout_ms / 1000):
            while not cluster.node_ids():
                await asyncio.sleep(_POLL_S)
                await cluster.refresh(())
    except TimeoutError as late:
        raise ConnectionLost("the cluster names no broker") from late
    return cluster.node_ids()[0]


async def await_coordinator(cluster: ClusterClient, group: str) -> None:
    """Wait until ``group`` has a coordinator: a new cluster creates its offsets topic first."""
    await ask_coordinator(
        cluster, heartbeat(ConsumerConfig(group, cluster.client_id, ()), Generation(0, "nobody"))
    )


async def describe_group(cluster: ClusterClient, group: str) -> messages.DescribeGroupResponse:
    """State and members; an unknown group is Dead. Raises ConnectionLost."""
    response = await ask_coordinator(cluster, messages.DescribeGroup(group, version=0))
    assert isinstance(response, messages.DescribeGroupResponse)
    return response


async def describe_consumer_group(cluster: ClusterClient, group: str) -> Any:
    """State, members and targets of a consumer group (KIP-848), as Kafka's DescribedGroup.

    Its error code says if the group is of another kind. Raises ConnectionLost, also if the group has no
    coordinator now, and InputError if the broker does not know the request.
    """
    found = await cluster.find_coordinator(group)
    if found.error is not Error.NONE:
        raise ConnectionLost(f"group {group} has no coordinator: {found.error.name}")
    build = fields(group_ids=(group,), include_authorized_operations=False)
    async with _connected(cluster, found.endpoint) as connection:
        response = await _ask(cluster, connection, CONSUMER_GROUP_DESCRIBE, build)
    return response.groups[0]


async def committed_offsets(cluster: ClusterClient, group: str) -> dict[str, int]:
    """The group's committed offsets, by partition as Kafka prints it. Raises ConnectionLost."""
    response = await ask_coordinator(cluster, messages.OffsetFetch(group, None, version=8))
    assert isinstance(response, messages.OffsetFetchResponse)
    return {f"{topic}-{partition}": offset.offset for topic, partition, offset, _ in response.partitions}


async def configure_group(cluster: ClusterClient, group: str, configs: Mapping[str, str | None]) -> None:
    """Set these options of a group; None: the broker's counts again. Raises ConnectionLost, and InputError if
    the cluster refuses.
    """
    changes = [
        {"name": name, "config_operation": int(value is None), "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": _GROUP, "resource_name": group, "configs": changes}
    build = fields(resources=[resource], validate_only=False)
    answer = await cluster.ask_any(INCREMENTAL_ALTER_CONFIGS, build)
    _check("group", ((one.resource_name, one.error_code, one.error_message) for one in answer.responses))


async def share_group_lag(cluster: ClusterClient, group: str) -> dict[str, int]:
    """The records that a share group is not done with, by partition as Kafka prints it; without partitions
    that it has not begun. Raises ConnectionLost, and InputError if the cluster refuses.
    """
    build = fields(groups=[{"group_id": group, "topics": None}])
    async with _coordinator_of(cluster, group) as connection:
        answer = await _ask(cluster, connection, DESCRIBE_SHARE_GROUP_OFFSETS, build)
    (described,) = answer.groups
    _check("group", [(group, described.error_code, described.error_message)])
    return {
        f"{topic.topic_name}-{one.partition_index}": one.lag
        for topic in described.topics
        for one in topic.partitions
        if one.lag >= 0
    }


async def ask_coordinator(
    cluster: ClusterClient, request: messages.Heartbeat | messages.DescribeGroup | messages.OffsetFetch
) -> messages.HeartbeatResponse | messages.DescribeGroupResponse | messages.OffsetFetchResponse:
    """The response of the group's coordinator; waits until the group has one.

    Raises ConnectionLost, and InputError if the cluster refuses to name a coordinator.
    """
    codec = REQUEST_CODECS[type(request)]
    while True:
        found = await cluster.find_coordinator(request.group)
        if found.error is Error.NONE:
            async with _connected(cluster, found.endpoint) as connection:
                answer = await _ask(cluster, connection, codec.api, codec.build(request))
            response = codec.read(answer)
            assert isinstance(
                response,
                messages.HeartbeatResponse | messages.DescribeGroupResponse | messages.OffsetFetchResponse,
            )
            if response.error not in _NOT_YET:
                return response
        elif found.error not in _NOT_YET:
            _check("group", [(request.group, found.error, None)])
        await asyncio.sleep(_POLL_S)


async def grow_topic(cluster: ClusterClient, topic: str, partitions: int) -> None:
    """Give ``topic`` this number of partitions. Raises InputError if the cluster refuses."""
    wanted = {"name": topic, "count": partitions, "assignments": None}
    build = fields(topics=[wanted], timeout=_TIMEOUT, validate_only=False)
    response = await cluster.ask_any(CREATE_PARTITIONS, build)
    _check("topic", ((one.name, one.error_code, one.error_message) for one in response.results))


async def delete_topics(cluster: ClusterClient, topics: Collection[str]) -> None:
    """Delete those of ``topics`` that exist. Raises InputError if the cluster refuses."""
    build = fields(topic_names=tuple(topics), timeout=_TIMEOUT)
    response = await cluster.ask_any(DELETE_TOPICS, build)
    results = [(one.name, one.error_code, None) for one in response.responses]
    gone = Error.UNKNOWN_TOPIC_OR_PARTITION
    _check("topic", (result for result in results if Error(result[1]) is not gone))


async def delete_group(cluster: ClusterClient, group: str) -> None:
    """Delete ``group``, if it exists, with members that are left over from ended processes.

    Raises InputError if the cluster refuses.
    """
    async with _coordinator_of(cluster, group) as connection:
        codec, request = REQUEST_CODECS[messages.DescribeGroup], messages.DescribeGroup(group, version=0)
        described = await _ask(cluster, connection, codec.api, codec.build(request))
        members = [member for one in described.groups for member in one.members]
        await _remove(cluster, connection, group, members)
        response = await _ask(cluster, connection, DELETE_GROUPS, fields(groups_names=(group,)))
        if Error.NON_EMPTY_GROUP in (Error(one.error_code) for one in response.results):  # a consumer group
            await _remove(cluster, connection, group, (await describe_consumer_group(cluster, group)).members)
            response = await _ask(cluster, connection, DELETE_GROUPS, fields(groups_names=(group,)))
    results = [(one.group_id, one.error_code, None) for one in response.results]
    _check("group", (result for result in results if Error(result[1]) is not Error.GROUP_ID_NOT_FOUND))


async def _remove(cluster: ClusterClient, connection: BrokerConnection, group: str, members: Any) -> None:
    """Remove all members as `kafka-consumer-groups` does (AdminClient.removeMembersFromConsumerGroup)."""
    leaving = [
        {"member_id": member.member_id, "group_instance_id": None, "reason": "the run is over"}
        for member in members
    ]
    if leaving:
        build = fields(group_id=group, members=leaving)
        await _ask(cluster, connection, REQUEST_CODECS[messages.LeaveGroup].api, build)


@asynccontextmanager
async def _connected(cluster: ClusterClient, endpoint: Endpoint) -> AsyncIterator[BrokerConnection]:
    connection = await cluster.connect(endpoint)
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def _coordinator_of(cluster: ClusterClient, group: str) -> AsyncIterator[BrokerConnection]:
    """Raises ConnectionLost, and InputError if the cluster refuses to name a coordinator."""
    found = await cluster.find_coordinator(group)
    _check("group", [(group, found.error, None)])
    async with _connected(cluster, found.endpoint) as connection:
        yield connection


async def _ask(cluster: ClusterClient, connection: BrokerConnection, api: ClientApi, build: Build) -> Any:
    return await connection.ask(api, api.highest, build, cluster.request_timeout_ms)


def _check(what: str, results: Iterable[tuple[str, int, str | None]]) -> None:
    for name, code, message in results:
        error = Error(code)
        if error is not Error.NONE:
            raise InputError(
                f"{what} {name}: the cluster says {error.name}{f' ({message})' if message else ''}"
            )


async def _await_partitions(cluster: ClusterClient, topics: Mapping[str, int]) -> None:
    while True:
        await cluster.refresh(topics.keys())
        if all(cluster.led(topic) == partitions for topic, partitions in topics.items()):
            return
        await asyncio.sleep(_POLL_S)
