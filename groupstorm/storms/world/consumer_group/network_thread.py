"""The network thread of a client whose broker assigns: it runs at the instants that its member names.

It runs after every call of the application and every response too. While the group is Stable, nothing but
heartbeats would happen; then they are computed, and the thread is not scheduled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.storms.world.clock import ClientClock, Clock, Kind, order_of


class Standstill(Protocol):
    """The pauses of a process."""

    paused_until_us: int


class SteppingProcess(Protocol):
    """The process whose client it is."""

    alive: bool
    client_clock: ClientClock
    clock: Clock
    closing: bool
    group_member: HeartbeatingMember[Any]
    index: int

    @property
    def pauses(self) -> Standstill: ...

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
    """The network thread of one process.

    ``rest(due_ms)``: returns whether the heartbeats from ``due_ms`` on, by the machine's clock, are computed.
    """

    __slots__ = ("_due_ms", "_next_us", "_process", "_rest", "_scheduled_us")

    def __init__(self, process: SteppingProcess, rest: Callable[[int], bool]) -> None:
        self._process = process
        self._rest = rest
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
            if not self._rest(self._due_ms):
                self.run_at(self._due_ms)
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
