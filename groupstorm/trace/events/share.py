"""The events of a share group (KIP-932): its consumers, and what the leader of its partitions does.

Rows are about ranges of records: ``positions`` are their first offsets and ``counts`` their lengths, one for
each of ``partitions``, in which a partition may stand several times.
"""

from __future__ import annotations

from typing import NamedTuple


class ShareConsumerStarted(NamedTuple):
    """A share consumer has started and will join. ``topics``: its subscription."""

    group: str
    member: str
    topics: tuple[str, ...]


class ShareConsumerGone(NamedTuple):
    """A share consumer has ended. ``cause``: closed, crashed, or failed."""

    group: str
    member: str
    cause: str


class SharePartitionsLoaded(NamedTuple):
    """The leader has the group's state of these partitions: all records before ``positions`` are done."""

    group: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class ShareRecordsAcquired(NamedTuple):
    """A consumer gets these records, each for the ``deliveries``-th time, and a lock on them.

    ``in_flight``: records that the group has in flight in the partition then.
    """

    group: str
    member: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    counts: tuple[int, ...]
    deliveries: tuple[int, ...]
    in_flight: tuple[int, ...]


class ShareRecordsAccepted(NamedTuple):
    """A consumer has acknowledged these records: they are done."""

    group: str
    member: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    counts: tuple[int, ...]


class ShareRecordsReturned(NamedTuple):
    """These records may be delivered again. The consumer had their locks for ``duration_us``.

    ``cause``: released (it gave them back), closed (it closed without acknowledging them),
    connection-closed, or lock-expired.
    """

    group: str
    member: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    counts: tuple[int, ...]
    duration_us: int
    cause: str


class ShareRecordsArchived(NamedTuple):
    """These records are never delivered again. The consumer had their locks for ``duration_us``.

    ``cause``: rejected, or delivery-limit; ``topics``: the dead letter queue to which they go, if any.
    """

    group: str
    member: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    counts: tuple[int, ...]
    duration_us: int
    cause: str
    topics: tuple[str, ...]


Event = (
    ShareConsumerStarted
    | ShareConsumerGone
    | SharePartitionsLoaded
    | ShareRecordsAcquired
    | ShareRecordsAccepted
    | ShareRecordsReturned
    | ShareRecordsArchived
)
