"""A member's heartbeats: when they leave, and what their answers do to the member.

Kafka has it in AbstractHeartbeatRequestManager, and for a thread of Kafka Streams in
StreamsGroupHeartbeatRequestManager.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.membership import GroupMembership
from groupstorm.clients.consumer_group.reconciling import Assigned
from groupstorm.clients.consumer_group.states import (
    HEARTBEATS_AT_ONCE,
    NOT_IN_GROUP,
    ON_ITS_WAY_OUT,
    InvalidTransition,
    MemberState,
)
from groupstorm.clients.consumer_group.timing import FOREVER_MS, Backoff, HeartbeatTiming, Timer
from groupstorm.clients.error_tables import COORDINATOR_UNKNOWN, Reaction, reaction
from groupstorm.clients.operations import (
    CallbackKind,
    Disconnected,
    FindCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    ReportError,
    RunCallback,
    SendHeartbeat,
)
from groupstorm.coordinator.errors import NO_ERROR, Error


class HeartbeatingMember(GroupMembership[Assigned], Generic[Assigned]):
    """One process's membership in a group whose broker assigns. `groupstorm.clients.consumer_group` says how
    a driver runs it. All times are milliseconds of the driver's clock.

    ``member_id``: drawn by the client, and the same as long as its process lives. ``nothing``: what a member
    has that is assigned nothing. ``has_positions``: whether any owned partition has a position, which a
    commit would tell.
    """

    __slots__ = ("_due_leave", "_poll_timer", "_timing", "coordinator_known", "member_id")

    def __init__(
        self,
        config: ConsumerConfig,
        member_id: str,
        nothing: Assigned,
        has_positions: Callable[[], bool],
        now_ms: int,
    ) -> None:
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        super().__init__(config, nothing, has_positions, backoff)
        self.member_id = member_id
        #: A driver looks the coordinator up before anything else.
        self.coordinator_known = False
        self._timing = HeartbeatTiming(now_ms, backoff)
        self._poll_timer = Timer(now_ms, config.max_poll_interval_ms)
        #: The epoch of the heartbeat with which a member that did not poll in time still has to leave.
        self._due_leave: int | None = None

    @property
    @abstractmethod
    def missed_an_answer(self) -> bool:
        """Whether the last heartbeat failed: the next one asks for the whole assignment."""

    @abstractmethod
    def _heartbeat_fields(self, epoch: int, joins: bool) -> HeartbeatRequest:
        """The next heartbeat. It counts as sent."""

    @abstractmethod
    def _forget(self) -> None:
        """The broker may not know what the last heartbeats told: the next one tells everything again."""

    def backs_off(self, now_ms: int) -> bool:
        """Whether the next heartbeat leaves later than an interval behind the last one."""
        return self._timing.backs_off(now_ms)

    @property
    def waits_for_poll(self) -> bool:
        """Whether the next poll() brings the member further. It wakes the network thread, too, which else
        sleeps until the next heartbeat even if there is an assignment to acknowledge."""
        acknowledges = self.state is MemberState.ACKNOWLEDGING and not self._timing.in_flight
        return (acknowledges and self.coordinator_known) or super().waits_for_poll

    @property
    def heartbeat_interval_ms(self) -> int:
        """Between two heartbeats, as the broker told it; 0 before its first answer."""
        return self._timing.interval_ms

    # -- what the application does ----------------------------------------------------------------

    def poll(self, now_ms: int) -> None:
        """The application calls poll() (ApplicationEventProcessor, AsyncPollEvent)."""
        self._reconcile(in_poll=True, now_ms=now_ms)
        self._polled()
        if self._poll_timer.expires(now_ms):
            self._poll_timer_was_expired()
        self._poll_timer.reset(self._config.max_poll_interval_ms)

    def looked(self, now_ms: int) -> None:
        """The network thread ran after a poll(), and had nothing to do: as `step`, without its cost."""
        if self.coordinator_known and self.state not in NOT_IN_GROUP:
            self._timing.may_send(now_ms)

    def unsubscribe(self) -> None:
        """Revoke everything and leave. `Left` says when it is done."""
        self._send_due_leave()
        self._leave(runs_callbacks=True)

    def closing_callback(self) -> RunCallback | None:
        """The call of the listener that close() makes before `close` (runRebalanceCallbacksOnClose).

        A member of the group revokes its partitions, every other member has lost them.
        """
        if not self.owned:
            return None
        kind = CallbackKind.REVOKED if self.epoch > 0 else CallbackKind.LOST
        return RunCallback(kind, self.owned, "close")

    def close(self, leave_group: bool | None = None) -> None:
        """Leave as ``leave_group`` says, or else `ConsumerConfig.leave_group_on_close`.

        `Left` says when it is done.
        """
        self._send_due_leave()
        self._leave_on_close = self._config.leave_group_on_close if leave_group is None else leave_group
        self._leave(runs_callbacks=False)

    def end(self) -> None:
        """close() ends, in time or not: who has not left yet sends a last heartbeat (pollOnClose)."""
        if self._is_leaving():
            self._send(awaited=False)

    def committed(self, result: Error | Disconnected, now_ms: int) -> None:
        if isinstance(result, Disconnected) or result in COORDINATOR_UNKNOWN:
            self._lose_coordinator()
        super().committed(result, now_ms)

    # -- what the network thread does -------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Commit, send a heartbeat, reconcile, each if it is time. Returns how long until the next step.

        A member that stays in the group while it closes (KIP-1092) cannot leave when nobody polls: Kafka's
        thread throws, and throws again until close() ends.
        """
        commit_ms = self._send_commit(now_ms) if self.coordinator_known else FOREVER_MS
        try:
            wait_ms = min(commit_ms, self._heartbeat(now_ms))
        except InvalidTransition:
            return FOREVER_MS
        self._reconcile(in_poll=False, now_ms=now_ms)
        return wait_ms

    def _heartbeat(self, now_ms: int) -> int:
        if not self.coordinator_known or self.state in NOT_IN_GROUP:
            self._heartbeat_skipped()
            return FOREVER_MS
        self._send_due_leave()
        if self._poll_timer.expires(now_ms) and not self._is_leaving():
            self._send_leave(poll_expired=True)
            if self._config.profile.leaves_without_poll:
                self._send(awaited=False)
            else:
                self._due_leave = self.epoch
                self._heartbeat_generated()
            self._timing.reset()
            self._forget()
            return self._timing.interval_ms
        leaves = self.state is MemberState.LEAVING and not self._remains_silently()
        at_once = leaves or (self.state in HEARTBEATS_AT_ONCE and not self._timing.in_flight)
        if not self._may_send(now_ms, at_once):
            return self._timing.next_ms(now_ms)
        self._send(awaited=True)
        return self._timing.interval_ms

    def _may_send(self, now_ms: int, at_once: bool) -> bool:
        """Whether a heartbeat leaves now. ``at_once``: the state does not wait for the interval."""
        return self._timing.may_send(now_ms) or at_once

    def poll_wait_ms(self, now_ms: int) -> int:
        """The time for which poll() may wait before it looks again (maximumTimeToWait)."""
        self._poll_timer.update(now_ms)
        if self.state is MemberState.UNSUBSCRIBED:
            return FOREVER_MS
        if self._poll_timer.expired or (self.state in HEARTBEATS_AT_ONCE and not self._timing.in_flight):
            return 0
        return min(self._poll_timer.remaining_ms // 2, self._timing.next_ms(now_ms))

    def coordinator_found(self) -> None:
        """`FindCoordinator` is done."""
        self.coordinator_known = True

    def answered(self, sent: SendHeartbeat, response: HeartbeatResponse | Disconnected, now_ms: int) -> None:
        """A heartbeat was answered, or its connection broke.

        `Disconnected` stands for a timeout too. A broker that does not have the API or the version counts as
        one that answers UNSUPPORTED_VERSION.
        """
        if not sent.awaited:
            return
        if isinstance(response, Disconnected):
            self._timing.failed(now_ms)
            self._forget()
            self._lose_coordinator()
            self._heartbeat_failed()
        elif response.error is NO_ERROR:
            self._timing.succeeded(now_ms, response.heartbeat_interval_ms)
            self._heartbeat_succeeded(response)
        else:
            self._forget()
            self._timing.failed(now_ms)
            try:
                self._refused(response.error)
            except InvalidTransition:
                return  # a late answer: Kafka's client drops its exception
            self._heartbeat_failed()

    def _refused(self, error: Error) -> None:
        """onErrorResponse."""
        match reaction(error):
            case Reaction.FIND_COORDINATOR:
                self._lose_coordinator()
                self._timing.reset()
            case Reaction.RETRY:
                pass
            case Reaction.FENCED:
                self._fence(error.name)
                self._timing.reset()
            case Reaction.REPORTED:
                self._operations.append(ReportError(error.name))
            case Reaction.LEFT if self.state is MemberState.UNSUBSCRIBED:
                pass
            case _:
                self._operations.append(ReportError(error.name))
                self._fail(error.name)

    def _send(self, awaited: bool) -> None:
        request = self._heartbeat_fields(self.epoch, joins=self.state is MemberState.JOINING)
        self._operations.append(SendHeartbeat(request, awaited))
        self._timing.sent()
        self._heartbeat_generated()

    def _send_due_leave(self) -> None:
        """Leave late: the application has polled, or closes."""
        epoch, self._due_leave = self._due_leave, None
        if epoch is not None:
            request = self._heartbeat_fields(epoch, joins=False)
            self._operations.append(SendHeartbeat(request, awaited=False))
            self._forget()

    def _lose_coordinator(self) -> None:
        self.coordinator_known = False
        self._operations.append(FindCoordinator())

    def _remains_silently(self) -> bool:
        """A dynamic member whose application asked to stay in the group (KIP-1092)."""
        return self._leave_on_close is False and self._config.group_instance_id is None

    def _is_leaving(self) -> bool:
        return self.state in ON_ITS_WAY_OUT and not self._remains_silently()
