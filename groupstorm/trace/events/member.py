"""The events of a member: all that it observed and did. ``member`` is its client id.

Rows of an imported trace may lack positions, committed offsets, durations and generations: logs do not always
tell them. A typed event that is read from such a row has no positions, and `UNKNOWN` in their place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN: Final = -1
"""A duration or generation that an imported trace does not know."""


class MemberStarted(NamedTuple):
    """A consumer process has started and will join. ``topics``: its subscription."""

    group: str
    member: str
    instance: str | None
    topics: tuple[str, ...]


class RejoinRequested(NamedTuple):
    """The member knows that it has to join (again). ``cause``: `clients.causes.RejoinCause`, or an error."""

    group: str
    member: str
    member_id: str
    generation: int
    cause: str


class AssignmentComputed(NamedTuple):
    """The leader ran the assignor for ``count`` members; it took ``duration_us`` (assign_ms)."""

    group: str
    member: str
    member_id: str
    generation: int
    protocol: str
    duration_us: int
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used


class PartitionsRevoked(NamedTuple):
    """onPartitionsRevoked begins and takes ``duration_us``; processing has stopped at ``positions``.

    ``cause``: rebalance (an eager member gives up everything before it joins), subscription
    (topics no longer subscribed), assignment (cooperative: not in the new assignment), close.
    """

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    committed: tuple[int, ...]
    duration_us: int
    cause: str


class PartitionsLost(NamedTuple):
    """onPartitionsLost begins: the member is out of the group (``cause``: the error, or poll-timeout)."""

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    committed: tuple[int, ...]
    duration_us: int
    cause: str


class PartitionsAssigned(NamedTuple):
    """onPartitionsAssigned has returned after ``duration_us``: the member fetches from ``positions``.

    The event comes once per generation. ``partitions``: the added ones (eager: all), perhaps none.
    """

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    duration_us: int


class MemberCrashed(NamedTuple):
    """The process has died without a LeaveGroup (kill -9, node loss); it owned ``partitions``."""

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    committed: tuple[int, ...]


class MemberPaused(NamedTuple):
    """The member does not process its ``partitions`` for ``duration_us``.

    ``cause``: pause (the whole process: GC, SIGSTOP) or slow-batch (the application works on one batch and
    does not poll; heartbeats go on).
    """

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    duration_us: int
    cause: str


class MemberResumed(NamedTuple):
    """The process runs again and processes ``partitions``, which it believes to own."""

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class PartitionsPaused(NamedTuple):
    """The member owns these partitions and fetches nothing from them.

    A Streams thread restores the state of their tasks first (KafkaConsumer.pause()). The poll() of a
    kafka-python consumer returns nothing while a round is under way.
    """

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class PartitionsResumed(NamedTuple):
    """The member fetches from these partitions again (KafkaConsumer.resume())."""

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class ProcessingRatesChanged(NamedTuple):
    """From now on the member gets from ``positions`` on by ``rates``, but not beyond the ends of the logs.

    The rates are means over the member's batches: they hold until the next row that names the partition.
    """

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    rates: tuple[int, ...]


class MemberClosed(NamedTuple):
    """Consumer.close() is done. ``cause``: left, or silent: a static member's partitions stay its own.

    It has left with a LeaveGroup, or with a ConsumerGroupHeartbeat of epoch -1.
    """

    group: str
    member: str
    member_id: str
    cause: str


class MemberFailed(NamedTuple):
    """A fatal error ended the consumer.

    ``error``: Kafka's name (FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, ...), or the exception that poll()
    throws (IllegalStateException: a plan that breaks the cooperative protocol).
    """

    group: str
    member: str
    member_id: str
    error: str


Event = (
    MemberStarted
    | RejoinRequested
    | AssignmentComputed
    | PartitionsRevoked
    | PartitionsLost
    | PartitionsAssigned
    | MemberCrashed
    | MemberPaused
    | MemberResumed
    | PartitionsPaused
    | PartitionsResumed
    | ProcessingRatesChanged
    | MemberClosed
    | MemberFailed
)
