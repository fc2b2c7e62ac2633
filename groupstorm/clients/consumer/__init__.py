"""A consumer for asyncio with cooperative rebalancing (KIP-429): `CooperativeConsumer`.

It shares its membership with the wire members (`groupstorm.clients.membership`, `groupstorm.clients.wire`).
It fetches records itself and decodes them with aiokafka, which must be installed to make a consumer.
"""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.application import RebalanceListener
from groupstorm.clients.consumer.consumer import CooperativeConsumer
from groupstorm.clients.consumer.errors import (
    CommitFailed,
    ConsumerClosed,
    ConsumerError,
    ConsumerFailed,
    ConsumerTimeout,
    FetchRefused,
    ListenerFailed,
    NoOffsetForPartition,
    NotAssigned,
    OffsetOutOfRange,
    OffsetsRefused,
    PollInProgress,
    RebalanceInProgress,
    RecordCorrupt,
)
from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.coordinator.messages import CommittedOffset

__all__ = [
    "CommitFailed",
    "CommittedOffset",
    "ConsumerClosed",
    "ConsumerError",
    "ConsumerFailed",
    "ConsumerRecord",
    "ConsumerTimeout",
    "CooperativeConsumer",
    "FetchRefused",
    "ListenerFailed",
    "NoOffsetForPartition",
    "NotAssigned",
    "OffsetOutOfRange",
    "OffsetsRefused",
    "PollInProgress",
    "RebalanceInProgress",
    "RebalanceListener",
    "RecordCorrupt",
    "TopicPartition",
]
