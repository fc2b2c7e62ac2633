"""The client's heartbeat thread (AbstractCoordinator.HeartbeatThread) as a task, and its timers."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from groupstorm.assignors.contract import RebalanceProtocol
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.timing import Backoff
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.requests import heartbeat
from groupstorm.clients.wire.parts import ConsumerParts
from groupstorm.clients.wire.waiting import RETRY_BACKOFF_MAX_MS, WakeEvent
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse, LeaveGroup, Response


class Due(Enum):
    """The next step of the heartbeat thread; if several are due, in this order."""

    SESSION_EXPIRED = "no heartbeat response came for session.timeout.ms"
    POLL_EXPIRED = "the application did not poll for max.poll.interval.ms"
    HEARTBEAT = "send a heartbeat"


class HeartbeatTimers:
    """When a heartbeat is due, and when session and poll interval expire (Heartbeat.java).

    Three timers, in microseconds of one clock. Sans-IO.

    The next heartbeat is due heartbeat.interval.ms after the last one left. After a failed one it is due
    after retry.backoff.ms, doubled with every failure.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self._interval_us = config.heartbeat_interval_ms * 1000
        self._session_us = config.session_timeout_ms * 1000
        self._max_poll_us = config.max_poll_interval_ms * 1000
        most_ms = max(RETRY_BACKOFF_MAX_MS, config.retry_backoff_ms)
        self._backoff = Backoff(config.retry_backoff_ms, most_ms)
        self._profile = config.profile
        self._sent_us: int | None = None
        self._failed = 0
        self._heartbeat_at_us = 0
        self._session_ends_us = 0
        #: None while the application is inside poll().
        self._poll_expires_us: int | None = None

    def enabled(self, now_us: int, is_cooperative: bool = False) -> None:
        """The JoinGroup response has arrived: all three timers begin anew."""
        self._heartbeat_at_us = self._profile.first_heartbeat_us(
            now_us, self._interval_us, self._sent_us, is_cooperative
        )
        self._session_ends_us = now_us + self._session_us
        if self._poll_expires_us is not None:
            self._poll_expires_us = now_us + self._max_poll_us

    def sent(self, now_us: int) -> None:
        self._sent_us = now_us
        self._heartbeat_at_us = now_us + self._interval_us

    def answered(self, now_us: int) -> None:
        """The response has no error or REBALANCE_IN_PROGRESS: the session goes on."""
        self._failed = 0
        self._session_ends_us = now_us + self._session_us

    def failed(self, now_us: int) -> None:
        self._heartbeat_at_us = now_us + self._backoff.pause_ms(self._failed) * 1000
        self._failed += 1

    def coordinator_found(self, now_us: int) -> None:
        self._session_ends_us = now_us + self._session_us

    def left_poll(self, now_us: int) -> None:
        """The application works on a batch, or its rebalance listener runs."""
        if self._profile.has_max_poll_interval:
            self._poll_expires_us = now_us + self._max_poll_us

    def entered_poll(self) -> None:
        self._poll_expires_us = None

    def due(self, now_us: int) -> Due | None:
        if now_us >= self._session_ends_us:
            return Due.SESSION_EXPIRED
        if self._poll_expires_us is not None and now_us >= self._poll_expires_us:
            return Due.POLL_EXPIRED
        return Due.HEARTBEAT if now_us >= self._heartbeat_at_us else None

    def next_us(self) -> int:
        """When the next timer is due."""
        first_us = min(self._heartbeat_at_us, self._session_ends_us)
        return first_us if self._poll_expires_us is None else min(first_us, self._poll_expires_us)


class Heartbeats:
    """Sends heartbeats in the states that need them, looks up a lost coordinator, and leaves the group if the
    application does not poll.

    ``on_change`` is called when the membership may have to join or has failed.
    """

    def __init__(self, parts: ConsumerParts, membership: Membership, on_change: Callable[[], None]) -> None:
        self.timers = HeartbeatTimers(parts.config)
        #: A lookup's fatal error, for the application's next poll() to throw.
        self.fatal: Error | None = None
        self._parts = parts
        self._membership = membership
        self._on_change = on_change
        self._beating = False
        self._wake_event = WakeEvent(parts.clock)

    def follow(self) -> None:
        """The membership, the coordinator or the application's polling may have changed."""
        beating = self._membership.heartbeating
        if beating and not self._beating:
            protocol = self._membership.rebalance_protocol
            self.timers.enabled(self._parts.clock(), protocol is RebalanceProtocol.COOPERATIVE)
        self._beating = beating
        self._wake_event.wake()

    def left_poll(self) -> None:
        """poll() has returned: the application works on its batch."""
        before_us = self.timers.next_us()
        self.timers.left_poll(self._parts.clock())
        if self.timers.next_us() < before_us:
            self._wake_event.wake()

    async def run(self) -> None:
        """Send heartbeats until the task is cancelled."""
        while True:
            await self._parts.running.wait()
            if not self._membership.heartbeating or self.fatal is not None:
                await self._wake_event.wait(None)
            elif not self._membership.coordinator_known:
                await self._rediscover()
            else:
                await self._act()

    async def _act(self) -> None:
        now_us = self._parts.clock()
        match self.timers.due(now_us):
            case Due.SESSION_EXPIRED:
                self._membership.coordinator_known = False
                self._parts.link.drop()
            case Due.POLL_EXPIRED:
                leave = self._membership.poll_timed_out()
                if leave is not None:
                    _ = self._parts.spawn(self._leave(leave))
                self.follow()
                self._on_change()
            case Due.HEARTBEAT:
                self.timers.sent(now_us)
                _ = self._parts.spawn(self._beat())
            case None:
                await self._wake_event.wait(self.timers.next_us())

    async def _rediscover(self) -> None:
        error = await self._parts.link.find()
        if error is not Error.NONE:
            self.fatal = error
            self._on_change()

    async def _beat(self) -> None:
        sent = self._membership.generation
        response = await self._ask(heartbeat(self._parts.config, sent))
        if isinstance(response, Disconnected):
            self.timers.failed(self._parts.clock())
        else:
            assert isinstance(response, HeartbeatResponse)
            self._membership.heartbeat_answered(response.error, sent)
            if response.error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
                self.timers.answered(self._parts.clock())
            else:
                self.timers.failed(self._parts.clock())
        self._on_change()

    async def _leave(self, leave: LeaveGroup) -> None:
        await self._ask(leave)

    async def _ask(self, request: Heartbeat | LeaveGroup) -> Response | Disconnected:
        return await self._parts.link.ask(request, self._parts.config.request_timeout_ms)
