"""What a handler of one API is given and what it answers with."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from groupstorm.coordinator import messages
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.server.changes import (
    BatchAppended,
    Change,
    GroupConfigured,
    ProducerIdsTaken,
    RecordsDeleted,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from groupstorm.coordinator.server.cluster import Cluster
from groupstorm.coordinator.server.codec import ResponseTypes
from groupstorm.coordinator.server.codec.shape import EPOCH, MILLISECOND
from groupstorm.coordinator.server.config import BrokerConfig, Endpoint
from groupstorm.coordinator.server.fetch_sessions import FetchSessions, draw_session_id
from groupstorm.coordinator.server.log.partition import Appended, PartitionLog
from groupstorm.coordinator.server.log.topics import Topic, Topics
from groupstorm.coordinator.server.producer_ids import ProducerIds
from groupstorm.coordinator.transactions import Marker, Partition, Transactions

#: One of kio's responses; which class depends on API and version.
KioMessage: TypeAlias = Any

NO_AUTHORIZED_OPERATIONS = -(2**31)
"""What the client did not ask for (MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED)."""


OFFSETS_TOPIC = "__consumer_offsets"


class Call(NamedTuple):
    """One request: ``message`` is kio's dataclass of that version, ``types`` makes the response."""

    version: int
    message: KioMessage
    types: ResponseTypes
    client_id: str
    client_host: str
    """As Java prints an address: /127.0.0.1"""
    reached_at: Endpoint
    """Our end of the connection, as the client sees it."""
    now_ms: int
    node: int
    """Which of the brokers was asked."""


@dataclass(slots=True)
class BrokerState:
    """What the handlers share, apart from the groups."""

    config: BrokerConfig
    cluster_id: str
    topics: Topics
    producer_ids: ProducerIds = field(default_factory=ProducerIds)
    sessions: dict[int, FetchSessions] = field(default_factory=dict)
    """Fetch sessions, by broker."""
    transactions: Transactions = field(init=False)
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    metadata_cache: dict[tuple[object, ...], list[bytes]] = field(default_factory=dict)
    appended: list[PartitionLog] = field(default_factory=list)
    """Logs that this request changed: fetches may be waiting for them."""
    changes: list[Change] = field(default_factory=list)
    """What this request changed, in order: for the journal."""
    deleted_topics: list[str] = field(default_factory=list)
    """Topics that this request deleted: the groups' offsets of them go too."""
    coordinator_config: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    """The group coordinator's, to be described."""

    @property
    def cluster(self) -> Cluster:
        return self.topics.cluster

    def __post_init__(self) -> None:
        self.transactions = Transactions(self.take_producer_id, self.config.transaction_max_timeout_ms)
        slots = self.config.max_incremental_fetch_session_cache_slots
        for node in self.cluster.nodes:
            self.sessions[node] = FetchSessions(slots, draw_session_id)

    def note_append(self, topic: Topic, partition: int, appended: Appended) -> None:
        """A batch was written (or was there already)."""
        if appended.data is not None:
            self.appended.append(topic.partitions[partition])
            self.changes.append(BatchAppended(topic.name, partition, appended.data))

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[tuple[int, ...]] | None = None,
    ) -> Topic:
        """Raises TopicError."""
        topic = self.topics.create(name, partitions, replication_factor, configs, replicas)
        where = (topic.number, tuple(topic.replicas), dict(topic.configs))
        self.changes.append(TopicCreated(name, topic.topic_id, *where))
        return topic

    def take_producer_id(self) -> int:
        taken = self.producer_ids.take()
        self.changes.append(ProducerIdsTaken(self.producer_ids.next_id))
        return taken

    def delete_topic(self, topic: Topic) -> None:
        """The topic goes; fetches that wait for it are answered, offsets committed for it go too."""
        self.topics.delete(topic)
        self.changes.append(TopicDeleted(topic.name))
        self.transactions.forget_topic(topic.name)
        self.appended.extend(topic.partitions)
        self.deleted_topics.append(topic.name)

    def grow_topic(self, topic: Topic, partitions: int, replicas: Sequence[tuple[int, ...]] | None) -> None:
        """Raises TopicError."""
        self.topics.grow(topic, partitions, replicas)
        self.changes.append(TopicGrown(topic.name, tuple(topic.replicas)))

    def configure_topic(self, topic: Topic, configs: Mapping[str, str]) -> None:
        self.topics.configure(topic, configs)
        self.changes.append(TopicConfigured(topic.name, dict(configs)))

    def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        self.group_configs[group] = dict(configs)
        self.changes.append(GroupConfigured(group, dict(configs)))

    def delete_records(self, topic: Topic, partition: int, before_offset: int) -> None:
        log = topic.partitions[partition]
        log.delete_before(before_offset)
        self.appended.append(log)
        self.changes.append(RecordsDeleted(topic.name, partition, log.start_offset))

    def expire_records(self, now_ms: int) -> None:
        """Records that have grown older than their topic's retention.ms go."""
        for topic in self.topics:
            for partition, log in enumerate(topic.partitions):
                if log.expire(now_ms):
                    self.appended.append(log)
                    self.changes.append(RecordsDeleted(topic.name, partition, log.start_offset))

    def offsets_partition(self, group: str) -> Partition:
        """The partition of the offsets topic that a group's offsets are in."""
        return OFFSETS_TOPIC, self.cluster.partition_of(group)

    def write_markers(self, now_ms: int) -> list[Marker]:
        """End the transactions that were decided, in the partitions of topics; gives them back for the
        offsets."""
        markers, self.transactions.markers = self.transactions.markers, []
        for marker in markers:
            for name, index in marker.partitions:
                topic = self.topics.get(name)
                if topic is None or topic.partition(index) is None:
                    continue
                log = topic.partitions[index]
                appended = log.append_marker(marker.producer_id, marker.epoch, marker.is_commit, now_ms)
                self.note_append(topic, index, appended)
        return markers

    def endpoint(self, node: int, call: Call) -> Endpoint:
        """Where the client should be told that a broker is."""
        return self.cluster.endpoint(node, call.reached_at, self.config.advertised_listeners)

    def is_coordinator(self, call: Call, key: str) -> bool:
        """Whether the broker that was asked coordinates this group or transactional id."""
        return self.cluster.coordinator(key) == call.node


class Done(NamedTuple):
    """Answered at once."""

    response: KioMessage


class Encoded(NamedTuple):
    """Answered at once, with the body's bytes."""

    body: list[bytes]


class NoAnswer(NamedTuple):
    """Nothing is sent (acks=0). ``close``: why the connection is closed instead, or None."""

    close: str | None = None


class AskCoordinator(NamedTuple):
    """The group coordinator is asked, and ``finish`` makes the response of its answers when all are there."""

    requests: Sequence[messages.Request]
    finish: Callable[[Sequence[Any]], KioMessage]


class Wait(NamedTuple):
    """Answered with ``finish()`` as soon as ``is_ready()`` after one of ``logs`` grew, or at the deadline."""

    deadline_ms: int
    logs: Sequence[PartitionLog]
    is_ready: Callable[[], bool]
    finish: Callable[[], KioMessage]


Outcome: TypeAlias = Done | Encoded | NoAnswer | AskCoordinator | Wait
Handler: TypeAlias = Callable[[BrokerState, Call], Outcome]


@dataclass(frozen=True, slots=True)
class Api:
    """One API that this broker offers, in the versions that it really does."""

    key: int
    name: str
    min_version: int
    max_version: int
    handle: Handler
    advertised_min_version: int | None = None
    """What ApiVersions says where that differs."""


def authorized_operations(asked: bool, operations: Sequence[int]) -> int:
    """The bit field of AclOperation codes: without an authorizer everything is allowed."""
    return sum(1 << code for code in operations) if asked else NO_AUTHORIZED_OPERATIONS


def timestamp(time_ms: int | None) -> datetime.datetime | None:
    """Milliseconds as kio's fields hold them."""
    return None if time_ms is None else EPOCH + datetime.timedelta(milliseconds=time_ms)


def milliseconds(duration: Any) -> int:
    """A timedelta of kio's as an integer."""
    return int(duration // MILLISECOND)
