"""The clock of a member's machine."""

from __future__ import annotations

from typing import Final

_MILLION: Final = 1_000_000


class ClientClock:
    """``drift_ppm``: by how many parts per million the machine's clock is fast, or slow if it is negative."""

    __slots__ = ("_speed",)

    def __init__(self, drift_ppm: int) -> None:
        self._speed = _MILLION + drift_ppm

    def ms(self, time_us: int) -> int:
        """Return the milliseconds that the machine's clock shows at ``time_us``."""
        return time_us * self._speed // (1000 * _MILLION)

    def us(self, shown_ms: int) -> int:
        """Return the time at which the clock begins to show ``shown_ms``."""
        return -(-shown_ms * 1000 * _MILLION // self._speed)

    def timer_us(self, ms: int) -> int:
        """Return the true time that a timer of so many milliseconds takes, in microseconds."""
        return ms * 1000 if self._speed == _MILLION else ms * 1000 * _MILLION // self._speed
