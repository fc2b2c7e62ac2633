"""The state of tasks: what a host keeps on its disk (StateDirectory), and how a thread reads changelogs
(DefaultStateUpdater, KIP-869).

Positions are whole records outside and millionths of a record inside: a rate in records per second is the
same number in millionths per microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

#: A task writes a checkpoint when its state is this number of records further than the last checkpoint
#: (StateManagerUtil.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT); after a crash the last checkpoint counts.
CHECKPOINT_RECORDS = 10_000


class _Kept(NamedTuple):
    position: int
    since_us: int


class StateDirectory:
    """One host's state. Tasks are numbers, positions records of changelogs.

    One thread at a time locks a task's state. State that no thread has locked for ``cleanup_delay_us``
    (state.cleanup.delay.ms) is removed (cleanRemovedTasks). An application that restarts on the same host
    finds its state and its process id ``process`` again (KAFKA-10716).
    """

    def __init__(self, process: UUID, cleanup_delay_us: int) -> None:
        self.process = process
        self._cleanup_delay_us = cleanup_delay_us
        self._kept: dict[int, _Kept] = {}
        self._locks: dict[int, str] = {}

    def lock(self, task: int, thread: str) -> bool:
        """Lock the task's state for ``thread``. Returns whether ``thread`` has the lock."""
        return self._locks.setdefault(task, thread) == thread

    def unlock(self, task: int, thread: str) -> None:
        if self._locks.get(task) == thread:
            del self._locks[task]

    def unlock_all(self, thread: str) -> None:
        """Release all locks of a thread that has ended."""
        for task in [task for task, owner in self._locks.items() if owner == thread]:
            del self._locks[task]

    def position(self, task: int) -> int:
        """The position of the task's state in the directory; 0 if there is none."""
        kept = self._kept.get(task)
        return 0 if kept is None else kept.position

    def keep(self, task: int, position: int, now_us: int) -> None:
        """A task was closed, or its process has ended: the disk has its state up to ``position``."""
        self._kept[task] = _Kept(position, now_us)

    def lockable(self, thread: str, now_us: int) -> dict[int, int]:
        """Lock all unused state; task -> position (tryToLockAllNonEmptyTaskDirectories)."""
        self._clean(now_us)
        return {task: kept.position for task, kept in sorted(self._kept.items()) if self.lock(task, thread)}

    def kept(self, now_us: int) -> dict[int, int]:
        """The positions of all state on the host, in use or not (StateDirectory.taskOffsetSums)."""
        self._clean(now_us)
        return {task: kept.position for task, kept in self._kept.items()}

    def _clean(self, now_us: int) -> None:
        for task, kept in tuple(self._kept.items()):
            if task not in self._locks and kept.since_us + self._cleanup_delay_us < now_us:
                del self._kept[task]


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
    """Restores the active tasks of a thread, or else keeps its standbys up to date.

    The restoring active tasks share the thread's rate equally, and standbys wait until all are restored.
    Then the standbys that are behind share it. A standby that has caught up follows at a distance of
    ``follow`` records; these reads do not count against the rate. ``end(task, time_us)``: the number of
    records in a changelog then, as forecast.
    """

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
