"""The client's heartbeat thread (AbstractCoordinator.HeartbeatThread), as a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from groupstorm.assignors.contract import RebalanceProtocol
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.heartbeat_timers import Due, HeartbeatTimers
from groupstorm.clients.wire.wake_event import WakeEvent
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import HeartbeatResponse, LeaveGroup

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Heartbeats:
    """Sends heartbeats in the states that need them, looks up a lost coordinator, and leaves the group if the
    application does not poll.

    ``spawn`` starts a task that the thread does not wait for. ``on_change`` is called when the membership may
    have to join or has failed. While ``running`` is not set the process is paused.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        membership: Membership,
        link: CoordinatorLink,
        clock: Callable[[], int],
        running: asyncio.Event,
        spawn: Spawn,
        on_change: Callable[[], None],
    ) -> None:
        self.timers = HeartbeatTimers(config)
        #: A lookup's fatal error, for the application's next poll() to throw.
        self.fatal: Error | None = None
        self._config = config
        self._membership = membership
        self._link = link
        self._clock = clock
        self._running = running
        self._spawn = spawn
        self._on_change = on_change
        self._beating = False
        self._wake_event = WakeEvent(clock)

    def follow(self) -> None:
        """The membership, the coordinator or the application's polling may have changed."""
        beating = self._membership.heartbeating
        if beating and not self._beating:
            protocol = self._membership.rebalance_protocol
            self.timers.enabled(self._clock(), protocol is RebalanceProtocol.COOPERATIVE)
        self._beating = beating
        self._wake_event.wake()

    def left_poll(self) -> None:
        """poll() has returned: the application works on its batch."""
        before_us = self.timers.next_us()
        self.timers.left_poll(self._clock())
        if self.timers.next_us() < before_us:
            self._wake_event.wake()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._running.wait()
            if not self._membership.heartbeating or self.fatal is not None:
                await self._wake_event.wait(None)
            elif not self._membership.coordinator_known:
                await self._rediscover()
            else:
                await self._act()

    async def _act(self) -> None:
        now_us = self._clock()
        match self.timers.due(now_us):
            case Due.SESSION_EXPIRED:
                self._membership.coordinator_known = False
                self._link.drop()
            case Due.POLL_EXPIRED:
                leave = self._membership.poll_timed_out()
                if leave is not None:
                    self._spawn(self._leave(leave))
                self.follow()
                self._on_change()
            case Due.HEARTBEAT:
                self.timers.sent(now_us)
                self._spawn(self._beat())
            case None:
                await self._wake_event.wait(self.timers.next_us())

    async def _rediscover(self) -> None:
        error = await self._link.find()
        if error is not Error.NONE:
            self.fatal = error
            self._on_change()

    async def _beat(self) -> None:
        sent = self._membership.generation
        response = await self._link.ask(self._membership.heartbeat(sent), self._config.request_timeout_ms)
        if isinstance(response, Disconnected):
            self.timers.failed(self._clock())
        else:
            assert isinstance(response, HeartbeatResponse)
            self._membership.heartbeat_answered(response.error, sent)
            if response.error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
                self.timers.answered(self._clock())
            else:
                self.timers.failed(self._clock())
        self._on_change()

    async def _leave(self, leave: LeaveGroup) -> None:
        await self._link.ask(leave, self._config.request_timeout_ms)
