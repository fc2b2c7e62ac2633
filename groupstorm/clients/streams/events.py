"""What the threads of a Kafka Streams application tell, one typed event each.

``member`` is the thread's client id, ``process`` the instance that it belongs to, ``task`` a TaskId as
Kafka prints it; ``lag`` counts records of the task's changelog, ``bytes`` what was or is to be read of it.
"""

from __future__ import annotations

from typing import NamedTuple


class InstanceStarted(NamedTuple):
    """An instance of the application is up, with ``count`` threads.

    ``rack``: its client.rack, if any; ``version``: the latest SubscriptionInfo that it knows.
    """

    group: str
    process: str
    rack: str | None
    count: int  # type: ignore[assignment]  # the column's name; nobody counts with tuple.count here
    version: int


class InstanceGone(NamedTuple):
    """All threads of an instance are gone. ``cause``: closed, crashed, or failed."""

    group: str
    process: str
    cause: str


class TasksPlaced(NamedTuple):
    """The leader has placed all tasks; ``count`` warm-ups are among them.

    ``cause``: stable; probing (there are warm-ups: try again after a while); follow-up (tasks are withheld
    from their new owners until the old ones let go); imbalanced (KIP-441's draft: standbys are watched);
    version-probing (members differ in the versions that they know); or an error of AssignorError's.
    """

    group: str
    member: str
    generation: int
    count: int  # type: ignore[assignment]  # as above
    cause: str


class WarmUpPlaced(NamedTuple):
    """The leader had ``process`` get a standby of ``task`` so that it can take it over later."""

    group: str
    process: str
    task: str


class TaskRestoring(NamedTuple):
    """A thread has an active task and reads its changelog before it can run.

    ``cause``: what it begins with: nothing, a checkpoint of the host's, or its own standby.
    """

    group: str
    member: str
    process: str
    task: str
    lag: int
    bytes: int
    cause: str


class TaskRestored(NamedTuple):
    """The state of an active task is complete after ``bytes`` in ``duration_us``."""

    group: str
    member: str
    process: str
    task: str
    bytes: int
    duration_us: int


class TaskRunning(NamedTuple):
    """The active task processes records from now on; the thread has had it for ``duration_us``."""

    group: str
    member: str
    process: str
    task: str
    duration_us: int


class TaskSuspended(NamedTuple):
    """The active task, which was running, processes no more. ``cause``: revoked, lost, close, crash."""

    group: str
    member: str
    process: str
    task: str
    cause: str


class TaskClosed(NamedTuple):
    """A thread has the task no more. ``cause``: whether it was active or standby.

    ``bytes``: what it had read of the changelog to restore or to catch up, and had not told yet.
    """

    group: str
    member: str
    process: str
    task: str
    bytes: int
    cause: str


class StandbyStarted(NamedTuple):
    """A thread keeps a standby of the task (a warm-up too), ``lag`` records behind."""

    group: str
    member: str
    process: str
    task: str
    lag: int


class StandbyCaughtUp(NamedTuple):
    """A standby has caught up, after ``bytes`` in ``duration_us``, and follows from now on."""

    group: str
    member: str
    process: str
    task: str
    bytes: int
    duration_us: int


class PartitionsPaused(NamedTuple):
    """KafkaConsumer.pause(): owned, but not processed, as the state of their tasks is being restored."""

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class PartitionsResumed(NamedTuple):
    """KafkaConsumer.resume(): processed from now on."""

    group: str
    member: str
    member_id: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]


class FollowUpScheduled(NamedTuple):
    """An assignment says that its thread shall ask for another rebalance, in ``duration_us``.

    ``cause``: probing (warm-ups are under way), tasks-change-owner, version-probing, or watching (KIP-441's
    draft: when its standbys have caught up, which nobody knows beforehand: ``duration_us`` is null).
    """

    group: str
    member: str
    duration_us: int | None
    cause: str


class FollowUpDue(NamedTuple):
    """The thread asks for that rebalance. ``cause``: as it was scheduled."""

    group: str
    member: str
    cause: str


class SubscriptionVersionChanged(NamedTuple):
    """Version probing: the thread will say SubscriptionInfo in ``version`` from its next JoinGroup on.

    ``cause``: downgrade (somebody is older), upgrade (everybody knows a newer one).
    """

    group: str
    member: str
    version: int
    cause: str


Event = (
    InstanceStarted
    | InstanceGone
    | TasksPlaced
    | WarmUpPlaced
    | TaskRestoring
    | TaskRestored
    | TaskRunning
    | TaskSuspended
    | TaskClosed
    | StandbyStarted
    | StandbyCaughtUp
    | PartitionsPaused
    | PartitionsResumed
    | FollowUpScheduled
    | FollowUpDue
    | SubscriptionVersionChanged
)
