"""The errors of a `CooperativeConsumer`.

Invalid options, a broker that is too old and refused credentials raise `groupstorm.problems.InputError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from groupstorm.assignors.userdata import TopicPartition


class ConsumerError(Exception):
    """The base of all errors of a running consumer."""


class ConsumerClosed(ConsumerError):
    """The consumer is closed, or not open yet."""


class RefusedByKafka(ConsumerError):
    """``error``: Kafka's name of the reason."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class ConsumerFailed(RefusedByKafka):
    """A fatal error has ended the membership: close the consumer."""


class CommitFailed(RefusedByKafka):
    """The offsets were not committed.

    Most often the coordinator has removed the member and its partitions have other owners.
    """


class RebalanceInProgress(CommitFailed):
    """The group waits for this member to join: ask for the next record, then commit again."""


class OffsetsRefused(RefusedByKafka):
    """The coordinator refuses to return committed offsets."""


class ListenerFailed(ConsumerError):
    """The rebalance listener has raised ``__cause__``; the membership goes on."""


class NoOffsetForPartition(ConsumerError):
    """auto_offset_reset is none, and ``partitions`` have no committed offset: seek."""

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        super().__init__(", ".join(map(str, partitions)))
        self.partitions = tuple(partitions)


class OfRecord(ConsumerError):
    """An error that names a record."""

    def __init__(self, partition: TopicPartition, offset: int, why: str = "") -> None:
        super().__init__(f"{partition}: offset {offset}" + (f": {why}" if why else ""))
        self.partition = partition
        self.offset = offset


class OffsetOutOfRange(OfRecord):
    """auto_offset_reset is none, and ``offset`` is outside the log of ``partition``: seek."""


class FetchRefused(ConsumerError):
    """The broker refuses to return records of ``partition``. ``error``: Kafka's name of the reason."""

    def __init__(self, partition: TopicPartition, error: str) -> None:
        super().__init__(f"{partition}: {error}")
        self.partition = partition
        self.error = error


class RecordCorrupt(OfRecord):
    """The batch of ``partition`` at ``offset`` cannot be read; seek past it to continue."""


class NotAssigned(ConsumerError):
    """The partition is not assigned to this consumer."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(str(partition))
        self.partition = partition


class PollInProgress(ConsumerError):
    """Two tasks ask for records at a time: the consumer could not tell which records are processed."""


class ConsumerTimeout(ConsumerError, TimeoutError):
    """The cluster has not answered within default_api_timeout_ms."""


@asynccontextmanager
async def time_limit(timeout_ms: int, what: str) -> AsyncIterator[None]:
    """Raise ConsumerTimeout if the body takes longer. ``what`` begins its message."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            yield
    except TimeoutError as late:
        raise ConsumerTimeout(f"{what} {timeout_ms} ms") from late
