"""What a `CooperativeConsumer` raises.

`groupstorm.problems.InputError` is raised for options that cannot be, and for a broker that is too old
or refuses the client's credentials.
"""

from __future__ import annotations

from collections.abc import Collection

from groupstorm.assignors.userdata import TopicPartition


class ConsumerError(Exception):
    """Everything that a consumer raises once it runs."""


class ConsumerClosed(ConsumerError):
    """The consumer is closed, or not open yet."""


class ConsumerFailed(ConsumerError):
    """A fatal error has ended the membership; close the consumer. ``error``: Kafka's name of it."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class CommitFailed(ConsumerError):
    """The offsets were not committed. ``error``: Kafka's name of the reason.

    Most often the member has been taken out of the group and its partitions have other owners.
    """

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class RebalanceInProgress(CommitFailed):
    """The group waits for this member to join: commit again after the next record was asked for."""


class OffsetsRefused(ConsumerError):
    """The coordinator does not tell what is committed. ``error``: Kafka's name of the reason."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class ListenerFailed(ConsumerError):
    """The rebalance listener has raised what stands in ``__cause__``; the membership goes on."""


class NoOffsetForPartition(ConsumerError):
    """auto_offset_reset is none, and nothing is committed for ``partitions``: seek there."""

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        super().__init__(", ".join(map(str, partitions)))
        self.partitions = tuple(partitions)


class OffsetOutOfRange(ConsumerError):
    """auto_offset_reset is none, and the log of ``partition`` has nothing at ``offset``: seek there."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(f"{partition}: offset {offset}")
        self.partition = partition
        self.offset = offset


class FetchRefused(ConsumerError):
    """The broker does not hand out records of ``partition``. ``error``: Kafka's name of the reason."""

    def __init__(self, partition: TopicPartition, error: str) -> None:
        super().__init__(f"{partition}: {error}")
        self.partition = partition
        self.error = error


class RecordCorrupt(ConsumerError):
    """What came of ``partition`` at ``offset`` cannot be read; seek past it to go on."""

    def __init__(self, partition: TopicPartition, offset: int, why: str) -> None:
        super().__init__(f"{partition}: offset {offset}: {why}")
        self.partition = partition
        self.offset = offset


class NotAssigned(ConsumerError):
    """The partition is not (any more) assigned to this consumer."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(str(partition))
        self.partition = partition


class PollInProgress(ConsumerError):
    """Records are asked for twice at a time: what is processed could not be told any more."""


class ConsumerTimeout(ConsumerError, TimeoutError):
    """The cluster has not answered within default_api_timeout_ms."""
