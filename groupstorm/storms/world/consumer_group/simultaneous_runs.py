"""The order of network threads that run at one instant.

Clients count whole milliseconds, so heartbeats of several members often leave at one instant. Their order
must not depend on when each was scheduled: that differs if heartbeats are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from groupstorm.storms.world.clock import Clock


class SimultaneousRuns:
    """Runs the network threads that are due at one instant in the order of their members' numbers."""

    __slots__ = ("_calls", "_clock", "_due_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The instant of `_calls`; -1: there are none.
        self._due_us = -1
        self._calls: list[tuple[int, Callable[[int], None], int]] = []

    def add(self, index: int, run: Callable[[int], None], number: int) -> None:
        """Call ``run(number)`` now, behind what is due at this instant already."""
        now_us = self._clock.now_us
        if self._due_us != now_us:
            self._due_us = now_us
            self._clock.at(now_us, self._run_all)
        self._calls.append((index, run, number))

    def _run_all(self) -> None:
        calls, self._calls, self._due_us = self._calls, [], -1
        for _, run, number in sorted(calls, key=itemgetter(0)):
            run(number)
