"""The tasks of one thread, from assignment to assignment (TaskManager).

An active task waits for the lock on its state, restores, and runs as soon as its input positions are known.
The thread suspends it when its partitions are revoked; with the next assignment the thread closes it or keeps
it as a standby. A standby reads its changelog on. The state of a closed task stays in the host's directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from groupstorm.assignors.userdata.streams import LATEST_OFFSET, TaskId
from groupstorm.clients.streams.state import CHECKPOINT_RECORDS, ChangelogReader, StateDirectory
from groupstorm.clients.streams.topology import Topology
from groupstorm.trace.events import streams as events


class TaskState(Enum):
    """The state of a task on its thread."""

    LOCKED_OUT = "another thread of the host has its state"
    RESTORING = "restoring"
    RESTORED = "restored; its input positions are not known yet"
    RUNNING = "running"
    SUSPENDED = "suspended"
    STANDBY = "standby"


class _Held:
    """A task of the thread. ``position``: that of its state while its changelog is not being read."""

    __slots__ = ("active", "opened_at", "position", "read_from", "since_us", "state")

    def __init__(self, active: bool, now_us: int) -> None:
        self.active = active
        self.state = TaskState.LOCKED_OUT
        self.since_us = now_us
        self.opened_at = 0
        self.position = 0
        #: Where an active task began to restore, until the event of its restoration.
        self.read_from: int | None = None


class TaskManager:
    """``who``: group, thread, instance. ``end(task, time_us)``: the number of records in a changelog;
    ``record_bytes``: the size of a record. ``on_read`` gets a task, whether it was active, and the number of
    records that it read.
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

    # -- the tasks -------------------------------------------------------------------------------

    @property
    def held(self) -> list[int]:
        """All tasks of the thread."""
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
        """Whether another thread of the host has the state of one of this thread's tasks."""
        return bool(self._in_state(TaskState.LOCKED_OUT))

    def _in_state(self, state: TaskState) -> list[int]:
        return [task for task, held in sorted(self._held.items()) if held.state is state]

    def gaps(self, now_us: int) -> dict[int, int]:
        """The records that each standby is behind."""
        return {task: self._end(task, now_us) - self._position(task, now_us) for task in self.standbys}

    def offset_sums(self, now_us: int) -> Mapping[TaskId, int]:
        """The offset sums of a subscription (TaskManager.getTaskOffsetSums).

        A running active task has the latest offset, another task the position of its state. Unused state of
        the host counts too.
        """
        sums: dict[int, int] = {}
        for task, held in self._held.items():
            if self._is_stateful(task):
                running = held.state is TaskState.RUNNING
                sums[task] = LATEST_OFFSET if running else self._position(task, now_us)
        for task, position in self._directory.lockable(self._thread, now_us).items():
            if task not in self._held:
                self._reserved[task] = sums[task] = position
        return {self._topology.ids[task]: offset for task, offset in sorted(sums.items())}

    def offsets(self, now_us: int) -> dict[int, int]:
        """The offsets that a member of a streams group reports (maybeUpdateTaskOffsetSumSnapshot): of all
        state on the host, and of the thread's own tasks that do not run as active ones."""
        offsets = self._directory.kept(now_us)
        for task, held in self._held.items():
            if held.state is TaskState.RUNNING:
                offsets.pop(task, None)
            elif held.state is not TaskState.LOCKED_OUT and self._is_stateful(task):
                offsets[task] = self._position(task, now_us)
        return offsets

    def end_offsets(self, now_us: int) -> dict[int, int]:
        """The ends of the changelogs that the thread reads (DefaultStateUpdater)."""
        reads = (*self._in_state(TaskState.RESTORING), *self._in_state(TaskState.STANDBY))
        return {task: self._end(task, now_us) for task in reads}

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
        """Suspend tasks whose partitions are revoked, running or restoring (handleRevocation)."""
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
        """Take a new assignment: close, recycle and create tasks (handleAssignment)."""
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
        """Try again to lock state: another thread of the host may have released it."""
        for task in self._in_state(TaskState.LOCKED_OUT):
            if self._directory.lock(task, self._thread):
                held = self._held[task]
                held.position = self._directory.position(task)
                self._open(task, held, now_us, "checkpoint" if held.position else "nothing")

    def _turn_over(self, task: int, held: _Held, now_us: int) -> None:
        """Recycle a task: from standby to active, or from suspended to standby, with its state."""
        if held.state is not TaskState.LOCKED_OUT:
            read = self._read(task, held, now_us)
            self._account(task, held, read, now_us)
            if held.state is TaskState.STANDBY:
                held.position = self._reader.remove(task, now_us)
            self._emit_closed(task, held, read)
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
        """``clean``: write a checkpoint; otherwise the last checkpoint counts."""
        position, read = self._position(task, now_us), self._read(task, held, now_us)
        self._account(task, held, read, now_us)
        if held.state in (TaskState.RESTORING, TaskState.STANDBY):
            self._reader.remove(task, now_us)
        del self._held[task]
        if held.state is TaskState.LOCKED_OUT:
            return
        self._emit_closed(task, held, read)
        if self._is_stateful(task):
            if not clean:
                position = _checkpointed(held.opened_at, position)
            self._directory.keep(task, position, now_us)
        self._directory.unlock(task, self._thread)

    def _read(self, task: int, held: _Held, now_us: int) -> int:
        """The records read to restore or to catch up that no event contains yet."""
        if held.state is TaskState.STANDBY:
            return self._reader.catching_up(task, now_us)
        return 0 if held.read_from is None else self._position(task, now_us) - held.read_from

    def _account(self, task: int, held: _Held, read: int, now_us: int) -> None:
        """Report the records that a standby has read in all, or an active task to restore."""
        if held.state is TaskState.STANDBY:
            read = self._position(task, now_us) - held.opened_at
        if read:
            self._on_read(task, held.active, read)

    def account_for_standbys(self, now_us: int) -> None:
        """The run ends: report the records that standbys have read."""
        for task in self._in_state(TaskState.STANDBY):
            self._account(task, self._held[task], 0, now_us)

    def _emit_closed(self, task: int, held: _Held, read: int) -> None:
        kind = "active" if held.active else "standby"
        name = self._topology.names[task]
        self._emit(events.TaskClosed(*self._who, name, read * self._record_bytes, kind))
        held.read_from = None

    # -- the end ---------------------------------------------------------------------------------

    def lost(self, now_us: int) -> None:
        """The member has lost its group (handleLostAll): close active tasks without checkpoints."""
        for task, held in sorted(self._held.items()):
            if held.active:
                self.suspend([task], "lost", now_us)
                if task in self._held:
                    self._close(task, held, now_us, clean=False)

    def gone(self, cause: str, now_us: int) -> None:
        """The thread ends. ``cause``: close (with checkpoints) or crash (without)."""
        for task, held in sorted(self._held.items()):
            if held.state is TaskState.RUNNING:
                self.suspend([task], cause, now_us)
            self._close(task, held, now_us, clean=cause == "close")
        self._directory.unlock_all(self._thread)

    # -- progress --------------------------------------------------------------------------------

    def next_us(self, now_us: int) -> int | None:
        """When to call `progress` if nothing else happens."""
        return self._reader.next_us(now_us)

    def progress(self, now_us: int) -> None:
        """Note the tasks that are restored and the standbys that have caught up by now."""
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
        """The input positions of a restored task are known: it runs."""
        held = self._held[task]
        held.state = TaskState.RUNNING
        self._emit(events.TaskRunning(*self._who, self._topology.names[task], now_us - held.since_us))


def _checkpointed(opened_at: int, position: int) -> int:
    """The position of the last checkpoint of a task that was open from ``opened_at`` to ``position``."""
    further = max(0, position - opened_at)
    return opened_at + further // CHECKPOINT_RECORDS * CHECKPOINT_RECORDS
