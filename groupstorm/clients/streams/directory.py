"""The state directory of a host: the state of tasks, whichever thread had them (StateDirectory).

One thread at a time locks a task's state. While the application runs, state that no thread has locked for
``state.cleanup.delay.ms`` is removed (StateDirectory.cleanRemovedTasks). An application that restarts on the
same host finds its state and its process id again (KAFKA-10716).
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

#: A task writes a checkpoint when its state is this number of records further than the last checkpoint
#: (StateManagerUtil.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT); after a crash the last checkpoint counts.
CHECKPOINT_RECORDS = 10_000


class _Kept(NamedTuple):
    position: int
    since_us: int


class StateDirectory:
    """``process``: the process id in the directory. Tasks are numbers, positions records of changelogs."""

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
