"""The network thread of a client whose broker assigns: it runs at the instants that its member names.

It runs after every call of the application and every response too. While the group is Stable, nothing but
heartbeats would happen; then they are computed, and the thread is not scheduled.
"""

from __future__ import annotations

from typing import Any, Protocol

from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.storms.world.clock import ClientClock, Clock, Kind, order_of
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.environment import Environment


class Standstill(Protocol):
    """The pauses of a process."""

    paused_until_us: int


class Resting(Protocol):
    """The periodic requests of a process."""

    def rest(self) -> None:
        """Compute them from now on."""
        ...


class SteppingProcess(Protocol):
    """The process whose client it is."""

    alive: bool
    client_clock: ClientClock
    clock: Clock
    closing: bool
    connection: VirtualConnection
    group_member: HeartbeatingMember[Any]
    index: int
    topics_to_tell: bool

    @property
    def pauses(self) -> Standstill: ...

    @property
    def periodic_requests(self) -> Resting: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        ...

    def carry_out(self) -> bool:
        """Do what the member asks for. Returns whether there was anything."""
        ...

    def note_polls(self) -> None:
        """Tell the member of the application's last poll()."""
        ...

    def nudge(self) -> None:
        """The application looks at its next poll()."""
        ...


class NetworkThread:
    """The network thread of one process."""

    __slots__ = ("_due_ms", "_environment", "_heartbeats", "_next_us", "_process", "_scheduled_us")

    def __init__(
        self, environment: Environment, process: SteppingProcess, heartbeats: QuietHeartbeats
    ) -> None:
        self._environment = environment
        self._process = process
        self._heartbeats = heartbeats
        #: When it runs next (-1: not before somebody says so), and all times for which there is an event.
        self._next_us = -1
        self._scheduled_us: set[int] = set()
        #: When its next run is due, on the machine's clock.
        self._due_ms = 0

    def turn(self) -> None:
        """Do what the member asks for, run until it asks for nothing more, and say when it runs next."""
        process, now_ms = self._process, self._now_ms()
        wait_ms = 0
        process.carry_out()
        while process.alive:
            wait_ms = process.group_member.step(now_ms)
            if not process.carry_out():
                break
        if not process.alive:
            return
        self._next_us = -1
        if 0 < wait_ms < FOREVER_MS:
            self._due_ms = now_ms + wait_ms
            self._rest_or_run()
        if not process.closing:
            process.nudge()

    def run_at(self, shown_ms: int) -> None:
        """Run next when the machine's clock shows ``shown_ms``."""
        self._due_ms = shown_ms
        self._schedule(self.next_run_us())

    def _schedule(self, time_us: int) -> None:
        """Run next then. An event that there is already will do: most runs put the next one off to where it
        was."""
        self._next_us = time_us
        if time_us not in self._scheduled_us:
            self._scheduled_us.add(time_us)
            order = order_of(Kind.NETWORK_THREAD, self._process.index)
            self._process.clock.in_order(time_us, order, self._run)

    def next_run_us(self) -> int:
        process = self._process
        return max(process.client_clock.us(self._due_ms), process.clock.now_us)

    def _now_ms(self) -> int:
        return self._process.client_clock.ms(self._process.clock.now_us)

    def _rest_or_run(self) -> None:
        process, environment = self._process, self._environment
        member = process.group_member
        is_quiet = (
            not environment.sends_heartbeats
            and member.state is MemberState.STABLE
            and not process.connection.in_flight
            and process.settled
            and not process.topics_to_tell
            and not member.missed_an_answer
            and not member.backs_off(self._now_ms())
            and environment.broker.is_quiet(member.member_id, member.epoch)
        )
        if is_quiet:
            self._heartbeats.rest(self._due_ms, member.heartbeat_interval_ms)
            process.periodic_requests.rest()
        else:
            self.run_at(self._due_ms)

    def _run(self) -> None:
        process, now_us = self._process, self._process.clock.now_us
        self._scheduled_us.discard(now_us)
        if now_us != self._next_us or not process.alive:
            return
        if now_us < process.pauses.paused_until_us:
            self._schedule(process.pauses.paused_until_us)
            return
        process.note_polls()
        self.turn()
