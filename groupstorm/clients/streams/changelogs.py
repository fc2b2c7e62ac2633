"""A thread reads changelogs: it restores active tasks, or else keeps its standbys up to date.

Kafka's state updater (DefaultStateUpdater, KIP-869) reads the changelogs of all its active tasks side by
side; standbys wait until these are restored. So the restoring active tasks share the thread's rate equally;
if there are none, the standbys that are behind share it. A standby that has caught up follows at a distance
of ``follow`` records; these reads do not count against the rate.

Positions are whole records outside and millionths of a record inside: a rate in records per second is the
same number in millionths per microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MILLION = 1_000_000
#: No forecast beyond this: a standby that needs longer never catches up.
_HORIZON_US = 30 * 24 * 3_600 * MILLION
_FORECAST_STEPS = 64


class CaughtUp(NamedTuple):
    """A standby that has caught up: the records that it read, and how long it was behind."""

    task: int
    records: int
    duration_us: int


class ChangelogReader:
    """``end(task, time_us)``: the number of records in its changelog then, as forecast."""

    def __init__(self, records_per_second: int, end: Callable[[int, int], int], follow: int) -> None:
        self._rate = records_per_second
        self._end = end
        self.follow = follow
        self._since_us = 0
        self._active: dict[int, int] = {}
        self._standby: dict[int, int] = {}
        #: Standbys that are behind: the position at which they fell behind, and the time.
        self._behind: dict[int, tuple[int, int]] = {}

    def add_active(self, task: int, position: int, now_us: int) -> None:
        """Restore ``task`` from ``position``."""
        self._rebase(now_us)
        self._active[task] = position * MILLION
        self._sort_standbys(now_us)

    def add_standby(self, task: int, position: int, now_us: int) -> None:
        self._rebase(now_us)
        self._standby[task] = position * MILLION
        self._sort_standbys(now_us)

    def remove(self, task: int, now_us: int) -> int:
        """Stop reading its changelog. Returns the position."""
        self._rebase(now_us)
        self._behind.pop(task, None)
        position = self._active.pop(task, None)
        if position is None:
            position = self._standby.pop(task)
        self._sort_standbys(now_us)
        return position // MILLION

    def position(self, task: int, now_us: int) -> int:
        return self._reached(task, now_us) // MILLION

    def catching_up(self, task: int, now_us: int) -> int:
        """The records that a standby has read since it fell behind; 0 if it is not behind."""
        fell = self._behind.get(task)
        return 0 if fell is None else self.position(task, now_us) - fell[0] // MILLION

    def advance(self, now_us: int) -> tuple[list[int], list[CaughtUp]]:
        """The active tasks that are restored by now, and the standbys that have just caught up."""
        behind = dict(self._behind)
        self._rebase(now_us)
        restored = [
            task for task, reached in self._active.items() if reached >= self._end(task, now_us) * MILLION
        ]
        for task in restored:
            del self._active[task]
        self._sort_standbys(now_us)
        caught_up = [
            CaughtUp(task, self.position(task, now_us) - fell_at // MILLION, now_us - fell_us)
            for task, (fell_at, fell_us) in sorted(behind.items())
            if task not in self._behind
        ]
        return sorted(restored), caught_up

    def next_us(self, now_us: int) -> int | None:
        """When to `advance` if nothing else happens: the first task is restored or caught up then."""
        if self._active:
            sharing = len(self._active)
            return min(
                self._through_us(reached, self._end(task, now_us), sharing)
                for task, reached in self._active.items()
            )
        caught_up = [time_us for task in self._behind if (time_us := self._caught_up_us(task)) is not None]
        return min(caught_up, default=None)

    # -- progress --------------------------------------------------------------------------------

    def _reached(self, task: int, now_us: int) -> int:
        """The position in millionths of a record."""
        read = self._rate * (now_us - self._since_us)
        reached = self._active.get(task)
        if reached is not None:
            return min(self._end(task, now_us) * MILLION, reached + read // len(self._active))
        reached = self._standby[task]
        if self._active:
            return reached
        nearest = max(reached, (self._end(task, now_us) - self.follow) * MILLION)
        if task in self._behind:
            return min(nearest, reached + read // len(self._behind))
        return nearest

    def _rebase(self, now_us: int) -> None:
        active = {task: self._reached(task, now_us) for task in self._active}
        standby = {task: self._reached(task, now_us) for task in self._standby}
        self._active, self._standby, self._since_us = active, standby, now_us

    def _sort_standbys(self, now_us: int) -> None:
        self._behind = {
            task: self._behind.get(task, (reached, now_us))
            for task, reached in self._standby.items()
            if reached < (self._end(task, now_us) - self.follow) * MILLION
        }

    def _through_us(self, reached: int, end: int, sharing: int) -> int:
        missing = max(0, end * MILLION - reached)
        return self._since_us - (-missing * sharing // self._rate)

    def _caught_up_us(self, task: int) -> int | None:
        """The changelog grows while the standby reads: repeat the forecast until both meet, or nearly so."""
        time_us = self._since_us
        for _ in range(_FORECAST_STEPS):
            end = self._end(task, time_us) - self.follow
            later_us = self._through_us(self._standby[task], end, len(self._behind))
            if later_us <= time_us:
                break
            time_us = later_us
            if time_us > self._since_us + _HORIZON_US:
                return None
        return time_us
