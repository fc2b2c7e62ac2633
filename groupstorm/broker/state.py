"""The state of the brokers of this process, apart from the groups, and the changes to it.

`changes` names what survives a restart; `BrokerState.apply` carries out such a change, of a request or of a
journal, and `snapshot` gives the shortest journal of a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from uuid import UUID

from groupstorm.broker.authorization import Acls, Authorizer
from groupstorm.broker.changes import (
    AclCreated,
    AclDeleted,
    BatchAppended,
    BatchesKept,
    BatchesRemoved,
    BatchRewritten,
    BrokerConfigured,
    Change,
    CheckpointTaken,
    ClusterNamed,
    CredentialAltered,
    GroupConfigured,
    GroupRecord,
    LogCleaned,
    LogKept,
    ProducerIdsTaken,
    QuotasChanged,
    RecordsDeleted,
    ShareStateDeleted,
    ShareStateKept,
    ShareStateUpdated,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
    TransactionChanged,
)
from groupstorm.broker.cluster import Cluster
from groupstorm.broker.config import NEWEST, BrokerConfig
from groupstorm.broker.described_configs import DynamicConfigs
from groupstorm.broker.fetch_sessions import FetchSessions, draw_session_id
from groupstorm.broker.journal import JournalError
from groupstorm.broker.log.batches import parse_stored
from groupstorm.broker.log.columns import Columns
from groupstorm.broker.log.partition import Appended, PartitionLog
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, OFFSETS_TOPIC, Topic, Topics
from groupstorm.broker.quotas import ClientQuotas, Windows
from groupstorm.broker.security.users import Credentials
from groupstorm.broker.share_logs import kept, share_key
from groupstorm.broker.transactions import Marker, Partition, Transaction, Transactions, TransactionState
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.errors import Refused
from groupstorm.coordinator.records import Record
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.share_records.config import ShareBrokerConfig
from groupstorm.share_records.coordinator import ShareCoordinator, ShareState
from groupstorm.share_records.ports import TopicPartition, WriteState


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
    share_config: ShareBrokerConfig = field(default_factory=lambda: ShareBrokerConfig.from_mapping({}))
    """The options of the records of share groups."""
    share_states: ShareCoordinator = field(init=False)
    """The share coordinator; topics are named by their ids (`share_logs`)."""
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
    versions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """The lowest and the highest advertised version of each API, by key."""

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

    def carry_out(self, change: Change) -> None:
        """Change the state, and note the change for the journal."""
        self.apply(change)
        self.changes.append(change)

    def apply(self, change: Change) -> None:
        """Raises LookupError, ValueError or Refused if the change does not fit the state."""
        match change:
            case BatchAppended(name, partition, data, position):
                batch = parse_stored(data)
                if batch is None:
                    raise ValueError("it is no whole record batch")
                self._log(name, partition).restore(batch, position)
            case BatchRewritten(name, partition, data, position):
                self._log(name, partition).rewrite(data, position)
            case BatchesRemoved(name, partition, base_offsets):
                self._log(name, partition).remove(base_offsets)
            case LogCleaned(name, partition, first_dirty_offset, aborted):
                self._log(name, partition).end_cleaning(first_dirty_offset, aborted)
            case BatchesKept(name, partition, columns):
                self._log(name, partition).take_batches(Columns.from_bytes(columns))
            case LogKept(name, partition, log_state):
                self._log(name, partition).take_state(log_state)
            case RecordsDeleted(name, partition, before_offset):
                log = self._log(name, partition)
                log.begin_at(before_offset)
                self.appended.append(log)
            case ProducerIdsTaken(next_id):
                self.next_producer_id = next_id
            case ClusterNamed(cluster_id):
                self.cluster_id = cluster_id
            case _:
                self._apply_administration(change)

    def _apply_administration(self, change: Change) -> None:
        match change:
            case TopicCreated():
                self.topics.restore(*change)
            case TopicGrown(name, replicas):
                self._grow(self._topic(name), replicas)
            case TopicDeleted(name):
                self._delete(self._topic(name))
            case TopicConfigured(name, configs):
                self.topics.configure(self._topic(name), configs)
            case GroupConfigured(group, configs):
                self.group_configs[group] = configs
                self.changed_groups.append(group)
            case BrokerConfigured(broker, configs):
                self.dynamic_configs.by_broker[broker] = configs
                self.config = self.dynamic_configs.effective()
                self.topics.take_settings(self.config)
            case AclCreated(acl):
                self.acls.add(acl)
            case AclDeleted(acl):
                self.acls.remove(acl)
            case CredentialAltered():
                self.credentials.alter(*change)
            case QuotasChanged(entity, values):
                self.quotas.change(entity, values)
            case _:
                self._apply_coordination(change)

    def _apply_coordination(self, change: Change) -> None:
        """The changes of the transaction coordinator and of the share coordinator."""
        match change:
            case TransactionChanged():
                partitions = dict.fromkeys(change.partitions)
                own = {"state": TransactionState(change.state), "partitions": partitions}
                self.transactions.restore(Transaction(**(change._asdict() | own)), self.now_ms)
            case ShareStateKept(group, topic_id, partition):
                self.share_states.restore(share_key(group, topic_id, partition), ShareState(*change[3:]))
            case ShareStateUpdated(group, topic_id, partition, start, complete, leader_epoch, epoch, batches):
                key = share_key(group, topic_id, partition)
                written = WriteState(key, epoch, leader_epoch, start, complete, batches)
                self.share_states.restore_update(written)
            case ShareStateDeleted(group, topic_id, partition):
                self.share_states.restore(share_key(group, topic_id, partition), None)

    def _topic(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            raise LookupError(f"there is no topic {name}")
        return topic

    def _log(self, name: str, partition: int) -> PartitionLog:
        return self._topic(name).partitions[partition]

    def _grow(self, topic: Topic, replicas: tuple[tuple[int, ...], ...]) -> None:
        new = replicas[len(topic.partitions) :]
        if new:
            self.topics.grow(topic, len(replicas), new)
        elif {node for one in replicas for node in one} <= set(self.cluster.nodes):
            self.topics.place(topic, replicas)

    def _delete(self, topic: Topic) -> None:
        """Delete a topic: fetches that wait for it are answered, and its committed offsets are deleted."""
        self.topics.delete(topic)
        self.transactions.forget([(topic.name, index) for index in range(len(topic.partitions))])
        self.appended.extend(topic.partitions)
        self.deleted_topics.append(topic.name)

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
        self.changes.append(created(topic))
        self.changed_topics.append(name)
        return topic

    def take_producer_id(self) -> int:
        taken = self.next_producer_id
        self.carry_out(ProducerIdsTaken(taken + 1))
        return taken

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

    def configure_group(self, group: str, configs: Mapping[str, str]) -> None:
        self.carry_out(GroupConfigured(group, dict(configs)))

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

    def address(self, node: int, reached_at: Endpoint) -> dict[str, Any]:
        """The fields of a response, of all its versions and of all APIs, that name a broker and say where a
        client that has connected to ``reached_at`` reaches it."""
        at = self.cluster.endpoint(node, reached_at, self.config.advertised_listeners)
        named = {"node_id": node, "broker_id": node, "rack": self.cluster.rack(node)}
        return {**named, "host": at.host, "port": at.port}


def restore(state: BrokerState, changes: Iterable[Change], now_ms: int) -> list[Record]:
    """Apply the changes of a journal to a new state. Return the records that the group coordinator loads.

    Raises JournalError for changes that contradict each other.
    """
    records: list[Record] = []
    state.now_ms = now_ms
    for change in changes:
        if isinstance(change, GroupRecord):
            records.append(change)
        elif not isinstance(change, CheckpointTaken):
            try:
                state.apply(change)
            except (LookupError, ValueError, Refused) as problem:
                raise JournalError(
                    f"{type(change).__name__} does not fit what was before: {problem}"
                ) from problem
    state.appended, state.deleted_topics = [], []  # nobody waits for them yet
    return records


def snapshot(state: BrokerState, records: Iterable[Record], in_file: bool = False) -> Iterator[Change]:
    """The changes from an empty state to this one; ``records`` are the group coordinator's.

    ``in_file``: all batches are in the journal's file, and stay there. Raises OSError if a batch is in the
    file and cannot be read.
    """
    yield ClusterNamed(state.cluster_id)
    yield ProducerIdsTaken(state.next_producer_id)
    yield from _administered(state)
    for topic in state.topics:
        yield created(topic)
        for index, log in enumerate(topic.partitions):
            if in_file and len(log.batches):
                yield BatchesKept(topic.name, index, log.batches.columns.to_bytes())
            elif not in_file:
                for data in log.batches.all_data():
                    yield BatchAppended(topic.name, index, data)
            if log.end_offset:
                yield LogKept(topic.name, index, log.state())
    for transaction in state.transactions:
        yield changed_transaction(transaction)
    for key, share_state in state.share_states.states.items():
        yield kept(key, share_state)
    yield from cast("Iterable[Change]", records)


def _administered(state: BrokerState) -> Iterator[Change]:
    """Configurations, access control, credentials and quotas."""
    for group, configs in state.group_configs.items():
        yield GroupConfigured(group, configs)
    for acl in state.acls:
        yield AclCreated(acl)
    for altered in state.credentials.altered:
        yield CredentialAltered(*altered)
    for entity, quotas in state.quotas:
        yield QuotasChanged(entity, dict(quotas))
    for broker, changed in state.dynamic_configs.by_broker.items():
        yield BrokerConfigured(broker, changed)


def created(topic: Topic) -> TopicCreated:
    """The topic as it is now."""
    return TopicCreated(topic.name, topic.topic_id, topic.number, tuple(topic.replicas), dict(topic.configs))


def changed_transaction(transaction: Transaction) -> TransactionChanged:
    """The transaction as it is now."""
    same = TransactionChanged(*(getattr(transaction, name) for name in TransactionChanged._fields))
    return same._replace(state=transaction.state.value, partitions=tuple(sorted(transaction.partitions)))
