"""Connectors and tasks of Kafka Connect: for how long each one had no worker, by the workers' own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class WorkGap(NamedTuple):
    """A connector or task had no worker for this time. ``new_worker``: "" if it lasted until the end."""

    name: str
    from_us: int
    to_us: int
    old_worker: str
    new_worker: str

    @property
    def lasted_us(self) -> int:
        return self.to_us - self.from_us


class Work:
    """Takes the rows of one group, in their order.

    ``gaps``: those that are over. ``delays``: rows of workers that were told that work waits for one that has
    gone.
    """

    def __init__(self) -> None:
        self.gaps: list[WorkGap] = []
        self.delays: list[Row] = []
        #: Whether the group's members are workers.
        self.is_seen = False
        self._of: dict[str, frozenset[str]] = {}
        #: Connector or task -> since when nobody runs it, and who ran it.
        self._idle: dict[str, tuple[int, str]] = {}
        self._gone: set[str] = set()

    def assigned(self, row: Row, worker: str) -> None:
        """A worker was told all that it runs from now on."""
        self.is_seen = True
        now_us = row["time_us"]
        if row.get("duration_us"):
            self.delays.append(row)
        stops = frozenset(json.loads(row["detail"]).get("revoked") or ())
        runs = frozenset(row["tasks"]) - stops
        self._stop(self._of.get(worker, frozenset()) - runs, now_us, worker)
        for name in sorted(runs):
            since = self._idle.pop(name, None)
            if since is not None and now_us > since[0]:
                self.gaps.append(WorkGap(name, since[0], now_us, since[1], worker))
        self._of[worker] = runs
        self._gone.discard(worker)

    def gone(self, worker: str, now_us: int) -> None:
        """A worker was removed from the group, or has closed."""
        self._gone.add(worker)
        self._stop(self._of.pop(worker, frozenset()), now_us, worker)

    def finish(self, end_us: int) -> None:
        """The trace ends, or nobody is there any more. What a worker was told to stop, and nobody to run, may
        have been deleted."""
        for name, (since_us, worker) in sorted(self._idle.items()):
            if end_us > since_us and worker in self._gone:
                self.gaps.append(WorkGap(name, since_us, end_us, worker, ""))
        self._idle.clear()

    def _stop(self, names: frozenset[str], now_us: int, worker: str) -> None:
        running = {name for runs in (self._of[one] for one in self._of if one != worker) for name in runs}
        for name in names - running:
            self._idle.setdefault(name, (now_us, worker))
