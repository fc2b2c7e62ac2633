"""The figures of every group of a trace, of the whole time or of a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.table import Figures
from groupstorm.trace.rows import TraceEntry, read_row


class Window(NamedTuple):
    """A part of a trace: figures count from ``from_us`` on; later than ``to_us`` is no row (None: all)."""

    from_us: int = 0
    to_us: int | None = None

    def holds(self, time_us: int) -> bool:
        """Whether a row of that time is read: earlier rows are, too, for who owned what until then."""
        return self.to_us is None or time_us <= self.to_us

    def end(self, last_us: int) -> int:
        """Where a trace ends whose last row has the time ``last_us``."""
        return last_us if self.to_us is None else min(last_us, self.to_us)


WHOLE = Window()


class GroupsAccumulator:
    """Takes the rows of one trace, in its order, and computes the figures of each of its groups."""

    def __init__(self, window: Window = WHOLE) -> None:
        self._window = window
        self._accumulators: dict[str, FiguresAccumulator] = {}
        self._last_us = 0

    def add(self, group: str, time_us: int, entry: TraceEntry | None) -> None:
        """Take a row; ``entry`` is its typed event, None if the event is not known."""
        self._last_us = time_us
        if not self._window.holds(time_us):
            return
        accumulator = self._accumulators.get(group)
        if accumulator is None:
            accumulator = self._accumulators[group] = FiguresAccumulator(self._window.from_us)
        if entry is not None:
            accumulator.add(*entry)

    def figures(self) -> dict[str, Figures]:
        """Group -> figures, in the order of the groups' appearance. Every group ends when the trace ends."""
        end_us = self._window.end(self._last_us)
        return {group: one.figures(end_us) for group, one in self._accumulators.items()}


def figures_by_group(rows: Iterable[Mapping[str, Any]], window: Window = WHOLE) -> dict[str, Figures]:
    """The figures of every group in a trace, by group id in the order of its appearance.

    ``rows``: as `groupstorm.trace.reader.read_rows` gives them. A group ends when the trace ends.
    """
    groups = GroupsAccumulator(window)
    for row in rows:
        groups.add(row["group"], row["time_us"], read_row(row))
    return groups.figures()
