"""The operations that a member asks its driver to carry out.

A membership of the classic protocol (`membership.py`) is a generator: it yields one operation, the driver
carries it out, in virtual time or over TCP, and sends the result back. A member of a consumer group
(`consumer_group`) collects its operations, and the driver reports what comes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    JoinGroupResponse,
    Request,
)
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeat, StreamsGroupHeartbeatResponse
from groupstorm.trace.events import member as events

JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
"""The coordinator may park a JoinGroup for the rebalance timeout: the client waits this much longer
(AbstractCoordinator)."""


class Disconnected(NamedTuple):
    """Result of a `Send` whose connection broke or whose request timed out."""


class Send(NamedTuple):
    """Send ``request`` to the coordinator. Result: its response, or `Disconnected`."""

    request: Request
    timeout_ms: int


class FindCoordinator(NamedTuple):
    """Look the coordinator up and connect to it. Result: None, when the connection is open."""


class AwaitPoll(NamedTuple):
    """Wait for the first poll() at which the member has to join. Result: None."""


class Backoff(NamedTuple):
    """Wait ``delay_ms`` (retry.backoff.ms). Result: None."""

    delay_ms: int


class AwaitJoinInterval(NamedTuple):
    """Wait if less than ``interval_ms`` has passed since the last JoinGroup left, and then for as long.

    The client looks once per interval whether it may join (librdkafka's rkcg_join_intvl). Result: None.
    """

    interval_ms: int


class CallbackKind(Enum):
    """The methods of Kafka's ConsumerRebalanceListener."""

    REVOKED = "onPartitionsRevoked"
    ASSIGNED = "onPartitionsAssigned"
    LOST = "onPartitionsLost"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
ASSIGNED: Final = CallbackKind.ASSIGNED


#: The event of each callback that takes partitions from the application.
GIVEN_UP_EVENTS: Mapping[CallbackKind, Callable[..., events.Event]] = {
    CallbackKind.REVOKED: events.PartitionsRevoked,
    CallbackKind.LOST: events.PartitionsLost,
}


class RunCallback(NamedTuple):
    """Run the application's rebalance listener. Result: None, when the listener has returned.

    After ASSIGNED the driver looks up the committed offsets of the added partitions on its own: a member
    that has to join again does not wait for them.
    """

    kind: CallbackKind
    partitions: tuple[TopicPartition, ...]
    cause: str


class StopProcessing(NamedTuple):
    """Stop processing these partitions (SubscriptionState.markPendingRevocation). Result: None."""

    partitions: tuple[TopicPartition, ...]


class PauseFetching(NamedTuple):
    """Hand out no records of these partitions, which the member keeps. Result: None."""

    partitions: tuple[TopicPartition, ...]


class ResumeFetching(NamedTuple):
    """Hand out records of these partitions again. Result: None."""

    partitions: tuple[TopicPartition, ...]


class ReturnRecords(NamedTuple):
    """Let poll() return records, though the member has to join again. Result: None, at the next poll()."""


class CommitPositions(NamedTuple):
    """Commit the positions of all owned partitions. Result: the first `Error`, or `Disconnected`."""


class AssignmentFailed(NamedTuple):
    """Result of an `Assign` without a plan: the exception that poll() throws in Kafka's client."""

    error: str
    message: str


class Assign(NamedTuple):
    """Run ``assignor``, the chosen one, over ``response.members`` (`leadership.lead`).

    First fetch metadata of the topics of all members and call `Membership.assignor_begins`. Result: tuple of
    (member id, assignment bytes), or `AssignmentFailed`. No heartbeats leave meanwhile: Kafka's client holds
    its lock while the assignor runs.
    """

    response: JoinGroupResponse
    assignor: Assignor


#: The operations of a membership of the classic protocol.
Operation = (
    Send
    | FindCoordinator
    | AwaitPoll
    | Backoff
    | AwaitJoinInterval
    | RunCallback
    | StopProcessing
    | PauseFetching
    | ResumeFetching
    | ReturnRecords
    | CommitPositions
    | Assign
)


#: Heartbeats of members whose broker assigns, and their answers.
HeartbeatRequest = ConsumerGroupHeartbeat | StreamsGroupHeartbeat | ShareGroupHeartbeat
HeartbeatResponse = (
    ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse | ShareGroupHeartbeatResponse
)


class SendHeartbeat(NamedTuple):
    """Send ``request`` to the coordinator. Hand what comes back to `HeartbeatingMember.answered`.

    ``awaited``: False if the member does not wait for the answer: it has left because nobody polled, or its
    process ends.
    """

    request: HeartbeatRequest
    awaited: bool


class CommitWithEpoch(NamedTuple):
    """Commit the positions of all owned partitions. Hand the result to `HeartbeatingMember.committed`.

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


#: The operations of a member of a consumer group.
GroupOperation = (
    SendHeartbeat
    | CommitWithEpoch
    | RefreshTopics
    | ReportError
    | Left
    | FindCoordinator
    | RunCallback
    | StopProcessing
)
