"""The faults between a process and the coordinator: of its connection, or of the network on the way."""

from __future__ import annotations

from typing import Protocol

from groupstorm.clients.config import ConsumerConfig
from groupstorm.storms.world.clock import ClientClock, Clock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.storms.world.periodic_requests import PeriodicRequests


class ConnectedProcess(Protocol):
    """The process whose connection it is. Its parts stay the same as long as it lives."""

    alive: bool
    clock: Clock
    config: ConsumerConfig
    connection: VirtualConnection
    periodic_requests: PeriodicRequests
    client_clock: ClientClock

    @property
    def membership(self) -> GroupMember: ...

    def nudge(self) -> None:
        """A rejoin may have become necessary: the application notices at its next poll()."""
        ...


class ConnectionFaults:
    """Breaks the connection of one process, and mends it when the time is over."""

    __slots__ = ("_process",)

    def __init__(self, process: ConnectedProcess) -> None:
        self._process = process

    def lose_coordinator(self, duration_us: int) -> None:
        """The connection to the coordinator breaks, and there is no other for so long."""
        process = self._process
        if not process.alive:
            return
        process.periodic_requests.stop()
        process.membership.coordinator_known = False
        process.connection.break_for(duration_us)
        process.clock.after(duration_us, self._reconnected)

    def partition(self, duration_us: int, direction: str) -> None:
        """The network swallows requests, responses or both (`steps.DIRECTIONS`).

        The client does not know; it closes a connection on which a request has had no response for
        request.timeout.ms.
        """
        process = self._process
        connection, until_us = process.connection, process.clock.now_us + duration_us
        if direction != "requests":
            connection.no_responses_until_us = max(connection.no_responses_until_us, until_us)
        if direction == "responses":
            process.clock.at(self._unanswered_us(), self._give_up_connection)
        else:
            connection.no_requests_until_us = max(connection.no_requests_until_us, until_us)
            process.periodic_requests.stop()
        process.clock.after(duration_us, self._reconnected)

    def _unanswered_us(self) -> int:
        """When request.timeout.ms has passed since the next heartbeat."""
        process = self._process
        timeout_us = process.client_clock.timer_us(process.config.request_timeout_ms)
        return process.periodic_requests.next_heartbeat_us() + timeout_us

    def _give_up_connection(self) -> None:
        process = self._process
        until_us, now_us = process.connection.no_responses_until_us, process.clock.now_us
        if now_us < until_us and process.membership.heartbeating:
            self.lose_coordinator(until_us - now_us)

    def _reconnected(self) -> None:
        process = self._process
        if process.alive and process.connection.passes:
            process.membership.coordinator_known = True
            process.periodic_requests.restart()
            process.nudge()
