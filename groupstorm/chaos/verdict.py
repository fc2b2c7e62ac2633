"""The verdict of a chaos run: what was lost or spoilt (safety), and whether the service came to rest after
the last fault (liveness)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.testing.ledger.report import Report


class Verdict(NamedTuple):
    """``left``: the records that were not committed when the time was over, by partition; None: the service
    came to rest, after ``settled_s`` from the last step. ``exits``: instances that ended unasked, one
    sentence each; they count against the service unless the scenario restarts them (``restarts_failed``).
    """

    on: str
    report: Report
    steps: int
    starts: int
    settled_s: float
    left: Mapping[str, int] | None
    exits: tuple[str, ...]
    restarts_failed: bool

    @property
    def is_good(self) -> bool:
        return not self.report.faults and self.left is None and (self.restarts_failed or not self.exits)

    def lines(self) -> list[str]:
        """The verdict in sentences."""
        done = f"{self.steps} step{'' if self.steps == 1 else 's'}, {self.starts} starts of instances"
        lines = [f"On {self.on}: {done}.", *self._safety(), self._liveness()]
        return [*lines, *self.exits]

    def _safety(self) -> list[str]:
        first, *more = self.report.lines()
        return [f"Safety: {first}.", *more]

    def _liveness(self) -> str:
        if self.left is None:
            rest = "the group was stable and had committed every record"
            return f"Liveness: {rest} {self.settled_s:.1f} s after the last step."
        parts = [f"{partition}: {count}" for partition, count in self.left.items()]
        missing = f"records left: {', '.join(parts)}" if parts else "the group was not stable"
        return f"Liveness: not at rest {self.settled_s:.1f} s after the last step; {missing}."

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "on": self.on,
            "good": self.is_good,
            "steps": self.steps,
            "starts": self.starts,
            "settled_seconds": round(self.settled_s, 3) if self.left is None else None,
            "left": None if self.left is None else dict(self.left),
            "exits": list(self.exits),
            "ledger": self.report.to_json(),
        }
