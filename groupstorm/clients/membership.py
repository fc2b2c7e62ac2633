"""One consumer's membership, as in Kafka's Java client (AbstractCoordinator, ConsumerCoordinator).

`Membership.run()` is the application thread inside poll(): a generator that yields operations
(`operations.py`) and is resumed with their results. Between two operations the driver calls the plain
methods of `MemberSession`. There is no clock, socket or thread here: the driver carries out the operations,
in virtual time or over TCP, stamps the events and decides when poll() is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

from groupstorm.assignors.contract import COOPERATIVE, EAGER, Assignor, RebalanceProtocol
from groupstorm.assignors.userdata import Assignment, TopicPartition, decode_assignment
from groupstorm.clients import requests
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.error_tables import (
    CLOSING,
    COMMIT_RETRIED,
    REASONS,
    RETRIED_AFTER_BACKOFF,
    RETRIED_AT_ONCE,
    RejoinCause,
)
from groupstorm.clients.member_session import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    UNJOINED,
    Generation,
    MemberSession,
)
from groupstorm.clients.operations import (
    ASSIGNED,
    JOIN_GROUP_TIMEOUT_LAPSE_MS,
    Assign,
    AssignmentFailed,
    AwaitJoinInterval,
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    Operation,
    PauseFetching,
    ResumeFetching,
    ReturnRecords,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import JoinGroup, LeaveGroup
from groupstorm.trace.events import member as events

Flow = Generator[Operation, Any, None]

# Operations without parameters.
_AWAIT_POLL = AwaitPoll()
_COMMIT_POSITIONS = CommitPositions()
_KEEP_EVERYTHING = RunCallback(ASSIGNED, (), "assignment")

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_REVOKED: Final = CallbackKind.REVOKED

#: The time for which close() tries to commit (ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS).
CLOSE_TIMEOUT_MS = 30_000


class Membership(MemberSession):
    """One consumer's session in a group, and what its application thread does with it."""

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        topics: Callable[[], Mapping[str, int]],
        emit: Callable[[events.Event], None],
        refresh_topics: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(config, topics, emit, refresh_topics)
        self.owned: tuple[TopicPartition, ...] = ()
        #: Whether poll() hands out no records because a round is under way.
        self._paused = False
        self.is_leader = False
        self.rebalance_protocol = common_rebalance_protocol(assignors)
        self._assignors: Mapping[str | None, Assignor] = {assignor.name: assignor for assignor in assignors}
        #: The last assignment, as bytes and decoded: in most rounds it does not change for most members.
        self._assignment_bytes = b""
        self._assignment = Assignment(())
        #: The last assignment that each assignor received (onAssignment): only the chosen one receives it.
        #: It stays when partitions are given up or lost.
        self._last_assignments = dict.fromkeys(self._assignors, requests.NEVER_ASSIGNED)

    @property
    def user_data(self) -> bytes | None:
        """The user data of the last assignment."""
        return self._assignment.user_data

    # -- what the heartbeat thread sends ---------------------------------------------------------

    def poll_timed_out(self) -> LeaveGroup | None:
        """max.poll.interval.ms passed without a poll(): the LeaveGroup to send, if any.

        A dynamic member leaves, a static member sends nothing; both reset their generation (maybeLeaveGroup).
        """
        leave = None
        if self.config.group_instance_id is None:
            leave = self._leave_request("consumer poll timeout has expired.")
        self._reset_and_rejoin(RejoinCause.POLL_TIMEOUT, reset_member_id=True)
        return leave

    def _leave_request(self, reason: str) -> LeaveGroup | None:
        """None if the coordinator is unknown or the member is not in the group."""
        if not self.coordinator_known or self.state is UNJOINED or not self.generation.member_id:
            return None
        return requests.leave_group(self.config, self.generation, reason)

    # -- what the application thread does --------------------------------------------------------

    def run(self) -> Flow:
        """From the first poll() on, until a fatal error ends the consumer."""
        self.request_rejoin(RejoinCause.FIRST_JOIN)
        joins_at_once = True
        while self.failure is None:
            if not self.rejoin_needed:
                if self._paused:
                    self._paused = False
                    yield ResumeFetching(self.owned)
                yield _AWAIT_POLL
                continue
            if self.owned and not self._paused and not self.config.profile.fetches_during_round:
                self._paused = True
                yield PauseFetching(self.owned)
            if not self.coordinator_known:
                yield FindCoordinator()
                self.coordinator_known = True
            self._match_topics_before_join()
            if self._needs_join_prepare:
                self._needs_join_prepare = False
                yield from self._on_join_prepare()
                continue  # onJoinPrepare may have failed
            self.state = PREPARING_REBALANCE
            if not joins_at_once:
                yield AwaitJoinInterval(self.config.profile.join_interval_ms)
            error = yield from self._join_and_sync()
            joins_at_once = self._joins_again_at_once(error)
            if self.config.profile.handover_ms and self._hands_over(error):
                yield Backoff(self.config.profile.handover_ms)
            if error is None and self._is_between_rounds():
                self._paused = False
                yield ResumeFetching(self.owned)
                yield ReturnRecords()
            if error is None or error in RETRIED_AT_ONCE:
                continue
            if error in RETRIED_AFTER_BACKOFF:
                yield Backoff(self.config.retry_backoff_ms)
            else:
                self.failure = error.name
        failure, member_id = self.failure, self.generation.member_id
        yield from self._leave_the_group(failure)
        self._emit(events.MemberFailed(self.config.group_id, self.config.client_id, member_id, failure))

    def _joins_again_at_once(self, error: Error | None) -> bool:
        """After a round that ended with ``error``: whether the next JoinGroup need not keep an interval."""
        has_interval = self.config.profile.join_interval_ms > 0
        is_free = self.is_leader or error is Error.MEMBER_ID_REQUIRED or self._hands_over(error)
        return not has_interval or is_free

    def _hands_over(self, error: Error | None) -> bool:
        """Whether the next round is to give others what the member has revoked in this one."""
        return error is None and self._rejoin_reason == REASONS[RejoinCause.REVOKED_PARTITIONS]

    def _is_between_rounds(self) -> bool:
        """Whether a round is over that has paused the member, and another one is to follow."""
        return self._paused and self.rejoin_needed and self.failure is None

    def close(self) -> Flow:
        """Consumer.close(): commit, revoke, leave. The driver runs it in place of `run`."""
        member_id = self.generation.member_id
        left = yield from self._leave_the_group("close")
        self._emit(
            events.MemberClosed(
                self.config.group_id, self.config.client_id, member_id, "left" if left else "silent"
            )
        )

    def _leave_the_group(self, cause: str) -> Generator[Operation, Any, bool]:
        """Close the consumer, also after a poll() that threw. Returns whether it sent a LeaveGroup."""
        config = self.config
        if self.owned:
            yield StopProcessing(self.owned)
            # the application knows of a fenced commit: the consumer does not send it again
            if config.enable_auto_commit and self.failure != Error.FENCED_INSTANCE_ID.name:
                yield from self._commit_positions(CLOSE_TIMEOUT_MS)
        in_doubt = self._generation_is_reset() or self.state in (
            PREPARING_REBALANCE,
            COMPLETING_REBALANCE,
        )
        if in_doubt:
            yield from self._give_up(CallbackKind.LOST, self.owned, cause)
        else:
            yield from self._give_up(_REVOKED, self.owned, "close")
        leave = self._leave_request(CLOSING) if config.leaves_on_close else None
        self._reset(reset_member_id=True)
        if leave is not None:
            yield Send(leave, config.request_timeout_ms)
        return leave is not None

    def _on_join_prepare(self) -> Flow:
        """Before a JoinGroup: commit, then give up partitions if the protocol demands it (onJoinPrepare)."""
        eager = self.rebalance_protocol is EAGER
        if (
            self.config.enable_auto_commit
            and self.owned
            and (eager or self.config.profile.commits_before_cooperative_join)
        ):
            if eager:
                yield StopProcessing(self.owned)
            is_sent = self.state is STABLE
            yield from self._commit_positions(self.config.max_poll_interval_ms)
            if self.failure is not None:
                return
            if is_sent and self._returns_records():
                yield ReturnRecords()
        if self._generation_is_reset():
            yield from self._give_up(CallbackKind.LOST, self.owned, self._lost_cause)
            if self.awaits_poll and self.config.profile.gives_up_as_it_leaves:
                yield _AWAIT_POLL
        elif eager:
            yield from self._give_up(_REVOKED, self.owned, "rebalance")
        elif unsubscribed := tuple([tp for tp in self.owned if tp.topic not in self.subscribed]):
            yield from self._give_up(_REVOKED, unsubscribed, "subscription")
        self.is_leader = False

    def _commit_positions(self, timeout_ms: int) -> Flow:
        """Commit until the coordinator accepts or refuses it, or the pauses add up to ``timeout_ms``."""
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
        yield RunCallback(kind, partitions, cause)
        if partitions is self.owned:
            self.owned = ()
        else:
            gone = set(partitions)
            self.owned = tuple([tp for tp in self.owned if tp not in gone])

    def _returns_records(self) -> bool:
        """Whether the round goes on at the next poll(). What the application does until then nobody commits
        if the round takes the partition away: a cooperative member commits once, before it joins."""
        is_cooperative = self.rebalance_protocol is COOPERATIVE
        return is_cooperative and bool(self.owned) and self.config.profile.rounds_wait_for_polls

    def _join_and_sync(self) -> Generator[Operation, Any, Error | None]:
        """One round. Returns the error that ended it, or None if the member is Stable."""
        config = self.config
        timeout_ms = max(config.request_timeout_ms, config.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)
        if config.profile.every_member_watches_topics:
            self._watch_own_topics()
        joined = yield Send(self._join_request(), timeout_ms)
        if self._returns_records():
            yield ReturnRecords()
        if (error := self._join_error(joined)) is not NO_ERROR:
            return error
        self.state = COMPLETING_REBALANCE
        self.generation = Generation(joined.generation, joined.member_id, joined.protocol)
        assignments: tuple[tuple[str, bytes], ...] = ()
        expected: bytes | None = None
        if joined.leader == joined.member_id:
            self.is_leader = True
            self._watch_group(joined.members, joined.skip_assignment)
            if not joined.skip_assignment or config.profile.checks_skipped_assignment:
                assignor = self._assignors.get(joined.protocol)
                if assignor is None:  # the coordinator has chosen a protocol that this member does not offer
                    self.failure = "IllegalStateException"
                    return None
                plan = yield Assign(joined, assignor)
                if isinstance(plan, AssignmentFailed):
                    self.failure = plan.error
                    return None
                if joined.skip_assignment:
                    expected = dict(plan).get(joined.member_id)
                else:
                    assignments = plan
        synced = yield Send(requests.sync_group(config, joined, assignments), config.request_timeout_ms)
        if self._returns_records():
            yield ReturnRecords()
        if (error := self._sync_error(synced)) is not NO_ERROR:
            return error
        self.state = STABLE
        self.rejoin_needed = False
        self._rejoin_reason = ""
        self._needs_join_prepare = True
        yield from self._on_join_complete(synced.assignment)
        if expected is not None and expected != synced.assignment:
            self.request_rejoin(RejoinCause.METADATA_CHANGED)
        self.metadata_refreshed()  # a refresh during the round asked for nothing more than this round
        return None

    def _on_join_complete(self, assignment: bytes) -> Flow:
        """Take the assignment: revoke, then add. After a cooperative revocation the member joins again."""
        if not self.is_leader and not self.config.profile.every_member_watches_topics:
            self._topics_assigned = None
        if len(assignment) < 2:
            # The leader's plan has no assignment for this member: poll() throws in Kafka's client.
            self.failure = "IllegalStateException"
            return
        if assignment != self._assignment_bytes:
            self._assignment_bytes = assignment
            decoded = decode_assignment(assignment)
            self._assignment = decoded._replace(partitions=tuple(sorted(decoded.partitions)))
        assigned, before = self._assignment.partitions, self.owned
        added: tuple[TopicPartition, ...] = ()
        revoked: tuple[TopicPartition, ...] = ()
        if assigned is not before:
            if not {topic for topic, _ in assigned}.issubset(self.subscribed):
                self.request_rejoin(RejoinCause.ASSIGNMENT_MISMATCH)
                return
            added = assigned
            if before:
                owned, kept = set(before), set(assigned)
                added = tuple([tp for tp in assigned if tp not in owned])
                revoked = tuple([tp for tp in before if tp not in kept])
        if revoked and self.rebalance_protocol is COOPERATIVE:
            if self.config.enable_auto_commit and not self.config.profile.commits_before_cooperative_join:
                yield StopProcessing(revoked)
                yield from self._commit_positions(self.config.max_poll_interval_ms)
            yield from self._give_up(_REVOKED, revoked, "assignment")
            self.request_rejoin(RejoinCause.REVOKED_PARTITIONS)
        self._last_assignments[self.generation.protocol or ""] = (self._assignment, self.generation.id)
        self.owned = assigned
        yield RunCallback(ASSIGNED, added, "assignment") if added else _KEEP_EVERYTHING

    def _join_request(self) -> JoinGroup:
        config, generation, owned, last = self.config, self.generation, self.owned, self._last_assignments
        protocols = [
            (
                each.name,
                requests.subscription(config, self.subscribed, each, generation, owned, last[each.name]),
            )
            for each in self._assignors.values()
        ]
        return requests.join_group(config, generation, tuple(protocols), self._rejoin_reason)


def common_rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """COOPERATIVE if every assignor supports it, else EAGER (ConsumerCoordinator, KIP-429)."""
    if all(COOPERATIVE in assignor.protocols for assignor in assignors):
        return COOPERATIVE
    return EAGER
