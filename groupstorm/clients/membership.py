"""One consumer's membership, as Kafka's Java client lives it (AbstractCoordinator, ConsumerCoordinator).

`Membership.run()` is the application thread inside poll(): a generator that yields operations
(`operations.py`) and is resumed with their results. What the client's heartbeat thread and its commit
callbacks do meanwhile are plain methods. There is no clock, no socket and no thread in here: a driver
carries out the operations in virtual time or over TCP, stamps the events and decides when poll() is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

from groupstorm.assignors.contract import Assignor, RebalanceProtocol
from groupstorm.assignors.userdata import Assignment, TopicPartition, decode_assignment
from groupstorm.clients import events, requests
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.clients.operations import (
    JOIN_GROUP_TIMEOUT_LAPSE_MS,
    Assign,
    AssignmentFailed,
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    Operation,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    Heartbeat,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroupResponse,
)

Flow = Generator[Operation, Any, None]


class MemberState(Enum):
    """AbstractCoordinator.MemberState."""

    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


class RejoinCause(StrEnum):
    """Why a member has to join (again); errors that reset its generation stand under Kafka's names."""

    FIRST_JOIN = "first-join"
    GROUP_REBALANCING = "group-rebalancing"
    REVOKED_PARTITIONS = "revoked-partitions"
    METADATA_CHANGED = "metadata-changed"
    ASSIGNMENT_MISMATCH = "assignment-does-not-match-subscription"
    POLL_TIMEOUT = "poll-timeout"


#: Errors of JoinGroup and SyncGroup after which the client joins again at once, without a pause
#: (AbstractCoordinator.joinGroupIfNeeded).
RETRIED_AT_ONCE = frozenset(
    {Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED}
)
#: Errors after which it pauses for retry.backoff.ms first.
RETRIED_AFTER_BACKOFF = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
)
#: Errors that say that the coordinator has moved or is not there.
COORDINATOR_UNKNOWN = frozenset(
    {Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT}
)
#: Errors that tell a member that its generation or id is no longer good -> whether its id is reset too.
GENERATION_RESET: Mapping[Error, bool] = {
    Error.UNKNOWN_MEMBER_ID: True,
    Error.FENCED_INSTANCE_ID: True,
    Error.ILLEGAL_GENERATION: False,
}


class Membership:
    """The state of one consumer in one group.

    ``emit`` takes the events that need no clock; ``topics`` gives the topic metadata (name ->
    partitions) as this client knows it now.
    """

    __slots__ = (
        "_assignment_bytes",
        "_assignment_snapshot",
        "_assignors",
        "_emit",
        "_last_assignment",
        "_lost_cause",
        "_needs_join_prepare",
        "_told",
        "_topics",
        "config",
        "coordinator_known",
        "failure",
        "generation",
        "is_leader",
        "owned",
        "rebalance_protocol",
        "rejoin_needed",
        "state",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        topics: Callable[[], Mapping[str, int]],
        emit: Callable[[events.Event], None],
    ) -> None:
        self.config = config
        self.state = MemberState.UNJOINED
        self.generation = Generation()
        self.owned: tuple[TopicPartition, ...] = ()
        self.is_leader = False
        self.rejoin_needed = False
        #: What ended the consumer: Kafka's name of an error, or the exception that poll() would throw.
        self.failure: str | None = None
        self.coordinator_known = False
        self.rebalance_protocol = common_rebalance_protocol(assignors)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._topics = topics
        self._emit = emit
        self._needs_join_prepare = True
        self._lost_cause = ""
        self._assignment_snapshot: Mapping[str, int] | None = None
        #: The last assignment, as it came and decoded: most rounds change nothing for most members.
        self._assignment_bytes = b""
        self._told = Assignment(())
        #: What the assignor was last told (onAssignment), kept when partitions are given up or lost.
        self._last_assignment: requests.LastAssignment = (None, NO_GENERATION)

    # -- what the application thread does --------------------------------------------------------

    def run(self) -> Flow:
        """From the first poll() on, until a fatal error ends the consumer."""
        self.request_rejoin(RejoinCause.FIRST_JOIN)
        while self.failure is None:
            if self.rejoin_needed:
                yield from self._join_group_if_needed()
            else:
                yield AwaitPoll()
        yield from self._fail(self.failure)

    def close(self) -> Flow:
        """Consumer.close(): commit, revoke, leave. Run it in place of `run`, whose generator is dropped."""
        config = self.config
        if self.owned:
            yield StopProcessing(self.owned)
            if config.enable_auto_commit and self.state is MemberState.STABLE:
                yield CommitPositions()
        in_doubt = self._generation_is_reset() or self.state in (
            MemberState.PREPARING_REBALANCE,
            MemberState.COMPLETING_REBALANCE,
        )
        if self.owned:
            kind = CallbackKind.LOST if in_doubt else CallbackKind.REVOKED
            yield from self._give_up(kind, self.owned, "close")
        leave = self._leave_request("the consumer is being closed") if config.leaves_on_close else None
        member_id = self.generation.member_id
        self._reset(reset_member_id=True)
        if leave is not None:
            yield Send(leave, config.request_timeout_ms)
        self._emit(
            events.MemberClosed(config.group_id, config.client_id, member_id, "left" if leave else "silent")
        )

    def _join_group_if_needed(self) -> Flow:
        while self.rejoin_needed and self.failure is None:
            if not self.coordinator_known:
                yield FindCoordinator()
                self.coordinator_known = True
            if self._needs_join_prepare:
                self._needs_join_prepare = False
                yield from self._on_join_prepare()
            self.state = MemberState.PREPARING_REBALANCE
            error = yield from self._join_and_sync()
            if error is None or error in RETRIED_AT_ONCE:
                continue
            if error in RETRIED_AFTER_BACKOFF:
                yield Backoff(self.config.retry_backoff_ms)
            else:
                self.failure = error.name

    def _on_join_prepare(self) -> Flow:
        """Before a JoinGroup: commit, then give up what has to be given up (onJoinPrepare)."""
        eager = self.rebalance_protocol is RebalanceProtocol.EAGER
        if self.config.enable_auto_commit and self.owned:
            if eager:
                yield StopProcessing(self.owned)
            while self.state is MemberState.STABLE:
                result = yield CommitPositions()
                if not isinstance(result, Disconnected) and result not in RETRIED_AFTER_BACKOFF:
                    break
                yield Backoff(self.config.retry_backoff_ms)
                if not self.coordinator_known:
                    yield FindCoordinator()
                    self.coordinator_known = True
        if self._generation_is_reset():
            yield from self._give_up(CallbackKind.LOST, self.owned, self._lost_cause)
        elif eager:
            yield from self._give_up(CallbackKind.REVOKED, self.owned, "rebalance")
        else:
            unsubscribed = tuple(tp for tp in self.owned if tp.topic not in self.config.topics)
            yield from self._give_up(CallbackKind.REVOKED, unsubscribed, "subscription")
        self.is_leader = False

    def _give_up(self, kind: CallbackKind, partitions: tuple[TopicPartition, ...], cause: str) -> Flow:
        if not partitions:
            return
        gone = set(partitions)
        yield RunCallback(kind, partitions, cause)
        self.owned = tuple(tp for tp in self.owned if tp not in gone)

    def _join_and_sync(self) -> Generator[Operation, Any, Error | None]:
        """One round; the error that ended it, or None when the member is Stable."""
        config = self.config
        timeout_ms = max(config.request_timeout_ms, config.max_poll_interval_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)
        joined = yield Send(self._join_request(), timeout_ms)
        if (error := self._join_error(joined)) is not Error.NONE:
            return error
        self.state = MemberState.COMPLETING_REBALANCE
        self.generation = Generation(joined.generation, joined.member_id, joined.protocol)
        assignments: tuple[tuple[str, bytes], ...] = ()
        if joined.leader == joined.member_id:
            self.is_leader = True
            self._assignment_snapshot = self._subscribed_topics()
            if not joined.skip_assignment:
                plan = yield Assign(joined)
                if isinstance(plan, AssignmentFailed):
                    self.failure = plan.error
                    return None
                assignments = plan
        synced = yield Send(requests.sync_group(config, joined, assignments), config.request_timeout_ms)
        if (error := self._sync_error(synced)) is not Error.NONE:
            return error
        self.state = MemberState.STABLE
        self.rejoin_needed = False
        self._needs_join_prepare = True
        yield from self._on_join_complete(synced.assignment)
        return None

    def _join_error(self, response: JoinGroupResponse | Disconnected) -> Error:
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is Error.MEMBER_ID_REQUIRED:
            self.generation = Generation(NO_GENERATION, response.member_id)
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset_and_rejoin(error.name, reset_member_id=True)
        elif error in COORDINATOR_UNKNOWN:
            self.coordinator_known = False
        return error

    def _sync_error(self, response: SyncGroupResponse | Disconnected) -> Error:
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is Error.NONE and self.state is not MemberState.COMPLETING_REBALANCE:
            # A heartbeat's answer has reset the generation meanwhile: this round is void.
            return Error.ILLEGAL_GENERATION
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._reset_and_rejoin(error.name, reset_member_id=GENERATION_RESET[error])
        elif error in COORDINATOR_UNKNOWN:
            self.coordinator_known = False
        elif error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            # Kafka's client knows this answer to JoinGroup only: to SyncGroup it is fatal.
            return Error.UNKNOWN_SERVER_ERROR
        return error

    def _connection_lost(self) -> Error:
        self.coordinator_known = False
        return Error.COORDINATOR_NOT_AVAILABLE

    def _on_join_complete(self, assignment: bytes) -> Flow:
        """Take the assignment: revoke, then add; cooperative revocation asks for another round."""
        if not self.is_leader:
            self._assignment_snapshot = None
        if len(assignment) < 2:
            # The leader's plan has nothing for this member: Kafka's client throws out of poll().
            self.failure = "IllegalStateException"
            return
        if assignment != self._assignment_bytes:
            self._assignment_bytes = assignment
            told = decode_assignment(assignment)
            self._told = told._replace(partitions=tuple(sorted(told.partitions)))
        assigned, before = self._told.partitions, self.owned
        if any(topic not in self.config.topics for topic, _ in assigned):
            self.request_rejoin(RejoinCause.ASSIGNMENT_MISMATCH)
            return
        added: tuple[TopicPartition, ...] = ()
        revoked: tuple[TopicPartition, ...] = ()
        if assigned is not before:
            owned, kept = set(before), set(assigned)
            added = tuple([tp for tp in assigned if tp not in owned])
            revoked = tuple([tp for tp in before if tp not in kept])
        if revoked and self.rebalance_protocol is RebalanceProtocol.COOPERATIVE:
            yield from self._give_up(CallbackKind.REVOKED, revoked, "assignment")
            self.request_rejoin(RejoinCause.REVOKED_PARTITIONS)
        self._last_assignment = (self._told, self.generation.id)
        self.owned = assigned
        yield RunCallback(CallbackKind.ASSIGNED, added, "assignment")

    def _fail(self, error: str) -> Flow:
        config = self.config
        yield from self._give_up(CallbackKind.LOST, self.owned, error)
        member_id = self.generation.member_id
        self._reset(reset_member_id=True)
        self._emit(events.MemberFailed(config.group_id, config.client_id, member_id, error))

    # -- what happens to it meanwhile ------------------------------------------------------------

    @property
    def heartbeating(self) -> bool:
        """Whether the heartbeat thread sends: from the JoinGroup's answer until the next JoinGroup."""
        state = self.state
        return state is MemberState.STABLE or state is MemberState.COMPLETING_REBALANCE

    def heartbeat(self, generation: Generation) -> Heartbeat:
        """A heartbeat as it was sent in ``generation``."""
        return requests.heartbeat(self.config, generation)

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """HeartbeatResponseHandler: ``sent`` is the generation that the request carried."""
        if error is Error.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.request_rejoin(RejoinCause.GROUP_REBALANCING)
        elif error in GENERATION_RESET:
            if sent == self.generation:
                if error is Error.FENCED_INSTANCE_ID:
                    self.failure = error.name
                self._reset_and_rejoin(error.name, GENERATION_RESET[error])
        elif error in COORDINATOR_UNKNOWN:
            self.coordinator_known = False

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """OffsetCommitResponseHandler: what a rejected commit tells the member."""
        if error is Error.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.request_rejoin(RejoinCause.GROUP_REBALANCING)
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            if sent == self.generation:
                self._reset_and_rejoin(error.name, GENERATION_RESET[error])
        elif error in COORDINATOR_UNKNOWN:
            self.coordinator_known = False

    def poll_timed_out(self) -> LeaveGroup | None:
        """max.poll.interval.ms passed without a poll(): a dynamic member leaves, to send now if any.

        A static member sends nothing, but forgets its generation as well (maybeLeaveGroup).
        """
        leave = None
        if self.config.group_instance_id is None:
            leave = self._leave_request("consumer poll timeout has expired.")
        self._reset_and_rejoin(RejoinCause.POLL_TIMEOUT, reset_member_id=True)
        return leave

    def metadata_refreshed(self) -> None:
        """New topic metadata came in: only the leader compares it (rejoinNeededOrPending)."""
        if self._assignment_snapshot is not None and self._assignment_snapshot != self._subscribed_topics():
            self.request_rejoin(RejoinCause.METADATA_CHANGED)

    def request_rejoin(self, cause: str) -> None:
        """Note that the member has to join; the first cause is the one that is told."""
        if self.rejoin_needed:
            return
        self.rejoin_needed = True
        config, generation = self.config, self.generation
        self._emit(
            events.RejoinRequested(
                config.group_id, config.client_id, generation.member_id, generation.id, str(cause)
            )
        )

    # -- parts -----------------------------------------------------------------------------------

    def _join_request(self) -> JoinGroup:
        config, generation, owned, last = self.config, self.generation, self.owned, self._last_assignment
        protocols = [
            (name, requests.subscription(config, assignor, generation, owned, last))
            for name, assignor in self._assignors.items()
        ]
        return requests.join_group(config, generation, tuple(protocols))

    def _leave_request(self, reason: str) -> LeaveGroup | None:
        """None where there is nobody to tell, or nothing to leave."""
        if not self.coordinator_known or self.state is MemberState.UNJOINED or not self.generation.member_id:
            return None
        return requests.leave_group(self.config, self.generation, reason)

    def _subscribed_topics(self) -> Mapping[str, int]:
        known = self._topics()
        return {topic: known[topic] for topic in self.config.topics if topic in known}

    def _generation_is_reset(self) -> bool:
        return self.generation.id == NO_GENERATION or not self.generation.member_id

    def _reset(self, reset_member_id: bool) -> None:
        self.state = MemberState.UNJOINED
        self.generation = Generation(
            NO_GENERATION, NO_MEMBER_ID if reset_member_id else self.generation.member_id
        )

    def _reset_and_rejoin(self, cause: str, reset_member_id: bool) -> None:
        """resetStateAndRejoin: what is owned counts as lost when the member next joins."""
        self.request_rejoin(cause)
        self._reset(reset_member_id)
        self._lost_cause = str(cause)
        self._needs_join_prepare = True


def common_rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """COOPERATIVE if every assignor supports it, else EAGER (ConsumerCoordinator, KIP-429)."""
    if all(RebalanceProtocol.COOPERATIVE in assignor.protocols for assignor in assignors):
        return RebalanceProtocol.COOPERATIVE
    return RebalanceProtocol.EAGER
