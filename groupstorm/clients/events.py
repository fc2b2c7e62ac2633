"""What a member saw and did, one typed event each. ``member`` is its client id."""

from __future__ import annotations

from typing import NamedTuple


class MemberStarted(NamedTuple):
    """A consumer process is up and will join. ``topics``: its subscription."""

    group: str
    member: str
    instance: str | None
    topics: tuple[str, ...]


class RejoinRequested(NamedTuple):
    """The member knows that it has to join (again). ``cause``: `member.RejoinCause`."""

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
    count: int  # type: ignore[assignment]  # the column's name; nobody counts with tuple.count here


class PartitionsRevoked(NamedTuple):
    """onPartitionsRevoked begins and will take ``duration_us``: processing has stopped at ``positions``.

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
    """onPartitionsAssigned, which took ``duration_us``, has returned: the member fetches from ``positions``.

    ``partitions`` are the added ones (eager: all), perhaps none: the event comes once per
    generation, when the member has taken its assignment.
    """

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    duration_us: int


class MemberCrashed(NamedTuple):
    """The process is gone without a word (kill -9, node loss): it held ``partitions`` at ``positions``."""

    group: str
    member: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    committed: tuple[int, ...]


class MemberPaused(NamedTuple):
    """Processing stands still for ``duration_us`` while ``partitions`` are owned.

    ``cause``: pause (the whole process: GC, SIGSTOP) or slow-batch (the application works on one
    batch and does not poll; heartbeats go on).
    """

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    duration_us: int
    cause: str


class MemberResumed(NamedTuple):
    """The process runs on; it still believes that it owns ``partitions`` and processes them."""

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class MemberClosed(NamedTuple):
    """Consumer.close() is done. ``cause``: left (LeaveGroup was sent) or silent (static member)."""

    group: str
    member: str
    member_id: str
    cause: str


class MemberFailed(NamedTuple):
    """A fatal error ended the consumer.

    ``error``: Kafka's name (FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, ...), or the exception that
    poll() would throw (IllegalStateException: a plan that breaks the cooperative protocol).
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
    | MemberClosed
    | MemberFailed
)
