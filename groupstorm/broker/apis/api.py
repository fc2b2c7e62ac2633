"""An API: its facts, and the arguments and results of its handler."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from groupstorm.broker.authorization import Acl, Acls, Authorizer, Operation, ResourceType
from groupstorm.broker.changes import (
    AclCreated,
    AclDeleted,
    BatchAppended,
    BatchesRemoved,
    BatchRewritten,
    BrokerConfigured,
    Change,
    CredentialAltered,
    GroupConfigured,
    LogCleaned,
    ProducerIdsTaken,
    QuotasChanged,
    RecordsDeleted,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from groupstorm.broker.cluster import Cluster
from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.described_configs import DynamicConfigs
from groupstorm.broker.fetch_sessions import FetchSessions, draw_session_id
from groupstorm.broker.log.cleaning import Cleanable
from groupstorm.broker.log.partition import Appended, PartitionLog
from groupstorm.broker.log.topics import Topic, Topics
from groupstorm.broker.quotas import Client, ClientQuotas, Entity, Windows
from groupstorm.broker.releases import NEWEST, RELEASES
from groupstorm.broker.security.scram import Credential
from groupstorm.broker.security.users import Credentials
from groupstorm.broker.transactions import Marker, Partition, Transactions
from groupstorm.coordinator import messages
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import ResponseTypes
from groupstorm.protocol.codec.shape import EPOCH, MILLISECOND
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.share_records.config import ShareConfig
from groupstorm.share_records.coordinator import ShareCoordinator
from groupstorm.share_records.messages import Request as ShareRequest
from groupstorm.share_records.ports import TopicPartition
from groupstorm.turns import Turns

#: One of kio's responses; which class depends on API and version.
KioMessage: TypeAlias = Any

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
#: The internal topics of coordinators that are emulated.
COORDINATORS_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


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
    principal: str
    """Who the client is: ``User:alice``"""
    size_bytes: int
    """The size of the whole request."""
    api: Api
    connection: str
    """The connection's number: share sessions end with their connections."""

    @property
    def client(self) -> Client:
        """The client whose quotas count."""
        return Client(self.principal.partition(":")[2], self.client_id, self.node)


class CreationError(NamedTuple):
    """Why an internal topic of a streams group was not created. Until then nobody tries again."""

    sentence: str
    until_ms: int


@dataclass(slots=True)
class BrokerState:
    """The state that all handlers share. The groups are the coordinator's."""

    config: BrokerConfig
    cluster_id: str
    topics: Topics
    next_producer_id: int = 0
    """All producer ids below are in use (KIP-98)."""
    sessions: dict[int, FetchSessions] = field(default_factory=dict)
    """Fetch sessions, by broker."""
    transactions: Transactions = field(init=False)
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    metadata_cache: dict[tuple[object, ...], list[bytes]] = field(default_factory=dict)
    idle_fetches: dict[tuple[object, ...], list[bytes]] = field(default_factory=dict)
    """Answers without records, by what they say."""
    appended: list[PartitionLog] = field(default_factory=list)
    """Logs that this request has changed: fetches may wait for them."""
    changes: list[Change] = field(default_factory=list)
    """The changes of this request, in order, for the journal."""
    deleted_topics: list[str] = field(default_factory=list)
    """Topics that this request has deleted: the groups' offsets of them are deleted too."""
    changed_topics: list[str] = field(default_factory=list)
    """Topics that are new or have grown, and which the group coordinator does not know yet."""
    changed_groups: list[str] = field(default_factory=list)
    """Groups whose configurations the group coordinator does not know yet."""
    dynamic_configs: DynamicConfigs = field(init=False)
    """The changes that make ``config`` of the settings at the start."""
    coordinator_config: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    """For DescribeConfigs."""
    share_config: ShareConfig = field(default_factory=lambda: ShareConfig.from_mapping({}))
    """The options of the records of share groups."""
    share_states: ShareCoordinator = field(init=False)
    """The share coordinator; topics are named by their ids (`groupstorm.broker.share`)."""
    creation_errors: dict[str, CreationError] = field(default_factory=dict)
    """The errors with which internal topics of streams groups were not created, by topic."""
    acls: Acls = field(default_factory=Acls)
    credentials: Credentials = field(default_factory=Credentials)
    quotas: ClientQuotas = field(init=False)
    now_ms: int = 0
    """The time of this step."""
    authorizer: Authorizer | None = None
    """Decides by ``acls``; None: every client may do everything."""
    release: str = NEWEST
    """The Kafka whose versions are advertised."""
    apis: Mapping[int, Api] = field(default_factory=dict)
    """The APIs that are served, by key."""

    @property
    def cluster(self) -> Cluster:
        return self.topics.cluster

    def __post_init__(self) -> None:
        self.dynamic_configs = DynamicConfigs(self.config)
        windows = Windows(self.config.quota_window_num, self.config.quota_window_size_seconds * 1000)
        self.quotas = ClientQuotas(windows)
        self.transactions = Transactions(self.take_producer_id, self.config.transaction_max_timeout_ms)
        self.share_states = ShareCoordinator(self.share_config.updates_per_snapshot, self._has_partition)
        slots = self.config.max_incremental_fetch_session_cache_slots
        for node in self.cluster.nodes:
            self.sessions[node] = FetchSessions(slots, draw_session_id)

    def _has_partition(self, partition: TopicPartition) -> bool:
        topic = self.topics.get_by_id(UUID(partition.topic))
        return topic is not None and topic.partition(partition.partition) is not None

    def note_append(self, topic: Topic, partition: int, appended: Appended) -> None:
        """Note an appended batch, unless it was a repetition."""
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
        """Raises Refused."""
        topic = self.topics.create(name, partitions, replication_factor, configs, replicas)
        where = (topic.number, tuple(topic.replicas), dict(topic.configs))
        self.changes.append(TopicCreated(name, topic.topic_id, *where))
        self.changed_topics.append(name)
        return topic

    def take_producer_id(self) -> int:
        taken = self.next_producer_id
        self.next_producer_id += 1
        self.changes.append(ProducerIdsTaken(self.next_producer_id))
        return taken

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic: fetches that wait for it are answered, and its committed offsets are deleted."""
        self.topics.delete(topic)
        self.changes.append(TopicDeleted(topic.name))
        self.transactions.forget([(topic.name, index) for index in range(len(topic.partitions))])
        self.appended.extend(topic.partitions)
        self.deleted_topics.append(topic.name)

    def grow_topic(self, topic: Topic, partitions: int, replicas: Sequence[tuple[int, ...]] | None) -> None:
        """Raises Refused."""
        self.topics.grow(topic, partitions, replicas)
        self.changes.append(TopicGrown(topic.name, tuple(topic.replicas)))
        self.changed_topics.append(topic.name)

    def place_partition(self, topic: Topic, index: int, replicas: tuple[int, ...]) -> None:
        """Give a partition other brokers, the leader in front."""
        if topic.replicas[index] != replicas:
            self.topics.place(topic, [*topic.replicas[:index], replicas, *topic.replicas[index + 1 :]])
            self.changes.append(TopicGrown(topic.name, tuple(topic.replicas)))
            self.changed_topics.append(topic.name)

    def configure_topic(self, topic: Topic, configs: Mapping[str, str]) -> None:
        self.topics.configure(topic, configs)
        self.changes.append(TopicConfigured(topic.name, dict(configs)))

    def configure_broker(self, broker: str, configs: Mapping[str, str]) -> None:
        """``broker``: its name, `ALL_BROKERS` for all; the configurations have been checked."""
        self.take_broker_configs(broker, configs)
        self.changes.append(BrokerConfigured(broker, dict(configs)))

    def take_broker_configs(self, broker: str, configs: Mapping[str, str]) -> None:
        self.dynamic_configs.by_broker[broker] = dict(configs)
        self.config = self.dynamic_configs.effective()
        self.topics.take_settings(self.config)

    def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        self.group_configs[group] = dict(configs)
        self.changes.append(GroupConfigured(group, dict(configs)))
        self.changed_groups.append(group)

    def create_acl(self, acl: Acl) -> None:
        """Add a rule, unless it is there already (AclControlManager.createAcls)."""
        if acl not in self.acls:
            self.acls.add(acl)
            self.changes.append(AclCreated(acl))

    def delete_acl(self, acl: Acl) -> None:
        self.acls.remove(acl)
        self.changes.append(AclDeleted(acl))

    def alter_credential(self, user: str, mechanism: int, credential: Credential | None) -> None:
        self.credentials.alter(user, mechanism, credential)
        self.changes.append(CredentialAltered(user, mechanism, credential))

    def change_quotas(self, entity: Entity, values: dict[str, float | None]) -> None:
        """Set quotas of an entity, or remove those without a value."""
        self.quotas.change(entity, values)
        self.changes.append(QuotasChanged(entity, values))

    def delete_records(self, topic: Topic, partition: int, before_offset: int) -> None:
        log = topic.partitions[partition]
        log.delete_before(before_offset)
        self.appended.append(log)
        self.changes.append(RecordsDeleted(topic.name, partition, log.start_offset))

    def expire_records(self, now_ms: int) -> None:
        """Drop the records that are older than their topic's retention.ms."""
        for topic in self.topics:
            for partition, log in enumerate(topic.partitions):
                if log.expire(now_ms):
                    self.appended.append(log)
                    self.changes.append(RecordsDeleted(topic.name, partition, log.start_offset))

    def clean_log(self, topic: Topic, partition: int, part: Cleanable, now_ms: int) -> None:
        """Compact this part of a log. Raises OSError."""
        log = topic.partitions[partition]
        removed, rewritten, aborted = log.clean(part, now_ms)
        where = (topic.name, partition)
        for data in rewritten.values():
            log.rewrite(data)
            self.changes.append(BatchRewritten(*where, data))
        if removed:
            log.remove(removed)
            self.changes.append(BatchesRemoved(*where, tuple(removed)))
        log.end_cleaning(part.end_offset, aborted)
        self.changes.append(LogCleaned(*where, part.end_offset, tuple(aborted)))

    def offsets_partition(self, group: str) -> Partition:
        """The partition of the offsets topic that holds a group's offsets."""
        return OFFSETS_TOPIC, self.cluster.groups.partition_of(group)

    def write_marker(self, marker: Marker, name: str, index: int) -> None:
        """Write the marker of a transaction that has ended into a partition, if it is there."""
        topic = self.topics.get(name)
        if topic is None or topic.partition(index) is None or name in COORDINATORS_TOPICS:
            return
        log = topic.partitions[index]
        appended = log.append_marker(marker.producer_id, marker.epoch, marker.is_commit, self.now_ms)
        self.note_append(topic, index, appended)

    def address(self, node: int, call: Call) -> dict[str, Any]:
        """The fields of a response that say where the client of this call reaches a broker."""
        at = self.cluster.endpoint(node, call.reached_at, self.config.advertised_listeners)
        return {"host": at.host, "port": at.port}

    def coordinates_group(self, call: Call, group: str) -> bool:
        """Whether the broker that was asked coordinates this group."""
        return self.cluster.groups.node_of(group) == call.node

    def coordinates_transactions(self, call: Call, transactional_id: str) -> bool:
        """Whether the broker that was asked coordinates this transactional id."""
        return self.cluster.transactions.node_of(transactional_id) == call.node


class Done(NamedTuple):
    """The response to the request."""

    response: KioMessage


class Encoded(NamedTuple):
    """The response to the request, as bytes. ``mute_ms``: how long the client's quota mutes it."""

    body: list[bytes]
    mute_ms: int = 0


class NoAnswer(NamedTuple):
    """Nothing is sent (acks=0). ``close``: why the connection is closed instead, or None; ``mute_ms``: how
    long the client's quota mutes it."""

    close: str | None = None
    mute_ms: int = 0


class AskCoordinator(NamedTuple):
    """Ask the group coordinator; ``finish`` makes the response of its answers as soon as it has given all."""

    requests: Sequence[messages.Request]
    finish: Callable[[Sequence[Any]], KioMessage | Turns[KioMessage]]
    may_match: Callable[[str], bool] | None = None
    """Whether a regular expression of the client's group may match a topic; None: it may match each."""


class AskShareBroker(NamedTuple):
    """Ask the share broker; ``finish`` makes the response of its answer, which may come later."""

    request: ShareRequest
    finish: Callable[[Any], KioMessage | Turns[KioMessage]]


class Wait(NamedTuple):
    """Respond with ``finish()`` as soon as ``is_ready()`` after one of ``logs`` has grown, or at the
    deadline."""

    deadline_ms: int
    logs: Sequence[PartitionLog]
    is_ready: Callable[[], bool]
    finish: Callable[[], Done | Encoded | Turns[Done]]


Outcome: TypeAlias = Done | Encoded | NoAnswer | AskCoordinator | AskShareBroker | Wait
Handler: TypeAlias = Callable[[BrokerState, Call], Outcome | Turns[Outcome]]


class Right(NamedTuple):
    """A right that a whole request needs. ``field``: the request's field that names the resource, null if the
    request is about none; None: the cluster. ``sentence``: Kafka's about the missing right."""

    operation: Operation
    resource_type: ResourceType
    field: str | None
    sentence: str | None = None


#: Values of `Api.errors`.
EACH_TOPIC = {"topics": "topics"}
EACH_PARTITION = {"topics.partitions": "topics.partitions"}


@dataclass(frozen=True, slots=True)
class Api:
    """One API, in the versions that this broker serves."""

    key: int
    name: str
    min_version: int
    max_version: int
    handle: Handler
    advertised_min_version: int | None = None
    """The lowest version in ApiVersions, if another one."""
    older: tuple[int | None, ...] | None = None
    """The highest versions of the older ones of `RELEASES`, if others; None: that one does not have the API;
    (): none of them has it."""
    needs: tuple[Right, ...] = ()
    """The rights that the whole request needs, in the order in which Kafka checks them."""
    on_topics: Operation | None = None
    """The right on each topic that a request names, or that an answer shows."""
    on_all_topics: Operation | None = None
    """A right on the cluster that stands for the one on every topic."""
    on_groups: Operation | None = None
    """The right on each group that a request names, or that an answer shows."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Array of the request -> array of the error answer with an error for each of its items. An array in the
    items of another one stands behind a dot. A version may lack arrays."""
    error_names: Mapping[str, str] = field(default_factory=dict)
    """Field of these items -> the request's field that names them, if it has another name."""
    last_with_errors: int = 2**15 - 1
    """The last version whose error answer has the items."""
    is_repeated: bool = False
    """Whether the requests of an idle client are equal but for their correlation ids."""

    def serves(self, key: int, version: int) -> bool:
        return key == self.key and self.min_version <= version <= self.max_version

    def of_release(self, release: str) -> Api | None:
        """The API in the versions that this release of Kafka has, too. The lowest one stays ours: a client of
        the release's time uses the highest that both have."""
        if release == NEWEST or self.older is None:
            return self
        newest = self.older[RELEASES.index(release)] if self.older else None
        return None if newest is None else replace(self, max_version=newest)


class CoordinatorsApi(Api):
    """An API that a group or transaction coordinator answers."""


class AskingApi(CoordinatorsApi):
    """An API whose handler asks the group coordinator and does nothing else."""


def producer_error(call: Call, error: Error, first_saying_fenced: int = 2) -> Error:
    """PRODUCER_FENCED has that name since a version of each API; before, it is INVALID_PRODUCER_EPOCH."""
    is_unnamed = error is Error.PRODUCER_FENCED and call.version < first_saying_fenced
    return Error.INVALID_PRODUCER_EPOCH if is_unnamed else error


def timestamp(time_ms: int | None) -> datetime.datetime | None:
    """Milliseconds as kio's fields hold them."""
    return None if time_ms is None else EPOCH + datetime.timedelta(milliseconds=time_ms)


def milliseconds(duration: Any) -> int:
    """A timedelta of kio's as an integer."""
    return int(duration // MILLISECOND)
