"""The changes of `BrokerState` that survive a restart.

The journal of `serve --data` holds them, and the records of the group coordinator
(`groupstorm.coordinator.records`).
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from groupstorm.broker.authorization.acls import Acl
from groupstorm.broker.quotas.entities import Entity
from groupstorm.broker.security.scram import Credential
from groupstorm.coordinator.consumer.records import ConsumerRecord
from groupstorm.coordinator.records import (
    GroupMetadataRecord,
    GroupTombstone,
    OffsetCommitRecord,
    TransactionEndRecord,
)


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
    """Of all brokers, if the name is empty."""

    broker: str
    configs: dict[str, str]


class QuotasChanged(NamedTuple):
    """``values``: None: the quota was removed."""

    entity: Entity
    values: dict[str, float | None]


class BatchAppended(NamedTuple):
    """The batch with its offset in it."""

    name: str
    partition: int
    data: bytes


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
    | RecordsDeleted
    | ProducerIdsTaken
    | TransactionChanged
    | GroupMetadataRecord
    | GroupTombstone
    | OffsetCommitRecord
    | TransactionEndRecord
    | ConsumerRecord
)
