"""A client's view of the cluster: brokers, partition leaders, coordinators, connections on demand, and the
topic metadata that it keeps fresh (ConsumerMetadata).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition, UserDataError, decode_subscription
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.wire.connection import BrokerConnection, Build, ClientApi, ConnectionLost, fields
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.clients.wire.waiting import Retries
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupMember
from groupstorm.protocol.endpoints import Endpoint

METADATA = ClientApi(3, "Metadata", 9, 12)
FIND_COORDINATOR = ClientApi(10, "FindCoordinator", 4, 6)

_GROUP = 0


class PartitionLeader(NamedTuple):
    """The broker that leads a partition, and its leader epoch (-1: not known)."""

    node_id: int
    epoch: int


class FoundCoordinator(NamedTuple):
    """The response of FindCoordinator; ``endpoint`` counts only if ``error`` is NONE."""

    error: Error
    endpoint: Endpoint


class ClusterClient:
    """One client's metadata of the cluster, and its connections to brokers.

    The connection to the group's coordinator is a separate one, as in Kafka's client: a parked JoinGroup does
    not delay other requests to the same broker.
    """

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        client_id: str,
        request_timeout_ms: int,
        security: ClientSecurity = PLAINTEXT,
        may_create_topics: bool = True,
    ) -> None:
        self._may_create_topics = may_create_topics
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        #: Partitions per topic, of the existing topics of the last refresh.
        self.topics: Mapping[str, int] = {}
        #: Topic id -> name, of the same topics. Brokers tell ids since Kafka 2.8 (KIP-516).
        self.topic_names: Mapping[UUID, str] = {}
        #: False: no new connection is made, as if the network were gone.
        self.reachable = True
        self._security = security
        self._bootstrap = tuple(bootstrap)
        self._brokers: dict[int, Endpoint] = {}
        self._leaders: dict[TopicPartition, PartitionLeader] = {}
        self._connections: dict[Endpoint, BrokerConnection] = {}

    async def refresh(self, topics: Collection[str], topic_ids: Collection[UUID] = ()) -> None:
        """Ask any broker for the list of brokers and for these topics. Raises ConnectionLost.

        Either the names or the ids are empty: brokers do not answer both at once. Only topics that are asked
        for by name may be created, unless the client was made without ``may_create_topics``.
        """

        build = fields(
            topics=[
                *({"name": topic, "topic_id": None} for topic in sorted(topics)),
                *({"name": None, "topic_id": topic_id} for topic_id in sorted(topic_ids)),
            ],
            allow_auto_topic_creation=self._may_create_topics,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        response = await self.ask_any(METADATA, build)
        self._brokers = {broker.node_id: Endpoint(broker.host, broker.port) for broker in response.brokers}
        usable = [topic for topic in response.topics if Error(topic.error_code) is Error.NONE]
        self.topics = {topic.name: len(topic.partitions) for topic in usable}
        self.topic_names = {
            topic.topic_id: topic.name for topic in usable if getattr(topic, "topic_id", None) is not None
        }
        self._leaders = {
            TopicPartition(topic.name, partition.partition_index): PartitionLeader(
                partition.leader_id, partition.leader_epoch
            )
            for topic in usable
            for partition in topic.partitions
            if partition.leader_id in self._brokers
        }

    def leader(self, partition: TopicPartition) -> PartitionLeader | None:
        """The leader of ``partition`` as of the last refresh; None if it has none."""
        return self._leaders.get(partition)

    def endpoint(self, node_id: int) -> Endpoint:
        """The address of a broker as of the last refresh. Raises ConnectionLost if it has left."""
        if node_id not in self._brokers:
            raise ConnectionLost(f"broker {node_id} is not in the cluster any more")
        return self._brokers[node_id]

    def node_ids(self) -> list[int]:
        """The brokers of the cluster as of the last refresh."""
        return sorted(self._brokers)

    def led(self, topic: str) -> int:
        """The number of partitions of ``topic`` with a leader, as of the last refresh."""
        return sum(partition.topic == topic for partition in self._leaders)

    async def find_coordinator(self, group: str) -> FoundCoordinator:
        """Ask any broker. Raises ConnectionLost."""
        asked = fields(key_type=_GROUP, coordinator_keys=(group,))
        response = await self.ask_any(FIND_COORDINATOR, asked)
        for found in response.coordinators:
            if found.key == group:
                return FoundCoordinator(Error(found.error_code), Endpoint(found.host, found.port))
        return FoundCoordinator(Error.UNKNOWN_SERVER_ERROR, Endpoint("", 0))

    async def connect(self, endpoint: Endpoint) -> BrokerConnection:
        """A new connection, for the caller to close. Raises ConnectionLost."""
        if not self.reachable:
            raise ConnectionLost(f"{endpoint}: cut off")
        return await BrokerConnection.open(endpoint, self.client_id, self.request_timeout_ms, self._security)

    async def ask_node(self, node_id: int, api: ClientApi, build: Build, timeout_ms: int) -> Any:
        """Ask one broker. Raises ConnectionLost, also if the broker has left the cluster."""
        return await self._ask(self.endpoint(node_id), api, build, timeout_ms)

    def close(self) -> None:
        for connection in tuple(self._connections.values()):
            connection.abort()
        self._connections.clear()

    async def ask_any(self, api: ClientApi, build: Build) -> Any:
        """Ask brokers until one answers: connected ones first, then known ones, then the bootstrap servers.

        Raises ConnectionLost.
        """
        known = dict.fromkeys((*self._connections, *self._brokers.values(), *self._bootstrap))
        why: ConnectionLost | None = None
        for endpoint in known:
            try:
                return await self._ask(endpoint, api, build, self.request_timeout_ms)
            except ConnectionLost as lost:
                why = lost
        raise why or ConnectionLost("there is no broker to ask")

    async def _ask(self, endpoint: Endpoint, api: ClientApi, build: Build, timeout_ms: int) -> Any:
        connection = self._connections.get(endpoint)
        if connection is None:
            connection = await self.connect(endpoint)
            if endpoint in self._connections:  # another task has connected meanwhile
                connection.abort()
                connection = self._connections[endpoint]
            else:
                self._connections[endpoint] = connection
                connection.on_lost = self._forget
        return await connection.ask(api, api.highest, build, timeout_ms)

    def _forget(self, connection: BrokerConnection) -> None:
        if self._connections.get(connection.endpoint) is connection:
            del self._connections[connection.endpoint]


class LeaderConnections:
    """One connection to each leader, made on demand. ``on_lost`` gets the id of a broker that is gone."""

    def __init__(self, cluster: ClusterClient, on_lost: Callable[[int], None] = lambda _: None) -> None:
        self._cluster = cluster
        self._on_lost = on_lost
        self._open: dict[int, BrokerConnection] = {}

    async def to(self, node_id: int) -> BrokerConnection:
        """Raises ConnectionLost. One task at a time may ask for a broker's connection."""
        connection = self._open.get(node_id)
        if connection is None:
            connection = await self._cluster.connect(self._cluster.endpoint(node_id))
            self._open[node_id] = connection
            connection.on_lost = lambda lost: self._forget(node_id, lost)
        return connection

    def abort(self) -> None:
        for connection in tuple(self._open.values()):
            connection.abort()

    def _forget(self, node_id: int, lost: BrokerConnection) -> None:
        if self._open.get(node_id) is lost:
            del self._open[node_id]
            self._on_lost(node_id)


class TopicReader(Protocol):
    """A member whose topics are refreshed."""

    config: ConsumerConfig

    @property
    def is_leader(self) -> bool: ...

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        """The topics of the assignment, if the broker says which they are."""

    def metadata_refreshed(self) -> None:
        """New topic metadata has arrived."""


class TopicWatch:
    """Refreshes the topics. The membership compares them and joins again if it leads and they changed.

    ``on_change`` is called after each refresh.
    """

    def __init__(
        self, cluster: ClusterClient, membership: TopicReader, on_change: Callable[[], None]
    ) -> None:
        self.known = asyncio.Event()
        self._config = membership.config
        self._cluster = cluster
        self._membership = membership
        self._on_change = on_change
        self._group_topics: frozenset[str] = frozenset()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Refresh until the task is cancelled."""
        while True:
            await self._refresh()
            self.known.set()
            self._membership.metadata_refreshed()
            self._on_change()
            pause_ms, max_age_ms = self._config.retry_backoff_ms, self._config.metadata_max_age_ms
            await asyncio.sleep(pause_ms / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0, max_age_ms - pause_ms) / 1000):
                    await self._wanted.wait()
            self._wanted.clear()

    def refresh_soon(self) -> None:
        """The metadata has turned out to be old, or the subscription has changed."""
        self._wanted.set()

    async def cover(self, members: Iterable[JoinGroupMember]) -> None:
        """The leader needs all topics of its group's subscriptions (updateGroupSubscription)."""
        topics: set[str] = set()
        for member in members:
            try:
                topics.update(decode_subscription(member.metadata).topics)
            except UserDataError:
                return  # the assignment will fail with this error
        self._group_topics = frozenset(topics)
        if not topics <= self._cluster.topics.keys():
            await self._refresh()

    async def _refresh(self) -> None:
        """Ask brokers until one answers."""
        retries = Retries(self._config.retry_backoff_ms)
        while True:
            try:
                if self._membership.config.subscription_pattern is None:
                    await self._cluster.refresh(self._watched())
                else:  # only the broker knows which topics match (ConsumerMetadata)
                    await self._cluster.refresh((), self._membership.assigned_topic_ids)
                return
            except ConnectionLost:
                await retries.pause()

    def _watched(self) -> frozenset[str]:
        """The topics to refresh: a leader's are those of its group (SubscriptionState.metadataTopics)."""
        own = frozenset(self._membership.config.topics)
        return own | self._group_topics if self._membership.is_leader else own
