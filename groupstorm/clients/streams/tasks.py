"""What one thread has of which task, from assignment to assignment (TaskManager).

An active task waits for its state's lock, restores, and runs once its input positions are known too; it is
suspended when its partitions are revoked, and closed or kept as a standby with the next assignment. A
standby follows. State that is closed stays in the host's directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from groupstorm.assignors.streams.model import LATEST_OFFSET
from groupstorm.assignors.userdata.streams import StreamsTask
from groupstorm.clients.streams import events
from groupstorm.clients.streams.changelogs import ChangelogReader
from groupstorm.clients.streams.directory import CHECKPOINT_RECORDS, StateDirectory
from groupstorm.clients.streams.topology import Topology


class TaskState(Enum):
    """Where a task stands on its thread."""

    LOCKED_OUT = "another thread of the host has its state"
    RESTORING = "restoring"
    RESTORED = "restored; its input positions are not known yet"
    RUNNING = "running"
    SUSPENDED = "suspended"
    STANDBY = "standby"


class _Held:
    """A task that the thread has. ``position``: of its state where nobody reads its changelog."""

    __slots__ = ("active", "opened_at", "position", "read_from", "since_us", "state")

    def __init__(self, active: bool, now_us: int) -> None:
        self.active = active
        self.state = TaskState.LOCKED_OUT
        self.since_us = now_us
        self.opened_at = 0
        self.position = 0
        #: Where an active task began to restore, as long as that is not told.
        self.read_from: int | None = None


class ThreadTasks:
    """``who``: group, thread, instance. ``end(task, time_us)``: records in a changelog; ``record_bytes``: of
    each of them. ``on_read`` is told of records that were read: of which task, whether it was active.
    """

    def __init__(
        self,
        who: tuple[str, str, str],
        topology: Topology,
        directory: StateDirectory,
        reader: ChangelogReader,
        end: Callable[[int, int], int],
        record_bytes: int,
        emit: Callable[[events.Event], None],
        on_read: Callable[[int, bool, int], None],
    ) -> None:
        self._on_read = on_read
        self._who = who
        self._thread = who[1]
        self._topology = topology
        self._directory = directory
        self._reader = reader
        self._end = end
        self._record_bytes = record_bytes
        self._emit = emit
        self._held: dict[int, _Held] = {}
        self._reserved: dict[int, int] = {}

    # -- what there is ---------------------------------------------------------------------------

    @property
    def held(self) -> list[int]:
        """All tasks that the thread has."""
        return sorted(self._held)

    @property
    def running(self) -> list[int]:
        return self._in_state(TaskState.RUNNING)

    @property
    def restored(self) -> list[int]:
        """Active tasks that could run if their input positions were known."""
        return self._in_state(TaskState.RESTORED)

    @property
    def standbys(self) -> list[int]:
        return [task for task, held in sorted(self._held.items()) if not held.active]

    @property
    def waits_for_state(self) -> bool:
        """Whether another thread of the host has what one of its tasks needs."""
        return bool(self._in_state(TaskState.LOCKED_OUT))

    def _in_state(self, state: TaskState) -> list[int]:
        return [task for task, held in sorted(self._held.items()) if held.state is state]

    def gaps(self, now_us: int) -> dict[int, int]:
        """Per standby, how many records it is behind."""
        return {task: self._end(task, now_us) - self._position(task, now_us) for task in self.standbys}

    def offset_sums(self, now_us: int) -> Mapping[StreamsTask, int]:
        """What a subscription says (TaskManager.getTaskOffsetSums): running active tasks are at the latest
        offset; of others how far their state is, that which the host keeps and nobody uses included."""
        sums: dict[int, int] = {}
        for task, held in self._held.items():
            if self._is_stateful(task):
                running = held.state is TaskState.RUNNING
                sums[task] = LATEST_OFFSET if running else self._position(task, now_us)
        for task, position in self._directory.lockable(self._thread, now_us).items():
            if task not in self._held:
                self._reserved[task] = sums[task] = position
        return {self._topology.on_wire[task]: offset for task, offset in sorted(sums.items())}

    def _is_stateful(self, task: int) -> bool:
        return self._topology.tasks[task].stateful

    def _position(self, task: int, now_us: int) -> int:
        held = self._held[task]
        if held.state in (TaskState.RESTORING, TaskState.STANDBY):
            return self._reader.position(task, now_us)
        if held.state is TaskState.RUNNING:
            return self._end(task, now_us)
        if held.state is TaskState.LOCKED_OUT:
            return self._directory.position(task)
        return held.position

    # -- assignments -----------------------------------------------------------------------------

    def suspend(self, tasks: Iterable[int], cause: str, now_us: int) -> None:
        """Their partitions are revoked (handleRevocation): what runs stops, what restores does so too."""
        for task in tasks:
            held = self._held.get(task)
            if held is None or not held.active or held.state is TaskState.SUSPENDED:
                continue
            if held.state is TaskState.LOCKED_OUT:
                del self._held[task]
                continue
            held.position = self._position(task, now_us)
            if held.state is TaskState.RESTORING:
                self._reader.remove(task, now_us)
            elif held.state is TaskState.RUNNING:
                self._emit(events.TaskSuspended(*self._who, self._topology.names[task], cause))
            held.state = TaskState.SUSPENDED

    def assigned(self, active: set[int], standby: set[int], now_us: int) -> None:
        """A new assignment (handleAssignment): close, turn over, create."""
        for task, held in sorted(self._held.items()):
            if task not in active and task not in standby:
                self._close(task, held, now_us, clean=True)
        for task in sorted(active | standby):
            present = self._held.get(task)
            if present is not None and present.active != (task in active):
                self._turn_over(task, present, now_us)
            elif present is None:
                self._held[task] = _Held(task in active, now_us)
        for task in tuple(self._reserved):
            if task not in self._held:
                self._directory.unlock(task, self._thread)
        self._reserved.clear()
        self.try_locks(now_us)

    def try_locks(self, now_us: int) -> None:
        """Another thread of the host may have let go of state that is waited for here."""
        for task in self._in_state(TaskState.LOCKED_OUT):
            if self._directory.lock(task, self._thread):
                held = self._held[task]
                held.position = self._directory.position(task)
                self._open(task, held, now_us, "checkpoint" if held.position else "nothing")

    def _turn_over(self, task: int, held: _Held, now_us: int) -> None:
        """From standby to active, or from suspended to standby, with the state as it is (recycling)."""
        if held.state is not TaskState.LOCKED_OUT:
            read = self._read(task, held, now_us)
            self._account(task, held, read, now_us)
            if held.state is TaskState.STANDBY:
                held.position = self._reader.remove(task, now_us)
            self._tell_closed(task, held, read)
        held.active, held.since_us = not held.active, now_us
        if held.state is not TaskState.LOCKED_OUT:
            self._open(task, held, now_us, "standby")

    def _open(self, task: int, held: _Held, now_us: int, source: str) -> None:
        name, stateful = self._topology.names[task], self._is_stateful(task)
        held.opened_at = held.position
        lag = max(0, self._end(task, now_us) - held.position) if stateful else 0
        if held.active and not stateful:
            held.state = TaskState.RESTORED
        elif held.active:
            held.state, held.read_from = TaskState.RESTORING, held.position
            self._reader.add_active(task, held.position, now_us)
            self._emit(events.TaskRestoring(*self._who, name, lag, lag * self._record_bytes, source))
        else:
            held.state = TaskState.STANDBY
            self._reader.add_standby(task, held.position, now_us)
            self._emit(events.StandbyStarted(*self._who, name, lag))

    def _close(self, task: int, held: _Held, now_us: int, *, clean: bool) -> None:
        """``clean``: with a checkpoint; else what the last one says is kept."""
        position, read = self._position(task, now_us), self._read(task, held, now_us)
        self._account(task, held, read, now_us)
        if held.state in (TaskState.RESTORING, TaskState.STANDBY):
            self._reader.remove(task, now_us)
        del self._held[task]
        if held.state is TaskState.LOCKED_OUT:
            return
        self._tell_closed(task, held, read)
        if self._is_stateful(task):
            if not clean:
                position = _checkpointed(held.opened_at, position)
            self._directory.keep(task, position, now_us)
        self._directory.unlock(task, self._thread)

    def _read(self, task: int, held: _Held, now_us: int) -> int:
        """Records that were read to restore or to catch up and are not told yet."""
        if held.state is TaskState.STANDBY:
            return self._reader.catching_up(task, now_us)
        return 0 if held.read_from is None else self._position(task, now_us) - held.read_from

    def _account(self, task: int, held: _Held, read: int, now_us: int) -> None:
        """What a standby has read in all, what an active task has read to restore."""
        if held.state is TaskState.STANDBY:
            read = self._position(task, now_us) - held.opened_at
        if read:
            self._on_read(task, held.active, read)

    def account_for_standbys(self, now_us: int) -> None:
        """Nothing more comes: what standbys have read counts."""
        for task in self._in_state(TaskState.STANDBY):
            self._account(task, self._held[task], 0, now_us)

    def _tell_closed(self, task: int, held: _Held, read: int) -> None:
        kind = "active" if held.active else "standby"
        name = self._topology.names[task]
        self._emit(events.TaskClosed(*self._who, name, read * self._record_bytes, kind))
        held.read_from = None

    # -- the end of it ---------------------------------------------------------------------------

    def lost(self, now_us: int) -> None:
        """Out of the group (handleLostAll): active tasks are closed as they are, standbys follow on."""
        for task, held in sorted(self._held.items()):
            if held.active:
                self.suspend([task], "lost", now_us)
                if task in self._held:
                    self._close(task, held, now_us, clean=False)

    def gone(self, cause: str, now_us: int) -> None:
        """The thread ends. ``cause``: close, with checkpoints; or crash, without."""
        for task, held in sorted(self._held.items()):
            if held.state is TaskState.RUNNING:
                self.suspend([task], cause, now_us)
            self._close(task, held, now_us, clean=cause == "close")
        self._directory.unlock_all(self._thread)

    # -- progress --------------------------------------------------------------------------------

    def next_us(self, now_us: int) -> int | None:
        """When `progress` has something to say, if nothing else happens."""
        return self._reader.next_us(now_us)

    def progress(self, now_us: int) -> None:
        """What was restored and what has caught up by now."""
        restored, caught_up = self._reader.advance(now_us)
        for task in restored:
            held = self._held[task]
            held.state, held.position = TaskState.RESTORED, self._end(task, now_us)
            read = self._read(task, held, now_us)
            self._account(task, held, read, now_us)
            held.read_from = None
            name, duration_us = self._topology.names[task], now_us - held.since_us
            self._emit(events.TaskRestored(*self._who, name, read * self._record_bytes, duration_us))
        for task, records, duration_us in caught_up:
            read = records * self._record_bytes
            self._emit(events.StandbyCaughtUp(*self._who, self._topology.names[task], read, duration_us))

    def run(self, task: int, now_us: int) -> None:
        """A restored task's input positions are known: it processes."""
        held = self._held[task]
        held.state = TaskState.RUNNING
        self._emit(events.TaskRunning(*self._who, self._topology.names[task], now_us - held.since_us))


def _checkpointed(opened_at: int, position: int) -> int:
    """How far the last checkpoint goes that was written while a task was open."""
    further = max(0, position - opened_at)
    return opened_at + further // CHECKPOINT_RECORDS * CHECKPOINT_RECORDS
