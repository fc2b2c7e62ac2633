"""A member's place in its group: how it joins, leaves, is fenced and fails.

Kafka has it in AbstractMembershipManager and ConsumerMembershipManager, and for a thread of Kafka Streams in
StreamsMembershipManager. `heartbeating.py` has the heartbeats and when they leave.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.reconciling import Assigned, ReconcilingMember, Subscription
from groupstorm.clients.consumer_group.states import (
    NOT_IN_GROUP,
    ON_ITS_WAY_OUT,
    TAKES_ASSIGNMENTS,
    MemberState,
)
from groupstorm.clients.consumer_group.timing import Backoff
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.operations import CallbackKind, HeartbeatResponse, Left

#: The epochs of heartbeats that join, leave, and leave for a while (a static member).
JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2


class GroupMembership(ReconcilingMember[Assigned], Generic[Assigned]):
    """One member's way into the group and out of it."""

    __slots__ = (
        "_leave_on_close",
        "_leaving",
        "_poll_expired",
        "_rejoins_when_released",
        "_released_when_stale",
        "_subscription_updated",
    )

    def __init__(
        self,
        config: ConsumerConfig,
        nothing: Assigned,
        has_positions: Callable[[], bool],
        backoff: Backoff,
    ) -> None:
        super().__init__(config, nothing, has_positions, backoff)
        #: CloseOptions of KIP-1092, once the consumer closes. None: dynamic members leave, static members
        #: leave for a while.
        self._leave_on_close: bool | None = None
        self._subscription_updated = False
        self._poll_expired = False
        #: Whether a stale member has given its partitions up, and whether it joins as soon as it has.
        self._released_when_stale = False
        self._rejoins_when_released = False
        self._leaving = False

    # -- what the application does ----------------------------------------------------------------

    def subscribe(self, topics: frozenset[str] = frozenset(), regex: str | None = None) -> None:
        """Subscribe to ``topics``, or to what the broker finds for ``regex`` (RE2).

        A member that is not in the group joins at the next poll(). A member that is in it tells its next
        heartbeat, at the interval.
        """
        self._subscription = Subscription(topics, regex)
        self._subscription_updated = True

    def _polled(self) -> None:
        """onConsumerPoll: a member that is not in the group joins if it has subscribed since."""
        updated, self._subscription_updated = self._subscription_updated, False
        if updated and self.state is MemberState.UNSUBSCRIBED:
            self._join()

    def _poll_timer_was_expired(self) -> None:
        """A stale member joins again, once it has given its partitions up (maybeRejoinStaleMember)."""
        self._poll_expired = False
        if self.state is not MemberState.STALE:
            return
        if self._released_when_stale:
            self._join()
        else:
            self._rejoins_when_released = True

    def _leave(self, runs_callbacks: bool) -> None:
        """Give the partitions up and leave (leaveGroup). ``runs_callbacks``: False if close() ran them."""
        if self.state in NOT_IN_GROUP:
            if self.state is MemberState.FENCED:
                self._clear_assignment()
                self._go(MemberState.UNSUBSCRIBED)
            self._unsubscribe()
            self._operations.append(Left())
            return
        if self.state in ON_ITS_WAY_OUT:
            return
        self._go(MemberState.PREPARE_LEAVING)
        self._leaving = True
        if runs_callbacks:
            self._release(self._clear_and_leave)
        else:
            self._clear_and_leave(False)

    def _release(self, then: Callable[[bool], None]) -> None:
        """Give up everything: a member of the group revokes it, every other member has lost it."""
        if not self.owned:
            then(False)
        elif self.epoch > 0:
            self._stop(self.owned)
            self._call(CallbackKind.REVOKED, self.owned, "unsubscribe", then)
        else:
            self._call(CallbackKind.LOST, self.owned, "unsubscribe", then)

    # -- what the network thread does -------------------------------------------------------------

    def _heartbeat_succeeded(self, response: HeartbeatResponse) -> None:
        """onHeartbeatSuccess."""
        state = self.state
        if state is MemberState.LEAVING:
            return
        if state in NOT_IN_GROUP:
            if state is MemberState.UNSUBSCRIBED and response.member_epoch < 0:
                self._left()
            return
        if response.member_epoch < 0:
            self._left()
            return
        self.epoch = response.member_epoch
        if state in TAKES_ASSIGNMENTS:
            self._take(response)

    @abstractmethod
    def _take(self, response: HeartbeatResponse) -> None:
        """Take the assignment that an answer tells, if it tells one."""

    def _heartbeat_failed(self) -> None:
        """A member that leaves does so once, whatever the answer is (onHeartbeatFailure)."""
        if self.state is MemberState.UNSUBSCRIBED:
            self._left()

    def _heartbeat_generated(self) -> None:
        """A heartbeat leaves: some states end without its answer (onHeartbeatRequestGenerated)."""
        if self.state is MemberState.ACKNOWLEDGING:
            reconciled = self._current == self._target
            self._go(MemberState.STABLE if reconciled else MemberState.RECONCILING)
        elif self.state is MemberState.LEAVING:
            if self._poll_expired:
                self._go(MemberState.STALE)
                self._released_when_stale = self._rejoins_when_released = False
                self._lose(RejoinCause.POLL_TIMEOUT, self._released_stale)
            else:
                self._go(MemberState.UNSUBSCRIBED)

    def _heartbeat_skipped(self) -> None:
        """A member without coordinator leaves without a word (onHeartbeatRequestSkipped)."""
        if self.state is MemberState.LEAVING:
            self._go(MemberState.UNSUBSCRIBED)
            self._left()

    def _fence(self, cause: str) -> None:
        """The broker does not have the member (any more): it gives its partitions up and joins again."""
        if self.state is MemberState.PREPARE_LEAVING:
            self._send_leave(poll_expired=False)
        if self.state is MemberState.LEAVING:
            self._go(MemberState.UNSUBSCRIBED)
            self._left()
        elif self.state is not MemberState.UNSUBSCRIBED:
            self._go(MemberState.FENCED)
            self.epoch = JOINS
            self._lose(cause, self._released_fenced)

    def _fail(self, cause: str) -> None:
        """The member ends (transitionToFatal)."""
        before = self.state
        self._go(MemberState.FATAL)
        if before in ON_ITS_WAY_OUT or (before is MemberState.UNSUBSCRIBED and self._leaving):
            self._left()
        else:
            self._lose(cause, self._released)

    def _send_leave(self, poll_expired: bool) -> None:
        """The next heartbeat leaves. ``poll_expired``: nobody polled for max.poll.interval.ms."""
        if self.state in (MemberState.FATAL, MemberState.UNSUBSCRIBED):
            return
        if poll_expired:
            self._poll_expired = True
            self._go(MemberState.PREPARE_LEAVING)
        is_static = self._config.group_instance_id is not None
        self.epoch = LEAVES_FOR_A_WHILE if is_static and self._leave_on_close is not True else LEAVES
        self._current = self._nothing
        self._go(MemberState.LEAVING)

    # -- steps ------------------------------------------------------------------------------------

    def _join(self) -> None:
        """transitionToJoining."""
        if self.state is MemberState.FATAL:
            return
        if self._reconciliation is not None:
            self._rejoined_meanwhile = True
        self.epoch = JOINS
        self._go(MemberState.JOINING)
        self._forget_target()

    def _left(self) -> None:
        if self._leaving:
            self._leaving = False
            self._operations.append(Left())

    def _lose(self, cause: str, then: Callable[[bool], None]) -> None:
        if self.owned:
            self._stop(self.owned)
            self._call(CallbackKind.LOST, self.owned, cause, then)
        else:
            then(False)

    def _released(self, _failed: bool) -> None:
        self._clear_assignment()

    def _released_fenced(self, _failed: bool) -> None:
        self._clear_assignment()
        if self.state is MemberState.FENCED:
            self._join()

    def _released_stale(self, _failed: bool) -> None:
        self._clear_assignment()
        self._released_when_stale = True
        if self._rejoins_when_released:
            self._join()

    def _clear_and_leave(self, _failed: bool) -> None:
        self._unsubscribe()
        self._clear_assignment()
        self._send_leave(poll_expired=False)

    def _unsubscribe(self) -> None:
        self._subscription = Subscription(any=False)
        self._own(())
