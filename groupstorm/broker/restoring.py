"""Makes a broker's state of a journal, and the shortest journal of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from groupstorm.broker.apis.api import BrokerState
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
from groupstorm.broker.journal import JournalError
from groupstorm.broker.log.batches import parse_stored
from groupstorm.broker.log.columns import Columns
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.share.persister import kept, share_key
from groupstorm.broker.transactions import Transaction, TransactionState
from groupstorm.coordinator.errors import Refused
from groupstorm.coordinator.records import Record
from groupstorm.share_records.coordinator import ShareState
from groupstorm.share_records.ports import WriteState


def restore(state: BrokerState, changes: Iterable[Change], now_ms: int) -> list[Record]:
    """Apply the changes of a journal to a new state. Return the records that the group coordinator loads.

    Raises JournalError for changes that contradict each other.
    """
    records: list[Record] = []
    for change in changes:
        apply = _APPLY.get(type(change))
        if apply is None:
            records.append(cast("Record", change))
            continue
        try:
            apply(state, change, now_ms)
        except (LookupError, ValueError, Refused) as problem:
            raise JournalError(
                f"{type(change).__name__} does not fit what was before: {problem}"
            ) from problem
    return records


def _name_cluster(state: BrokerState, change: ClusterNamed, _now_ms: int) -> None:
    state.cluster_id = change.cluster_id


def _create(state: BrokerState, change: TopicCreated, _now_ms: int) -> None:
    state.topics.restore(change.name, change.topic_id, change.number, change.replicas, change.configs)


def _topic(state: BrokerState, name: str) -> Topic:
    topic = state.topics.get(name)
    if topic is None:
        raise LookupError(f"there is no topic {name}")
    return topic


def _log(state: BrokerState, name: str, partition: int) -> PartitionLog:
    return _topic(state, name).partitions[partition]


def _grow(state: BrokerState, change: TopicGrown, _now_ms: int) -> None:
    topic = _topic(state, change.name)
    new = change.replicas[len(topic.partitions) :]
    if new:
        state.topics.grow(topic, len(change.replicas), new)
    elif {node for one in change.replicas for node in one} <= set(state.cluster.nodes):
        state.topics.place(topic, change.replicas)


def _delete(state: BrokerState, change: TopicDeleted, _now_ms: int) -> None:
    state.topics.delete(_topic(state, change.name))


def _configure(state: BrokerState, change: TopicConfigured, _now_ms: int) -> None:
    state.topics.configure(_topic(state, change.name), change.configs)


def _configure_group(state: BrokerState, change: GroupConfigured, _now_ms: int) -> None:
    state.group_configs[change.group] = change.configs


def _create_acl(state: BrokerState, change: AclCreated, _now_ms: int) -> None:
    state.acls.add(change.acl)


def _delete_acl(state: BrokerState, change: AclDeleted, _now_ms: int) -> None:
    state.acls.remove(change.acl)


def _alter_credential(state: BrokerState, change: CredentialAltered, _now_ms: int) -> None:
    state.credentials.alter(*change)


def _configure_broker(state: BrokerState, change: BrokerConfigured, _now_ms: int) -> None:
    state.take_broker_configs(change.broker, change.configs)


def _change_quotas(state: BrokerState, change: QuotasChanged, _now_ms: int) -> None:
    state.quotas.change(change.entity, change.values)


def _append(state: BrokerState, change: BatchAppended, _now_ms: int) -> None:
    batch = parse_stored(change.data)
    if batch is None:
        raise ValueError("it is no whole record batch")
    _log(state, change.name, change.partition).restore(batch, change.position)


def _rewrite(state: BrokerState, change: BatchRewritten, _now_ms: int) -> None:
    _log(state, change.name, change.partition).rewrite(change.data, change.position)


def _remove(state: BrokerState, change: BatchesRemoved, _now_ms: int) -> None:
    _log(state, change.name, change.partition).remove(change.base_offsets)


def _end_cleaning(state: BrokerState, change: LogCleaned, _now_ms: int) -> None:
    log = _log(state, change.name, change.partition)
    log.end_cleaning(change.first_dirty_offset, change.aborted)


def _keep_batches(state: BrokerState, change: BatchesKept, _now_ms: int) -> None:
    _log(state, change.name, change.partition).take_batches(Columns.from_bytes(change.columns))


def _keep(state: BrokerState, change: LogKept, _now_ms: int) -> None:
    _log(state, change.name, change.partition).take_state(change.state)


def _delete_records(state: BrokerState, change: RecordsDeleted, _now_ms: int) -> None:
    _log(state, change.name, change.partition).begin_at(change.before_offset)


def _take_producer_ids(state: BrokerState, change: ProducerIdsTaken, _now_ms: int) -> None:
    state.next_producer_id = change.next_id


def _change_transaction(state: BrokerState, change: TransactionChanged, now_ms: int) -> None:
    changed = {"state": TransactionState(change.state), "partitions": dict.fromkeys(change.partitions)}
    transaction = Transaction(**(change._asdict() | changed))
    state.transactions.restore(transaction, now_ms)


def _keep_share_state(state: BrokerState, change: ShareStateKept, _now_ms: int) -> None:
    state.share_states.restore(share_key(*change[:3]), ShareState(*change[3:]))


def _update_share_state(state: BrokerState, change: ShareStateUpdated, _now_ms: int) -> None:
    group, topic_id, partition, start, complete, leader_epoch, state_epoch, batches = change
    key = share_key(group, topic_id, partition)
    written = WriteState(key, state_epoch, leader_epoch, start, complete, batches)
    state.share_states.restore_update(written)


def _delete_share_state(state: BrokerState, change: ShareStateDeleted, _now_ms: int) -> None:
    state.share_states.restore(share_key(*change), None)


_APPLY = cast(
    "dict[type, Callable[[BrokerState, Change, int], None]]",
    {
        ClusterNamed: _name_cluster,
        TopicCreated: _create,
        TopicGrown: _grow,
        TopicDeleted: _delete,
        TopicConfigured: _configure,
        GroupConfigured: _configure_group,
        AclCreated: _create_acl,
        AclDeleted: _delete_acl,
        CredentialAltered: _alter_credential,
        BrokerConfigured: _configure_broker,
        QuotasChanged: _change_quotas,
        BatchAppended: _append,
        BatchRewritten: _rewrite,
        BatchesRemoved: _remove,
        LogCleaned: _end_cleaning,
        LogKept: _keep,
        BatchesKept: _keep_batches,
        CheckpointTaken: lambda _state, _change, _now_ms: None,
        RecordsDeleted: _delete_records,
        ProducerIdsTaken: _take_producer_ids,
        TransactionChanged: _change_transaction,
        ShareStateKept: _keep_share_state,
        ShareStateUpdated: _update_share_state,
        ShareStateDeleted: _delete_share_state,
    },
)


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
    return TransactionChanged(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.epoch,
        transaction.last_epoch,
        transaction.previous_producer_id,
        transaction.timeout_ms,
        transaction.state.value,
        tuple(sorted(transaction.partitions)),
        transaction.started_ms,
        transaction.ending,
    )
