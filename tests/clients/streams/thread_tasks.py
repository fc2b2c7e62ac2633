"""A thread's tasks without a group: six tasks, the last of them stateless, changelogs of 100,000 records."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.streams.ids import TaskId
from groupstorm.assignors.streams.model import Task, TaskPartition
from groupstorm.assignors.userdata.streams import StreamsTask
from groupstorm.clients.streams.changelogs import ChangelogReader
from groupstorm.clients.streams.directory import StateDirectory
from groupstorm.clients.streams.events import Event
from groupstorm.clients.streams.tasks import ThreadTasks
from groupstorm.clients.streams.topology import Topology
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
    """A state directory, and as many threads as are asked for. Changelogs grow only where a test says so."""

    def __init__(self, cleanup_delay_us: int = 600 * SECOND) -> None:
        self.directory = StateDirectory(UUID(int=1), cleanup_delay_us)
        self.told: list[Event] = []
        self.read: list[tuple[int, bool, int]] = []
        self.more: dict[int, int] = {}

    def end(self, task: int, _time_us: int) -> int:
        return RECORDS + self.more.get(task, 0)

    def thread(self, name: str = "t1") -> ThreadTasks:
        return ThreadTasks(
            ("g", name, "instance-0"),
            TOPOLOGY,
            self.directory,
            ChangelogReader(RATE, self.end, 0),
            self.end,
            10,
            self.told.append,
            lambda task, active, records: self.read.append((task, active, records)),
        )

    def names(self) -> list[str]:
        """What was told since the last time that somebody asked: events, and their tasks."""
        kinds: list[type] = [type(event) for event in self.told]
        tasks = [getattr(event, "task", "") for event in self.told]
        found = [f"{event_name(kind)} {task}".strip() for kind, task in zip(kinds, tasks, strict=True)]
        self.told.clear()
        return found


def sums(tasks: ThreadTasks, now_us: int) -> dict[int, int]:
    """Offset sums by a task's number."""
    found = tasks.offset_sums(now_us)
    return {number: found[wire] for number, wire in enumerate(TOPOLOGY.on_wire) if wire in found}


def wire(task: int) -> StreamsTask:
    return TOPOLOGY.on_wire[task]
