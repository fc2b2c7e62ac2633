"""Generations in which the group got nowhere: records waited, and no partition was processed further."""

from __future__ import annotations

from groupstorm.history.record_model import NANO


class Progress:
    """Follows generations from their Stable to the next one, or to the end of the trace.

    All amounts are in billionths of a record, over all partitions: how far they were processed, and how
    much waits.
    """

    def __init__(self) -> None:
        self.without_max = 0
        self._without = 0
        self._furthest = 0
        self._open = False

    def stable(self, processed: int, waiting: int) -> None:
        """A generation is complete: the one before is over."""
        self._over(processed, waiting)
        self._open = True

    def finish(self, processed: int, waiting: int) -> None:
        """The trace ends."""
        self._over(processed, waiting)

    def begin_window(self) -> None:
        """Generations so far count no more, nor does the one that is open."""
        self.without_max = self._without = 0
        self._open = False

    def _over(self, processed: int, waiting: int) -> None:
        if not self._open or processed >= self._furthest + NANO or waiting < NANO:
            self._without = 0
        else:
            self._without += 1
            self.without_max = max(self.without_max, self._without)
        self._furthest = max(self._furthest, processed)
