"""Tasks, follow-up rebalances, fenced threads and deaths of Kafka Streams, from the lines of its threads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.ends import Deaths
from groupstorm.imports.timeline.group import NULL, GroupRecord
from groupstorm.imports.timeline.part import GroupPart, Handlers
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import streams as events
from groupstorm.trace.events.imported import RequestRefused
from groupstorm.trace.events.member import MemberFailed
from groupstorm.trace.events.scenario import TasksCreated
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

#: Stands between an instance and the number of its thread.
THREAD: Final = "-StreamThread-"
#: What `StreamsPartitionAssignor` says of an immediate follow-up -> the cause in a trace.
_CAUSES: Final[Mapping[str, str]] = {
    "due to version probing": "version-probing",
    "for new tasks to be safely revoked from current owner": "tasks-change-owner",
}
_EXCEPTION: Final = re.compile(r"\w+(?:Exception|Error)\b|INCOMPLETE_SOURCE_TOPIC_METADATA")
#: Lines of one kind about one thread that come so close tell of one event.
_SAME_US: Final = 10_000_000
_CONSUMER: Final = re.compile(r"-consumer$")
_CAUSE_RULE: Final = "cause: of the last follow-up that the thread has scheduled"
_THREAD: Final = re.compile(r"-StreamThread-\d+$")
#: Behind it a kind of line says with which state a task begins.
_FROM: Final = "task-from-"
_ALL_TASKS: Final = "tasks: those that the threads' logs name, and every thread has one"


class StreamsThreads(GroupPart):
    """Takes the lines of all threads of one application, in the order of time."""

    def __init__(self, group: GroupRecord) -> None:
        super().__init__(group)
        #: Thread -> why it will ask for a rebalance.
        self._causes: dict[str, str] = {}
        #: Thread -> the tasks that it runs, and its last line.
        self._running: dict[str, dict[str, None]] = {}
        self._last: dict[str, Observation] = {}
        #: Threads that were removed from the group while they ran tasks: the line and the cause.
        self._removed: dict[str, tuple[Observation, str]] = {}
        self._deaths: dict[str, Deaths] = {}
        self._tasks: dict[str, None] = {}
        #: Kind of a line and thread -> when it came last.
        self._said: dict[tuple[str, str], int] = {}
        #: Thread and task whose state has a row since the task ran last.
        self._begun: set[tuple[str, str]] = set()
        group.on_removal.append(self._thread_removed)

    def _scheduled(self, line: Observation) -> None:
        thread, why = thread_of(line), line.fields.get("why")
        cause = "probing" if why is None else _CAUSES.get(why, UNKNOWN)
        self._causes[thread] = cause
        wait_us = None if why is None else 0
        self._emit(line, events.FollowUpScheduled(self._group.name, thread, wait_us, cause))

    def _due(self, line: Observation) -> None:
        thread = thread_of(line)
        cause = self._causes.pop(thread, UNKNOWN)
        event = events.FollowUpDue(self._group.name, thread, cause)
        self._emit(line, event, _CAUSE_RULE if cause != UNKNOWN else "")

    def _died(self, line: Observation) -> None:
        """The exception is in the line, or in the next one. A line says that all threads of an instance have
        died: the threads' own lines have said it, unless they are not there."""
        thread = thread_of(line)
        dead = {instance_of(one) for kind, one in self._said if kind == line.kind}
        if self._is_said(line) or ("rest" in line.fields and thread in dead):
            return
        found = _EXCEPTION.search(line.fields.get("said", ""))
        event = MemberFailed(self._group.name, thread, thread, "an exception" if found is None else found[0])
        self._emit(line, event)

    def _fenced(self, line: Observation) -> None:
        if not self._is_said(line):
            thread = thread_of(line)
            event = RequestRefused(self._group.name, thread, None, None, UNKNOWN, "TaskMigratedException")
            self._emit(line, event)

    def _emit(self, line: Observation, event: TracedEvent, rule: str = "") -> None:
        self._group.emit(line, event, Why([line], rule), Source.MEMBER)

    def _is_said(self, line: Observation) -> bool:
        """Whether a line has just said it of the thread."""
        key = line.kind, thread_of(line)
        last, self._said[key] = self._said.get(key), line.time_us
        return last is not None and line.time_us - last <= _SAME_US

    # -- tasks -----------------------------------------------------------------------------------

    def _begins(self, line: Observation) -> None:
        """A task begins with the state of its first store of which a line says it."""
        thread, task = self._see(line), line.fields["task"]
        if (thread, task) not in self._begun:
            self._begun.add((thread, task))
            cause = line.kind.removeprefix(_FROM)
            event = events.TaskRestoring(
                self._group.name, thread, instance_of(thread), task, None, None, cause
            )
            self._emit(line, event)

    def _runs(self, line: Observation) -> None:
        thread, task = self._see(line), line.fields["task"]
        self._begun.discard((thread, task))
        self._tasks[task] = None
        self._running.setdefault(thread, {})[task] = None
        self._emit(line, events.TaskRunning(self._group.name, thread, instance_of(thread), task, NULL))

    def _stops(self, line: Observation) -> None:
        """A thread that says so has not died, whatever the coordinator thought of it."""
        thread, task = thread_of(line), line.fields["task"]
        self._removed.pop(thread, None)
        self._last[thread] = line
        if self._running.get(thread, {}).pop(task, 0) is None:
            event = events.TaskSuspended(self._group.name, thread, instance_of(thread), task, UNKNOWN)
            self._emit(line, event)

    def _instance_ended(self, line: Observation) -> None:
        self._emit(line, events.InstanceGone(self._group.name, thread_of(line), "closed"))

    def _see(self, line: Observation) -> str:
        """The thread of a line about a task that begins: the process is another one if the last one died."""
        thread = thread_of(line)
        self._settle(thread)
        self._last[thread] = line
        return thread

    def _thread_removed(self, member_id: str, line: Observation, cause: str) -> None:
        thread = _CONSUMER.sub("", self._group.members.name(member_id))
        if self._running.get(thread):
            self._removed[thread] = line, cause

    def _settle(self, thread: str) -> None:
        """A thread that was removed, and did not say that it stopped its tasks, died with its instance."""
        removed = self._removed.pop(thread, None)
        if removed is None:
            return
        process, before = instance_of(thread), self._last[thread]
        deaths = self._deaths.setdefault(thread, Deaths(self._group, f"{thread}-consumer"))
        for task in self._running.pop(thread):
            event = events.TaskSuspended(self._group.name, thread, process, task, "crash")
            deaths.removed(event, before, *removed)
        deaths.removed(events.InstanceGone(self._group.name, process, "crashed"), before, *removed)

    def finish(self) -> None:
        """No more lines come: if the logs of all threads are there, they name all tasks."""
        group = self._group
        for thread in [*self._removed]:
            self._settle(thread)
        for deaths in self._deaths.values():
            deaths.finish()
        if self._tasks and group.view == "members" and group.last is not None:
            event = TasksCreated(group.name, tuple(sorted(self._tasks)))
            why = Why([group.last], _ALL_TASKS, inferred=True)
            group.rows.add(group.first, Source.WORLD, event, why, -5)

    HANDLERS: ClassVar[Handlers] = {
        "follow-up-scheduled": _scheduled,
        "follow-up-due": _due,
        "thread-died": _died,
        "thread-fenced": _fenced,
        f"{_FROM}nothing": _begins,
        f"{_FROM}checkpoint": _begins,
        "task-runs": _runs,
        "task-stops": _stops,
        "instance-ended": _instance_ended,
    }


def thread_of(line: Observation) -> str:
    """The thread's name: its consumer's client id has an ending."""
    return _CONSUMER.sub("", str(line.fields.get("client") or ""))


def instance_of(thread: str) -> str:
    return _THREAD.sub("", thread)
