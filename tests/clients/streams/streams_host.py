"""A thread's tasks without a group: six tasks, the last of them stateless, changelogs of 100,000 records."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.streams.model import Task, TaskPartition
from groupstorm.assignors.userdata.streams import TaskId
from groupstorm.clients.streams.state import ChangelogReader, StateDirectory
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.clients.streams.topology import Topology
from groupstorm.trace.events.streams import Event
from groupstorm.trace.rows import event_name

SECOND = 1_000_000
RECORDS = 100_000
RATE = 10_000
STATELESS = 5

TOPOLOGY = Topology(
    tuple(
        Task(
            TaskId("", 0, number),
            number != STATELESS,
            (TaskPartition("in", number),),
            (TaskPartition("log", number),) if number != STATELESS else (),
        )
        for number in range(6)
    )
)


class Host:
    """A state directory and its threads. Changelogs grow only if a test makes them grow."""

    def __init__(self, cleanup_delay_us: int = 600 * SECOND) -> None:
        self.directory = StateDirectory(UUID(int=1), cleanup_delay_us)
        self.emitted: list[Event] = []
        self.read: list[tuple[int, bool, int]] = []
        self.more: dict[int, int] = {}

    def end(self, task: int, _time_us: int) -> int:
        return RECORDS + self.more.get(task, 0)

    def thread(self, name: str = "t1") -> TaskManager:
        return TaskManager(
            ("g", name, "instance-0"),
            TOPOLOGY,
            self.directory,
            ChangelogReader(RATE, self.end, 0),
            self.end,
            10,
            self.emitted.append,
            lambda task, active, records: self.read.append((task, active, records)),
        )

    def names(self) -> list[str]:
        """The events since the last call, each with its task."""
        kinds: list[type] = [type(event) for event in self.emitted]
        tasks = [getattr(event, "task", "") for event in self.emitted]
        found = [f"{event_name(kind)} {task}".strip() for kind, task in zip(kinds, tasks, strict=True)]
        self.emitted.clear()
        return found


def sums(tasks: TaskManager, now_us: int) -> dict[int, int]:
    """Offset sums by a task's number."""
    found = tasks.offset_sums(now_us)
    return {number: found[wire] for number, wire in enumerate(TOPOLOGY.ids) if wire in found}


def wire(task: int) -> TaskId:
    return TOPOLOGY.ids[task]
