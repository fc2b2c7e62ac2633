"""The events of the threads of a Kafka Streams application, one typed event each.

``member`` is the thread's client id, ``process`` its instance, ``task`` a TaskId as Kafka prints it; ``lag``
counts records of the task's changelog, ``bytes`` the bytes of it that were read or are to be read.
"""

from __future__ import annotations

from typing import NamedTuple


class InstanceStarted(NamedTuple):
    """An instance of the application has started with ``count`` threads.

    ``rack``: its client.rack, if any; ``version``: the latest SubscriptionInfo that it knows.
    """

    group: str
    process: str
    rack: str | None
    count: int  # type: ignore[assignment]  # the column's name; tuple.count is not used
    version: int


class InstanceGone(NamedTuple):
    """All threads of an instance have ended. ``cause``: closed, crashed, or failed."""

    group: str
    process: str
    cause: str


class TasksPlaced(NamedTuple):
    """The leader has placed all tasks; ``count`` of them are warm-ups.

    ``cause``: stable; probing (there are warm-ups: try again after a while); follow-up (new owners get some
    tasks when the old owners have released them); imbalanced (KIP-441's draft: the leader watches standbys);
    version-probing (members know different versions); or an error of AssignorError.
    """

    group: str
    member: str
    generation: int
    count: int  # type: ignore[assignment]  # as above
    cause: str


class WarmUpPlaced(NamedTuple):
    """The leader has given ``process`` a standby of ``task``, which it may take over later."""

    group: str
    process: str
    task: str


class TaskRestoring(NamedTuple):
    """A thread reads the changelog of an active task before the task can run.

    ``cause``: the state that it begins with: nothing, a checkpoint of the host, or its own standby. Logs do
    not say ``lag`` and ``bytes``.
    """

    group: str
    member: str
    process: str
    task: str
    lag: int | None
    bytes: int | None
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
    """The active task processes records; the thread has had it for ``duration_us``."""

    group: str
    member: str
    process: str
    task: str
    duration_us: int


class TaskSuspended(NamedTuple):
    """A running active task has stopped. ``cause``: revoked, lost, close, crash."""

    group: str
    member: str
    process: str
    task: str
    cause: str


class TaskClosed(NamedTuple):
    """A thread has closed the task. ``cause``: active or standby.

    ``bytes``: what it had read to restore or to catch up since the last event of the task.
    """

    group: str
    member: str
    process: str
    task: str
    bytes: int
    cause: str


class StandbyStarted(NamedTuple):
    """A thread has a standby of the task (or a warm-up), ``lag`` records behind."""

    group: str
    member: str
    process: str
    task: str
    lag: int


class StandbyCaughtUp(NamedTuple):
    """A standby has caught up, after ``bytes`` in ``duration_us``."""

    group: str
    member: str
    process: str
    task: str
    bytes: int
    duration_us: int


class FollowUpScheduled(NamedTuple):
    """An assignment makes its thread ask for another rebalance, in ``duration_us``.

    ``cause``: probing (warm-ups are catching up), tasks-change-owner, version-probing, or watching (KIP-441's
    draft: when its standbys have caught up; ``duration_us`` is null).
    """

    group: str
    member: str
    duration_us: int | None
    cause: str


class FollowUpDue(NamedTuple):
    """The thread asks for the scheduled rebalance. ``cause``: as in FollowUpScheduled."""

    group: str
    member: str
    cause: str


class SubscriptionVersionChanged(NamedTuple):
    """Version probing: the thread uses ``version`` of SubscriptionInfo from its next JoinGroup on.

    ``cause``: downgrade (a member is older), upgrade (all members know a newer version).
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
    | FollowUpScheduled
    | FollowUpDue
    | SubscriptionVersionChanged
)
