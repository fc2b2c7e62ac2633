"""The changes of `BrokerState` that survive a restart.

The journal of `serve --data` holds them, and the records of the group coordinator
(`groupstorm.coordinator.records`).
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from groupstorm.broker.authorization import Acl
from groupstorm.broker.log.columns import IN_MEMORY
from groupstorm.broker.log.partition import LogState
from groupstorm.broker.log.producers import AbortedTransaction
from groupstorm.broker.quotas import Entity
from groupstorm.broker.security.users import Credential
from groupstorm.coordinator.consumer.member import ConsumerRecord
from groupstorm.coordinator.records import (
    GroupMetadataRecord,
    GroupTombstone,
    OffsetCommitRecord,
    TransactionEndRecord,
)
from groupstorm.coordinator.share.member import ShareRecord
from groupstorm.coordinator.streams.member import StreamsRecord
from groupstorm.share_records.ports import StateBatch


class ClusterNamed(NamedTuple):
    """The first change of all."""

    cluster_id: str


class TopicCreated(NamedTuple):
    """``replicas``: per partition, its leader in front; ``number`` counts topics."""

    name: str
    topic_id: uuid.UUID
    number: int
    replicas: tuple[tuple[int, ...], ...]
    configs: dict[str, str]


class TopicGrown(NamedTuple):
    """``replicas``: of all partitions, old and new."""

    name: str
    replicas: tuple[tuple[int, ...], ...]


class TopicDeleted(NamedTuple):
    name: str


class TopicConfigured(NamedTuple):
    name: str
    configs: dict[str, str]


class GroupConfigured(NamedTuple):
    group: str
    configs: dict[str, str]


class AclCreated(NamedTuple):
    acl: Acl


class AclDeleted(NamedTuple):
    acl: Acl


class CredentialAltered(NamedTuple):
    """``mechanism``: ScramMechanism's number; no credential: it was deleted."""

    user: str
    mechanism: int
    credential: Credential | None


class BrokerConfigured(NamedTuple):
    """The settings of a broker; of all brokers, if the name is empty."""

    broker: str
    configs: dict[str, str]


class QuotasChanged(NamedTuple):
    """``values``: None: the quota was removed."""

    entity: Entity
    values: dict[str, float | None]


class BatchAppended(NamedTuple):
    """The batch with its offset in it. ``position``: of the data in the journal that it was read from; the
    journal does not hold it."""

    name: str
    partition: int
    data: bytes
    position: int = IN_MEMORY


class BatchRewritten(NamedTuple):
    """Compaction has put this batch in the place of the one with its base offset. ``position``: as of
    `BatchAppended`."""

    name: str
    partition: int
    data: bytes
    position: int = IN_MEMORY


class BatchesRemoved(NamedTuple):
    """Compaction has removed the batches that begin at these offsets."""

    name: str
    partition: int
    base_offsets: tuple[int, ...]


class LogCleaned(NamedTuple):
    """Compaction is done up to this offset. ``aborted``: the aborted transactions that still have batches."""

    name: str
    partition: int
    first_dirty_offset: int
    aborted: tuple[AbortedTransaction, ...]


class LogKept(NamedTuple):
    """The part of a log that its batches, which are in front of this change, do not tell."""

    name: str
    partition: int
    state: LogState


class BatchesKept(NamedTuple):
    """In a checkpoint: where each batch of a log is in the journal. ``columns``: `Columns` as bytes."""

    name: str
    partition: int
    columns: bytes


class CheckpointTaken(NamedTuple):
    """The first change of a checkpoint: how many bytes of the journal its state comes from, the checksum of
    the last of them, and the place behind them (`groupstorm.broker.journal.Link`)."""

    journal_bytes: int
    checksum: int
    frames: int = 0
    frame_checksum: int = 0


class RecordsDeleted(NamedTuple):
    """The log begins at this offset."""

    name: str
    partition: int
    before_offset: int


class ProducerIdsTaken(NamedTuple):
    """All ids below ``next_id`` are in use."""

    next_id: int


class TransactionChanged(NamedTuple):
    """`groupstorm.broker.transactions.Transaction`."""

    transactional_id: str
    producer_id: int
    epoch: int
    last_epoch: int
    previous_producer_id: int
    timeout_ms: int
    state: str
    partitions: tuple[tuple[str, int], ...]
    started_ms: int
    ending: tuple[int, int] | None = None


class ShareStateKept(NamedTuple):
    """A snapshot of the share coordinator's (`groupstorm.share_records.coordinator.ShareState`)."""

    group: str
    topic_id: uuid.UUID
    partition: int
    start: int
    complete: int
    leader_epoch: int
    state_epoch: int
    snapshot_epoch: int
    batches: tuple[StateBatch, ...]


class ShareStateUpdated(NamedTuple):
    """A leader has written this behind the last snapshot."""

    group: str
    topic_id: uuid.UUID
    partition: int
    start: int
    complete: int
    leader_epoch: int
    state_epoch: int
    batches: tuple[StateBatch, ...]


class ShareStateDeleted(NamedTuple):
    group: str
    topic_id: uuid.UUID
    partition: int


GroupRecord = (
    GroupMetadataRecord
    | GroupTombstone
    | OffsetCommitRecord
    | TransactionEndRecord
    | ConsumerRecord
    | StreamsRecord
    | ShareRecord
)

Change = (
    ClusterNamed
    | TopicCreated
    | TopicGrown
    | TopicDeleted
    | TopicConfigured
    | GroupConfigured
    | AclCreated
    | AclDeleted
    | BrokerConfigured
    | QuotasChanged
    | CredentialAltered
    | BatchAppended
    | BatchRewritten
    | BatchesRemoved
    | LogCleaned
    | LogKept
    | BatchesKept
    | CheckpointTaken
    | RecordsDeleted
    | ProducerIdsTaken
    | TransactionChanged
    | GroupRecord
    | ShareStateKept
    | ShareStateUpdated
    | ShareStateDeleted
)
