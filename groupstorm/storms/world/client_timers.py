"""The timers of one client, on the clock of its machine."""

from __future__ import annotations

_MILLION = 1_000_000


class ClientTimers:
    """``drift_ppm``: by how many parts per million the machine's clock is fast, or slow if it is negative."""

    __slots__ = ("_drift_ppm",)

    def __init__(self, drift_ppm: int) -> None:
        self._drift_ppm = drift_ppm

    def us(self, ms: int) -> int:
        """Return the true time that a timer of so many milliseconds takes, in microseconds."""
        drift_ppm = self._drift_ppm
        return ms * 1000 * _MILLION // (_MILLION + drift_ppm) if drift_ppm else ms * 1000
