"""What a membership asks of whoever drives it.

A membership (`membership.py`) is a generator: it yields one operation, the driver carries it
out (in virtual time, or over TCP) and sends the result back. Nothing here does anything.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.messages import JoinGroupResponse, Request

JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
"""A JoinGroup may park for the rebalance timeout: it waits this much longer (AbstractCoordinator)."""


class Disconnected(NamedTuple):
    """Result of a `Send` whose connection broke or whose request timed out."""


class Send(NamedTuple):
    """Send ``request`` to the coordinator. Result: its response, or `Disconnected`."""

    request: Request
    timeout_ms: int


class FindCoordinator(NamedTuple):
    """Look the coordinator up and connect to it. Result: None, when that is done."""


class AwaitPoll(NamedTuple):
    """Nothing to do: wait for the first poll() at which a rejoin is needed. Result: None."""


class Backoff(NamedTuple):
    """Wait ``delay_ms`` (retry.backoff.ms). Result: None."""

    delay_ms: int


class CallbackKind(Enum):
    """The methods of Kafka's ConsumerRebalanceListener."""

    REVOKED = "onPartitionsRevoked"
    ASSIGNED = "onPartitionsAssigned"
    LOST = "onPartitionsLost"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
ASSIGNED: Final = CallbackKind.ASSIGNED


class RunCallback(NamedTuple):
    """Run the application's rebalance listener. Result: None, when it has returned.

    After ASSIGNED the driver looks up the committed offsets of the added partitions on its own:
    a consumer that has to join again does so without waiting for them.
    """

    kind: CallbackKind
    partitions: tuple[TopicPartition, ...]
    cause: str


class StopProcessing(NamedTuple):
    """Process nothing more of these (SubscriptionState.markPendingRevocation). Result: None."""

    partitions: tuple[TopicPartition, ...]


class CommitPositions(NamedTuple):
    """Commit the positions of all owned partitions. Result: the first `Error`, or `Disconnected`."""


class AssignmentFailed(NamedTuple):
    """Result of an `Assign` that came to nothing: what Kafka's client would throw out of poll()."""

    error: str
    message: str


class Assign(NamedTuple):
    """Run the leader's assignor over ``response.members`` (`leadership.lead`).

    Result: tuple of (member id, assignment bytes), or `AssignmentFailed`. Heartbeats stand still
    meanwhile: Kafka's client holds its lock while the assignor runs.
    """

    response: JoinGroupResponse


Operation = (
    Send | FindCoordinator | AwaitPoll | Backoff | RunCallback | StopProcessing | CommitPositions | Assign
)
