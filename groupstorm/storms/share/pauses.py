"""Pauses of a process with a share consumer, and its heartbeats while they are computed."""

from __future__ import annotations

from typing import Protocol

from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.environment import Environment


class ShareRequests:
    """The heartbeats of one process: computed while nothing happens, until somebody wakes them."""

    def __init__(self, environment: Environment, member_id: str, heartbeats: QuietHeartbeats) -> None:
        self._environment = environment
        self._member_id = member_id
        self._heartbeats = heartbeats

    def rest(self) -> None:
        """Compute them from now on."""
        self._environment.resting.add(self._member_id, self)
        self._environment.broker.suspend_session(self._member_id)

    def wake(self) -> None:
        """Send them from now on."""
        self.wake_heartbeats()

    def wake_heartbeats(self) -> None:
        if self._heartbeats.is_quiet:
            self._environment.resting.remove(self._member_id)
            self._heartbeats.wake()


class PausedConsumer(Protocol):
    alive: bool
    periodic_requests: ShareRequests

    def work_takes_longer(self, duration_us: int, *, also_next: bool) -> None:
        """The application is late by so much; ``also_next``: with the next records, if it has none."""
        ...

    def runs_again(self) -> None:
        """The process stood still."""
        ...


class SharePauses:
    """The time until which a process stands still."""

    def __init__(self, clock: Clock, process: PausedConsumer) -> None:
        self.paused_until_us = 0
        self._clock = clock
        self._process = process

    def pause(self, duration_us: int) -> None:
        """The process stands still: no heartbeat, no fetch, no work (SIGSTOP); its connections stay."""
        process, until_us = self._process, self._clock.now_us + duration_us
        if not process.alive or until_us <= self.paused_until_us:
            return
        process.periodic_requests.wake_heartbeats()
        process.work_takes_longer(until_us - max(self._clock.now_us, self.paused_until_us), also_next=False)
        self.paused_until_us = until_us
        self._clock.at(until_us, process.runs_again)

    def busy(self, duration_us: int) -> None:
        """The application takes so much longer for its records; heartbeats go on."""
        if self._process.alive:
            self._process.work_takes_longer(duration_us, also_next=True)
