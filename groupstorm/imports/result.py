"""What `groupstorm import` has found in logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groupstorm.imports.clocks import Offset
from groupstorm.imports.source import LogSource
from groupstorm.imports.timeline.group import GroupSummary


@dataclass(frozen=True, slots=True)
class Imported:
    """The groups and logs, how far each log's clock is off, and the time and rows of the trace."""

    groups: Sequence[GroupSummary]
    logs: Sequence[LogSource]
    offsets: Mapping[int, Offset]
    began_us: int
    ended_us: int
    rows: int

    @property
    def lacks(self) -> str:
        """The part of its times that no source says: see `shown`."""
        return next((one.clock.lacks for one in self.logs if one.clock.lacks), "")
