"""Connectors and tasks of Kafka Connect, by the workers' own rows: for how long each one had no worker, and
how evenly they were shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from groupstorm.history.rebalances import Row
from groupstorm.history.unknown import json_object

#: Workers that differ by one are as even as they can be.
_UNEVEN_MIN: Final = 2
#: A rebalance of Connect may leave work uneven until the next.
_UNEVEN_MIN_US: Final = 60_000_000


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


class Uneven(NamedTuple):
    """For how long one worker had at least two connectors and tasks more than another, and which had how
    many."""

    lasted_us: int
    loads: Mapping[str, int]


class Work:
    """Takes the rows of one group, in their order.

    ``gaps``: those that are over. ``delays``: rows of workers that were told that work waits for one that has
    gone. ``uneven``: the longest time in which they were shared unevenly; None if there was none.
    """

    def __init__(self) -> None:
        self.gaps: list[WorkGap] = []
        self.uneven: Uneven | None = None
        self.delays: list[Row] = []
        #: Whether the group's members are workers.
        self.is_seen = False
        self._of: dict[str, frozenset[str]] = {}
        #: Connector or task -> since when nobody runs it, and who ran it.
        self._idle: dict[str, tuple[int, str]] = {}
        self._gone: set[str] = set()
        #: When the last delay began for which work waits for a worker that has gone; whether it still waits.
        self._delayed_us = -1
        self._is_delayed = False
        #: When each worker was told last what it runs.
        self._told_us: dict[str, int] = {}
        self._uneven_us: int | None = None
        self._loads: dict[str, int] = {}

    def assigned(self, row: Row, worker: str, delay_max_us: int | None = None) -> None:
        """A worker was told all that it runs from now on. ``delay_max_us``: its
        scheduled.rebalance.max.delay.ms, None if that is not known."""
        self.is_seen = True
        now_us = row["time_us"]
        self._see_delay(row, delay_max_us)
        revoked = json_object(row["detail"]).get("revoked")
        stops = frozenset(map(str, revoked if isinstance(revoked, list) else ()))
        runs = frozenset(row["tasks"]) - stops
        lost = self._of.get(worker, frozenset()) - runs
        self._stop(lost & stops, now_us, worker)
        self._stop(lost - stops, self._since(worker, now_us), worker)
        for other in [one for one, has in self._of.items() if one != worker and not has.isdisjoint(runs)]:
            taken = self._of[other] & runs
            self._of[other] -= taken
            if self._since(other, now_us) < now_us:
                self._stop(taken, self._since(other, now_us), other)
        for name in sorted(runs):
            since = self._idle.pop(name, None)
            if since is not None and now_us > since[0]:
                self.gaps.append(WorkGap(name, since[0], now_us, since[1], worker))
        self._of[worker] = runs
        self._told_us[worker] = now_us
        is_out = row.get("error") == "COORDINATOR_NOT_AVAILABLE"  # nobody has deleted what it stops then
        (self._gone.add if is_out else self._gone.discard)(worker)
        self._compare(now_us)

    def gone(self, worker: str, now_us: int) -> None:
        """A worker was removed from the group, or has closed."""
        self._gone.add(worker)
        self._stop(self._of.pop(worker, frozenset()), now_us, worker)
        self._compare(now_us)

    def finish(self, end_us: int) -> None:
        """The trace ends, or nobody is there any more. What a worker was told to stop, and nobody to run, may
        have been deleted."""
        self._end_uneven(end_us)
        self._uneven_us = None
        for name, (since_us, worker) in sorted(self._idle.items()):
            if end_us > since_us and worker in self._gone:
                self.gaps.append(WorkGap(name, since_us, end_us, worker, ""))
        self._idle.clear()

    def _see_delay(self, row: Row, delay_max_us: int | None) -> None:
        delay_us = row.get("duration_us")
        if delay_us:
            self.delays.append(row)
            begun_us = row["time_us"] - max(0, (delay_max_us or 0) - delay_us)  # the row has what is left
            self._delayed_us = min(begun_us, self._delayed_us) if self._is_delayed else begun_us
        self._is_delayed = bool(delay_us)

    def _since(self, worker: str, now_us: int) -> int:
        """Since when nobody runs what the worker is not told to stop and does not run any more: if it was out
        of the group when the last delay began, since then."""
        told_us = self._told_us.get(worker, now_us)
        return self._delayed_us if told_us < self._delayed_us else now_us

    def _stop(self, names: frozenset[str], now_us: int, worker: str) -> None:
        running = {name for runs in (self._of[one] for one in self._of if one != worker) for name in runs}
        for name in names - running:
            self._idle.setdefault(name, (now_us, worker))

    def _compare(self, now_us: int) -> None:
        """Work that waits for its worker makes nothing uneven, nor does a worker that was not back yet."""
        self._end_uneven(now_us)
        loads = {one: len(runs) for one, runs in self._of.items() if self._since(one, now_us) == now_us}
        if not self._is_delayed and loads and max(loads.values()) - min(loads.values()) >= _UNEVEN_MIN:
            self._uneven_us, self._loads = now_us if self._uneven_us is None else self._uneven_us, loads
        else:
            self._uneven_us = None

    def _end_uneven(self, now_us: int) -> None:
        if self._uneven_us is None:
            return
        lasted_us = now_us - self._uneven_us
        if lasted_us >= _UNEVEN_MIN_US and (self.uneven is None or lasted_us > self.uneven.lasted_us):
            self.uneven = Uneven(lasted_us, self._loads)
