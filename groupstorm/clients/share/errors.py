"""The errors of a `ShareConsumer` beside those of `groupstorm.clients.consumer.errors`."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerError, RefusedByKafka


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
