"""Which brokers there are, who leads a partition, who coordinates a group; connections as they are needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.connection import Api, Build, Connection, ConnectionLost, RequestTypes
from groupstorm.clients.wire.security import PLAINTEXT, Security
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.config import Endpoint

METADATA = Api(3, "Metadata", 9, 12)
FIND_COORDINATOR = Api(10, "FindCoordinator", 4, 6)

_GROUP = 0


class Leader(NamedTuple):
    """The broker that leads a partition, and since when; epoch -1: not known."""

    node_id: int
    epoch: int


class FoundCoordinator(NamedTuple):
    """The answer of FindCoordinator; ``endpoint`` means something only where ``error`` is NONE."""

    error: Error
    endpoint: Endpoint


class Cluster:
    """What one client knows of the cluster, and its connections to brokers.

    The connection to the group's coordinator is not among them: it is one of its own, as in Kafka's
    client, so that a parked JoinGroup does not hold up what goes to the same broker.
    """

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        client_id: str,
        request_timeout_ms: int,
        security: Security = PLAINTEXT,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        #: Partitions per topic, of the topics that were asked for and exist.
        self.topics: Mapping[str, int] = {}
        #: Whether there is a way to the brokers at all: False refuses new connections.
        self.reachable = True
        self._security = security
        self._bootstrap = tuple(bootstrap)
        self._brokers: dict[int, Endpoint] = {}
        self._leaders: dict[TopicPartition, Leader] = {}
        self._connections: dict[Endpoint, Connection] = {}

    async def refresh(self, topics: Collection[str]) -> None:
        """Ask any broker for the brokers there are and for these topics. Raises ConnectionLost."""

        def build(types: RequestTypes) -> Any:
            asked = tuple(
                types.make("MetadataRequestTopic", name=topic, topic_id=None) for topic in sorted(topics)
            )
            return types.make(
                types.root.__name__,
                topics=asked,
                allow_auto_topic_creation=True,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )

        answer = await self.ask_any(METADATA, build)
        self._brokers = {broker.node_id: Endpoint(broker.host, broker.port) for broker in answer.brokers}
        usable = [topic for topic in answer.topics if Error(topic.error_code) is Error.NONE]
        self.topics = {topic.name: len(topic.partitions) for topic in usable}
        self._leaders = {
            TopicPartition(topic.name, partition.partition_index): Leader(
                partition.leader_id, partition.leader_epoch
            )
            for topic in usable
            for partition in topic.partitions
            if partition.leader_id in self._brokers
        }

    def leader(self, partition: TopicPartition) -> Leader | None:
        """Who leads ``partition``, as of the last refresh; None if nobody does."""
        return self._leaders.get(partition)

    def endpoint(self, node_id: int) -> Endpoint | None:
        """Where that broker is, as of the last refresh."""
        return self._brokers.get(node_id)

    def led(self, topic: str) -> int:
        """How many partitions of ``topic`` have a leader, as of the last refresh."""
        return sum(partition.topic == topic for partition in self._leaders)

    async def find_coordinator(self, group: str) -> FoundCoordinator:
        """Ask any broker. Raises ConnectionLost."""

        def build(types: RequestTypes) -> Any:
            return types.make(types.root.__name__, key_type=_GROUP, coordinator_keys=(group,))

        answer = await self.ask_any(FIND_COORDINATOR, build)
        for found in answer.coordinators:
            if found.key == group:
                return FoundCoordinator(Error(found.error_code), Endpoint(found.host, found.port))
        return FoundCoordinator(Error.UNKNOWN_SERVER_ERROR, Endpoint("", 0))

    async def connect(self, endpoint: Endpoint) -> Connection:
        """A new connection, for the caller to close. Raises ConnectionLost."""
        if not self.reachable:
            raise ConnectionLost(f"{endpoint.host}:{endpoint.port}: cut off")
        return await Connection.open(endpoint, self.client_id, self.request_timeout_ms, self._security)

    async def ask_node(self, node_id: int, api: Api, build: Build, timeout_ms: int) -> Any:
        """Ask one broker. Raises ConnectionLost, also if it is not known any more."""
        endpoint = self._brokers.get(node_id)
        if endpoint is None:
            raise ConnectionLost(f"broker {node_id} is not in the cluster any more")
        return await self._ask(endpoint, api, build, timeout_ms)

    def close(self) -> None:
        for connection in tuple(self._connections.values()):
            connection.abort()
        self._connections.clear()

    async def ask_any(self, api: Api, build: Build) -> Any:
        """Ask one that answers: those connected first, then those known, then those to begin with.

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

    async def _ask(self, endpoint: Endpoint, api: Api, build: Build, timeout_ms: int) -> Any:
        connection = self._connections.get(endpoint)
        if connection is None:
            connection = await self.connect(endpoint)
            if endpoint in self._connections:  # somebody else has connected meanwhile
                connection.abort()
                connection = self._connections[endpoint]
            else:
                self._connections[endpoint] = connection
                connection.on_lost = self._forget
        return await connection.ask(api, api.highest, build, timeout_ms)

    def _forget(self, connection: Connection) -> None:
        if self._connections.get(connection.endpoint) is connection:
            del self._connections[connection.endpoint]
