"""Pauses of a whole process that come by themselves, as a garbage collector's do."""

from __future__ import annotations

from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.pauses import Pauses


class GarbageCollections:
    """`gc_interval_ms` after the last pause, the process stands still for `gc_pause_ms`. Draws by counter."""

    __slots__ = ("_clock", "_interval", "_number", "_pause", "_pauses", "_stopped", "_stream")

    def __init__(self, clock: Clock, pauses: Pauses, settings: Settings, stream: Stream) -> None:
        self._clock = clock
        self._pauses = pauses
        self._pause = settings.distribution("gc_pause_ms")
        self._interval = settings.distribution("gc_interval_ms")
        self._stream = stream
        self._number = 0
        self._stopped = False

    def start(self) -> None:
        if self._pause.largest_us:
            self._clock.after(self._draw()[0], self._collect)

    def stop(self) -> None:
        """The process is gone."""
        self._stopped = True

    def _draw(self) -> tuple[int, int]:
        """The time until the next pause, and its duration."""
        self._number += 1
        interval, pause = self._stream.pair(self._number)
        return max(1, self._interval.at(interval)), self._pause.at(pause)

    def _collect(self) -> None:
        if self._stopped:
            return
        _, pause_us = self._draw()
        if pause_us:
            self._pauses.pause(pause_us)
        interval_us, _ = self._draw()
        self._clock.after(pause_us + interval_us, self._collect)
