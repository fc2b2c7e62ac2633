"""Deadlines of a share broker: first in, first out among equals."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

#: The queue is rebuilt once so many times the timers that were taken out of it are more than are left.
_REBUILDING = 16


class Timer:
    """A deadline and its action. ``has_fired``: the action has run."""

    __slots__ = ("_action", "deadline_ms", "has_fired", "is_cancelled")

    def __init__(self, deadline_ms: int, action: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.has_fired = False
        self.is_cancelled = False
        self._action = action

    def cancel(self) -> None:
        self.is_cancelled = True

    def fire(self) -> None:
        self.has_fired = True
        self._action()


class Timers:
    """The time and the timers. The caller sets ``now_ms`` before each call into the room."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: list[tuple[int, int, Timer]] = []
        self._numbers = count()

    def schedule(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Set a timer; one without a delay fires at the next `fire_one`, never inside this call."""
        timer = Timer(self.now_ms + delay_ms, action)
        heappush(self._queue, (timer.deadline_ms, next(self._numbers), timer))
        return timer

    def next_deadline(self) -> int | None:
        """The earliest deadline; None if no timer is set."""
        popped = 0
        while self._queue and self._queue[0][2].is_cancelled:
            heappop(self._queue)
            popped += 1
            if popped * _REBUILDING > len(self._queue):  # many were cancelled: one by one takes far longer
                self._queue = [one for one in self._queue if not one[2].is_cancelled]
                heapify(self._queue)
                popped = 0
        return self._queue[0][0] if self._queue else None

    def fire_one(self) -> bool:
        """Fire the first timer that is due; False if none is."""
        deadline_ms = self.next_deadline()
        if deadline_ms is None or deadline_ms > self.now_ms:
            return False
        heappop(self._queue)[2].fire()
        return True
