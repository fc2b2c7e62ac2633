"""Makes a broker's state of a journal, and the shortest journal of the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from groupstorm.broker.changes import (
    AclCreated,
    BatchAppended,
    BatchesKept,
    BrokerConfigured,
    Change,
    CheckpointTaken,
    ClusterNamed,
    CredentialAltered,
    GroupConfigured,
    GroupRecord,
    LogKept,
    ProducerIdsTaken,
    QuotasChanged,
    TopicCreated,
    TransactionChanged,
)
from groupstorm.broker.journal import JournalError
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.share_logs import kept
from groupstorm.broker.state import BrokerState
from groupstorm.broker.transactions import Transaction
from groupstorm.coordinator.errors import Refused
from groupstorm.coordinator.records import Record


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
