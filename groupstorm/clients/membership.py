"""One consumer's membership, as Kafka's Java client lives it (AbstractCoordinator, ConsumerCoordinator).

`Membership.run()` is the application thread inside poll(): a generator that yields operations
(`operations.py`) and is resumed with their results. What happens to the member meanwhile are the plain
methods of `Standing`. There is no clock, no socket and no thread in here: a driver carries out the
operations in virtual time or over TCP, stamps the events and decides when poll() is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from groupstorm.assignors.contract import COOPERATIVE, EAGER, Assignor, RebalanceProtocol
from groupstorm.assignors.userdata import Assignment, TopicPartition, decode_assignment
from groupstorm.clients import events, requests
from groupstorm.clients.causes import CLOSING, RejoinCause, needs_member_id
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
from groupstorm.clients.refusals import (
    COMMIT_RETRIED,
    COORDINATOR_MOVED,
    EXCEPTIONS,
    EXPECTED_OF_JOIN,
    EXPECTED_OF_SYNC,
    GENERATION_RESET,
    RETRIED_AFTER_BACKOFF,
    RETRIED_AT_ONCE,
)
from groupstorm.clients.standing import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    Standing,
)
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import NO_GENERATION, JoinGroup, JoinGroupResponse, SyncGroupResponse

Flow = Generator[Operation, Any, None]

# Operations that say nothing of their own.
_AWAIT_POLL = AwaitPoll()
_COMMIT_POSITIONS = CommitPositions()
_KEEP_EVERYTHING = RunCallback(CallbackKind.ASSIGNED, (), "assignment")

#: How long close() tries to commit (ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS).
CLOSE_TIMEOUT_MS = 30_000


class Membership(Standing):
    """The state of one consumer in one group, and what its application thread does with it."""

    __slots__ = (
        "_assignment_bytes",
        "_assignors",
        "_last_assignments",
        "_told",
        "is_leader",
        "owned",
        "rebalance_protocol",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        topics: Callable[[], Mapping[str, int]],
        emit: Callable[[events.Event], None],
    ) -> None:
        super().__init__(config, topics, emit)
        self.owned: tuple[TopicPartition, ...] = ()
        self.is_leader = False
        self.rebalance_protocol = common_rebalance_protocol(assignors)
        self._assignors = tuple({assignor.name: assignor for assignor in assignors}.values())
        #: The last assignment, as it came and decoded: most rounds change nothing for most members.
        self._assignment_bytes = b""
        self._told = Assignment(())
        #: What each assignor was last told (onAssignment): only the chosen one is. Kept when partitions
        #: are given up or lost.
        self._last_assignments = {each.name: requests.NEVER_ASSIGNED for each in self._assignors}

    @property
    def user_data(self) -> bytes | None:
        """What travelled with the last assignment."""
        return self._told.user_data

    # -- what the application thread does --------------------------------------------------------

    def run(self) -> Flow:
        """From the first poll() on, until a fatal error ends the consumer."""
        self.request_rejoin(RejoinCause.FIRST_JOIN)
        while self.failure is None:
            if not self.rejoin_needed:
                yield _AWAIT_POLL
                continue
            if not self.coordinator_known:
                yield FindCoordinator()
                self.coordinator_known = True
            if self._needs_join_prepare:
                self._needs_join_prepare = False
                yield from self._on_join_prepare()
                continue  # which may have failed
            self.state = PREPARING_REBALANCE
            error = yield from self._join_and_sync()
            if error is None or error in RETRIED_AT_ONCE:
                continue
            if error in RETRIED_AFTER_BACKOFF:
                yield Backoff(self.config.retry_backoff_ms)
            else:
                self.failure = error.name
        failure, member_id = self.failure, self.generation.member_id
        yield from self._leave_the_group(failure)
        self._emit(events.MemberFailed(self.config.group_id, self.config.client_id, member_id, failure))

    def close(self) -> Flow:
        """Consumer.close(): commit, revoke, leave. Run it in place of `run`, whose generator is dropped."""
        member_id = self.generation.member_id
        left = yield from self._leave_the_group("close")
        self._emit(
            events.MemberClosed(
                self.config.group_id, self.config.client_id, member_id, "left" if left else "silent"
            )
        )

    def _leave_the_group(self, cause: str) -> Generator[Operation, Any, bool]:
        """What close() does, also that of an application whose poll() has thrown; whether it has left."""
        config = self.config
        if self.owned:
            yield StopProcessing(self.owned)
            # a fenced commit has been told to the application: it is not sent again
            if config.enable_auto_commit and self.failure != Error.FENCED_INSTANCE_ID.name:
                yield from self._commit_positions(CLOSE_TIMEOUT_MS)
        in_doubt = self._generation_is_reset() or self.state in (
            PREPARING_REBALANCE,
            COMPLETING_REBALANCE,
        )
        if in_doubt:
            yield from self._give_up(CallbackKind.LOST, self.owned, cause)
        else:
            yield from self._give_up(CallbackKind.REVOKED, self.owned, "close")
        leave = self._leave_request(CLOSING) if config.leaves_on_close else None
        self._reset(reset_member_id=True)
        if leave is not None:
            yield Send(leave, config.request_timeout_ms)
        return leave is not None

    def _on_join_prepare(self) -> Flow:
        """Before a JoinGroup: commit, then give up what has to be given up (onJoinPrepare)."""
        eager = self.rebalance_protocol is EAGER
        if self.config.enable_auto_commit and self.owned:
            if eager:
                yield StopProcessing(self.owned)
            yield from self._commit_positions(self.config.max_poll_interval_ms)
            if self.failure is not None:
                return
        if self._generation_is_reset():
            yield from self._give_up(CallbackKind.LOST, self.owned, self._lost_cause)
        elif eager:
            yield from self._give_up(CallbackKind.REVOKED, self.owned, "rebalance")
        elif unsubscribed := tuple([tp for tp in self.owned if tp.topic not in self.config.topics]):
            yield from self._give_up(CallbackKind.REVOKED, unsubscribed, "subscription")
        self.is_leader = False

    def _commit_positions(self, timeout_ms: int) -> Flow:
        """Until it is accepted, refused for good, or the pauses in between have used ``timeout_ms`` up."""
        backoff_ms = self.config.retry_backoff_ms
        left_ms = timeout_ms
        while self.state is STABLE:
            result = yield _COMMIT_POSITIONS
            if not isinstance(result, Disconnected) and result not in COMMIT_RETRIED:
                return
            left_ms -= backoff_ms
            if left_ms <= 0:
                return
            yield Backoff(backoff_ms)
            if not self.coordinator_known:
                yield FindCoordinator()
                self.coordinator_known = True

    def _give_up(self, kind: CallbackKind, partitions: tuple[TopicPartition, ...], cause: str) -> Flow:
        if not partitions:
            return
        gone = set(partitions)
        yield RunCallback(kind, partitions, cause)
        self.owned = tuple(tp for tp in self.owned if tp not in gone)

    def _join_and_sync(self) -> Generator[Operation, Any, Error | None]:
        """One round; the error that ended it, or None when the member is Stable."""
        config = self.config
        timeout_ms = max(config.request_timeout_ms, config.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)
        joined = yield Send(self._join_request(), timeout_ms)
        if (error := self._join_error(joined)) is not NO_ERROR:
            return error
        self.state = COMPLETING_REBALANCE
        self.generation = Generation(joined.generation, joined.member_id, joined.protocol)
        assignments: tuple[tuple[str, bytes], ...] = ()
        if joined.leader == joined.member_id:
            self.is_leader = True
            if not joined.skip_assignment:
                plan = yield Assign(joined)
                if isinstance(plan, AssignmentFailed):
                    self.failure = plan.error
                    return None
                assignments = plan
            self._watch_topics(joined.members)
        synced = yield Send(requests.sync_group(config, joined, assignments), config.request_timeout_ms)
        if (error := self._sync_error(synced)) is not NO_ERROR:
            return error
        self.state = STABLE
        self.rejoin_needed = False
        self._rejoin_reason = ""
        self._needs_join_prepare = True
        yield from self._on_join_complete(synced.assignment)
        return None

    def _join_error(self, response: JoinGroupResponse | Disconnected) -> Error:
        """JoinGroupResponseHandler."""
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is NO_ERROR:
            if response.protocol_type not in (None, self.config.protocol_type):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            if self.state is PREPARING_REBALANCE:
                return NO_ERROR
            # A heartbeat's answer has reset the generation meanwhile: a pause, and another JoinGroup.
            self._rejoin_reason = "rebalance failed due to UnjoinedGroupException"
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        if error is Error.MEMBER_ID_REQUIRED:
            self.generation = Generation(NO_GENERATION, response.member_id)
            self._rejoin_reason = needs_member_id(response.member_id)
        elif error is Error.UNKNOWN_MEMBER_ID:
            self._reset_and_rejoin(error.name, reset_member_id=True)
        return self._refused(error, EXPECTED_OF_JOIN)

    def _sync_error(self, response: SyncGroupResponse | Disconnected) -> Error:
        """SyncGroupResponseHandler."""
        if isinstance(response, Disconnected):
            return self._connection_lost()
        error = response.error
        if error is NO_ERROR:
            if response.protocol_type not in (None, self.config.protocol_type):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            if self.state is not COMPLETING_REBALANCE:
                # A heartbeat's answer has reset the generation meanwhile: this round is void.
                error = Error.ILLEGAL_GENERATION
            elif response.protocol in (None, self.generation.protocol):
                return NO_ERROR
            else:
                return Error.INCONSISTENT_GROUP_PROTOCOL
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self._reset_and_rejoin(error.name, reset_member_id=GENERATION_RESET[error])
        return self._refused(error, EXPECTED_OF_SYNC)

    def _refused(self, error: Error, expected: frozenset[Error]) -> Error:
        """The round has failed: the next JoinGroup, if there is one, tells why."""
        if error not in expected:
            return Error.UNKNOWN_SERVER_ERROR
        if error in COORDINATOR_MOVED:
            self.coordinator_known = False
        if error in EXCEPTIONS:
            self._rejoin_reason = f"rebalance failed due to {EXCEPTIONS[error]}"
        return error

    def _connection_lost(self) -> Error:
        self.coordinator_known = False
        return self._refused(Error.NETWORK_EXCEPTION, frozenset(EXCEPTIONS))

    def _on_join_complete(self, assignment: bytes) -> Flow:
        """Take the assignment: revoke, then add; cooperative revocation asks for another round."""
        if not self.is_leader:
            self._topics_assigned = None
        if len(assignment) < 2:
            # The leader's plan has nothing for this member: Kafka's client throws out of poll().
            self.failure = "IllegalStateException"
            return
        if assignment != self._assignment_bytes:
            self._assignment_bytes = assignment
            told = decode_assignment(assignment)
            self._told = told._replace(partitions=tuple(sorted(told.partitions)))
        assigned, before = self._told.partitions, self.owned
        added: tuple[TopicPartition, ...] = ()
        revoked: tuple[TopicPartition, ...] = ()
        if assigned is not before:
            if any(topic not in self.config.topics for topic, _ in assigned):
                self.request_rejoin(RejoinCause.ASSIGNMENT_MISMATCH)
                return
            owned, kept = set(before), set(assigned)
            added = tuple([tp for tp in assigned if tp not in owned])
            revoked = tuple([tp for tp in before if tp not in kept])
        if revoked and self.rebalance_protocol is COOPERATIVE:
            yield from self._give_up(CallbackKind.REVOKED, revoked, "assignment")
            self.request_rejoin(RejoinCause.REVOKED_PARTITIONS)
        self._last_assignments[self.generation.protocol or ""] = (self._told, self.generation.id)
        self.owned = assigned
        yield RunCallback(CallbackKind.ASSIGNED, added, "assignment") if added else _KEEP_EVERYTHING

    def _join_request(self) -> JoinGroup:
        config, generation, owned, last = self.config, self.generation, self.owned, self._last_assignments
        protocols = [
            (each.name, requests.subscription(config, each, generation, owned, last[each.name]))
            for each in self._assignors
        ]
        return requests.join_group(config, generation, tuple(protocols), self._rejoin_reason)


def common_rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """COOPERATIVE if every assignor supports it, else EAGER (ConsumerCoordinator, KIP-429)."""
    if all(COOPERATIVE in assignor.protocols for assignor in assignors):
        return COOPERATIVE
    return EAGER
