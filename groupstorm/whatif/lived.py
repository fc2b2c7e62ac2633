"""The figures of a group from its first row until its last member has gone for good."""

from __future__ import annotations

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.table import Figures
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.events.imported import MembersBack, MembersGone
from groupstorm.trace.rows import TraceEntry


class LivedFigures:
    """A time without members counts, as in a storm, if somebody comes back after it."""

    def __init__(self) -> None:
        self._figures = FiguresAccumulator()
        #: When the members had gone, and the rows since then; None if the group has members.
        self.gone_us: int | None = None
        self._since_gone: list[TraceEntry] = []

    def add(self, entry: TraceEntry) -> None:
        time_us, _, event = entry
        if _is_gone(event):
            self.gone_us = time_us if self.gone_us is None else self.gone_us
        elif _is_back(event):
            self._come_back()
        if isinstance(event, MembersGone | MembersBack):
            return  # with which the figures of an import leave the time out
        if self.gone_us is None:
            self._figures.add(*entry)
        else:
            self._since_gone.append(entry)

    def _come_back(self) -> None:
        self.gone_us = None
        for one in self._since_gone:
            self._figures.add(*one)
        self._since_gone.clear()

    @property
    def owned_from_us(self) -> int | None:
        """See `FiguresAccumulator`."""
        return self._figures.owned_from_us

    def figures(self, ended_us: int) -> Figures:
        """``ended_us``: the time of the last row. To be called once."""
        return self._figures.figures(ended_us if self.gone_us is None else self.gone_us)


def _is_gone(event: object) -> bool:
    is_empty = isinstance(event, GroupStateChanged) and event.state == GroupState.EMPTY
    return is_empty or isinstance(event, MembersGone)


def _is_back(event: object) -> bool:
    return isinstance(event, GroupStateChanged | MembersBack) and not _is_gone(event)
