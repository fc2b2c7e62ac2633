"""The operations that a member of a consumer group asks its driver for, beside those of a classic member."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.clients.operations import FindCoordinator, RunCallback, StopProcessing
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat


class SendHeartbeat(NamedTuple):
    """Send ``request`` to the coordinator. Hand what comes back to `ConsumerGroupMember.answered`.

    ``awaited``: False if the member does not wait for the answer: it has left because nobody polled, or its
    process ends.
    """

    request: ConsumerGroupHeartbeat
    awaited: bool


class CommitWithEpoch(NamedTuple):
    """Commit the positions of all owned partitions. Hand the result to `ConsumerGroupMember.committed`.

    ``epoch``: the member epoch in the request; -1: a commit without member, by a member that is out of the
    group.
    """

    epoch: int


class RefreshTopics(NamedTuple):
    """Fetch topic metadata: the assignment has a topic id whose name is not known."""


class ReportError(NamedTuple):
    """poll() throws the error of that name. A member in state FATAL does not go on."""

    error: str


class Left(NamedTuple):
    """unsubscribe() returns, and close() may end."""


Operation = (
    SendHeartbeat
    | CommitWithEpoch
    | RefreshTopics
    | ReportError
    | Left
    | FindCoordinator
    | RunCallback
    | StopProcessing
)
