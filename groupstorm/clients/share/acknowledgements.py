"""Acknowledgements: what a member says of the records that brokers have locked for it. And the errors of a
`ShareConsumer` beside those of `groupstorm.clients.consumer.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerError, RefusedByKafka
from groupstorm.coordinator.errors import Error


class AcknowledgeType(IntEnum):
    """Kafka's AcknowledgeType, by its number in requests."""

    #: The record is done.
    ACCEPT = 1
    #: Any member may get it, and its delivery count goes up.
    RELEASE = 2
    #: Nobody gets it again.
    REJECT = 3
    #: It stays this member's, for another acquisition lock time-out (KIP-1222).
    RENEW = 4


#: In requests: there is no record at this offset (compacted, or a transaction's marker).
GAP = 0


class SharePartition(NamedTuple):
    """A partition as requests of share groups name it."""

    topic_id: UUID
    partition: int


class AckRange(NamedTuple):
    """Offsets from ``first`` to ``last`` and the type of all of them, `AcknowledgeType` or `GAP`."""

    first: int
    last: int
    type: int


def joined(ranges: Iterable[AckRange]) -> tuple[AckRange, ...]:
    """In order, and neighbours of one type are one range."""
    found: list[AckRange] = []
    for one in sorted(ranges):
        if found and found[-1].last + 1 == one.first and found[-1].type == one.type:
            found[-1] = AckRange(found[-1].first, one.last, one.type)
        else:
            found.append(one)
    return tuple(found)


@dataclass(eq=False, slots=True)
class Acknowledgements:
    """Acknowledgements of one partition that go to the leader which has locked the records.

    The broker answers all of a request's at once: ``error`` is None until then. ``deadline_ms``: until when
    they are repeated after errors that pass. ``due_ms``: they do not go out before.
    """

    node_id: int
    partition: SharePartition
    name: TopicPartition
    ranges: tuple[AckRange, ...]
    deadline_ms: int = 0
    due_ms: int = 0
    error: Error | None = None

    @property
    def renews(self) -> bool:
        return any(one.type == AcknowledgeType.RENEW for one in self.ranges)

    @property
    def offsets(self) -> frozenset[int]:
        """The offsets of records, without those of gaps."""
        return frozenset(
            offset for one in self.ranges if one.type != GAP for offset in range(one.first, one.last + 1)
        )


class Woken(ConsumerError):
    """`ShareConsumer.wakeup` was called (Kafka's WakeupException)."""


class AcknowledgementRefused(RefusedByKafka):
    """The broker has not taken acknowledgements of a partition, or the connection to it broke.

    Their records are no longer this member's, or stay locked until the acquisition lock's time-out.
    """


class _OfRecord(ConsumerError):
    """An error that names a record."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(f"{partition}: offset {offset}")
        self.partition = partition
        self.offset = offset


class NotAcknowledged(_OfRecord):
    """share_acknowledgement_mode is explicit, and the application asks for more before it has acknowledged
    all records that it has (Kafka's IllegalStateException).
    """


class NotHeld(_OfRecord):
    """The record is not one that the application has and may acknowledge (Kafka's IllegalStateException)."""


class ImplicitMode(ConsumerError):
    """share_acknowledgement_mode is implicit: the application acknowledges nothing itself."""
