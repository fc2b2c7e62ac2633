"""Virtual time: integer microseconds, a heap of what is to come, first-in-first-out among equals."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Clock:
    """`now_us` stands still while something happens and jumps to whatever comes next.

    ``limit_us``: `run` does only what is due before it.
    """

    __slots__ = ("_heap", "_scheduled", "limit_us", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.limit_us = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` at ``time_us``. Raises ValueError for a time that has passed."""
        if time_us < self.now_us:
            raise ValueError(f"{time_us} us lies before now ({self.now_us} us)")
        self._scheduled += 1
        heappush(self._heap, (time_us, self._scheduled, action, arguments))

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` in ``delay_us`` (not negative)."""
        self._scheduled += 1
        heappush(self._heap, (self.now_us + delay_us, self._scheduled, action, arguments))

    def run(self) -> None:
        """Do what is due before `limit_us`, which what happens may move."""
        heap = self._heap
        while heap and heap[0][0] < self.limit_us:
            self.now_us, _, action, arguments = heappop(heap)
            action(*arguments)

    def advance_to(self, time_us: int) -> None:
        """Move the clock without doing anything: for what is due elsewhere (the coordinator's timers)."""
        self.now_us = time_us
