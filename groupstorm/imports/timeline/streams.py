"""Follow-up rebalances, fenced threads and deaths of Kafka Streams, from the lines of its threads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Why
from groupstorm.imports.templates.streams import DIED, DUE, FENCED, SCHEDULED
from groupstorm.imports.timeline.group import GroupPart, GroupRecord, Handlers
from groupstorm.trace.events import streams as events
from groupstorm.trace.events.imported import RequestRefused
from groupstorm.trace.events.member import MemberFailed
from groupstorm.trace.schema import Source

UNKNOWN: Final = "unknown"
#: What `StreamsPartitionAssignor` says of an immediate follow-up -> the cause in a trace.
_CAUSES: Final[Mapping[str, str]] = {
    "due to version probing": "version-probing",
    "for new tasks to be safely revoked from current owner": "tasks-change-owner",
}
_EXCEPTION: Final = re.compile(r"\w+(?:Exception|Error)\b")
_CONSUMER: Final = re.compile(r"-consumer$")
_CAUSE_RULE: Final = "cause: of the last follow-up that the thread has scheduled"


class StreamsFollowUps(GroupPart):
    """Takes the lines of all threads of one application, in the order of time."""

    def __init__(self, group: GroupRecord) -> None:
        super().__init__(group)
        #: Thread -> why it will ask for a rebalance.
        self._causes: dict[str, str] = {}

    def _scheduled(self, line: Observation) -> None:
        thread, why = thread_of(line), line.fields.get("why")
        cause = "probing" if why is None else _CAUSES.get(why, UNKNOWN)
        self._causes[thread] = cause
        wait_us = None if why is None else 0
        event = events.FollowUpScheduled(self._group.name, thread, wait_us, cause)
        self._group.emit(line, event, Why([line]), Source.MEMBER)

    def _due(self, line: Observation) -> None:
        thread = thread_of(line)
        cause = self._causes.pop(thread, UNKNOWN)
        event = events.FollowUpDue(self._group.name, thread, cause)
        self._group.emit(line, event, Why([line], _CAUSE_RULE if cause != UNKNOWN else ""), Source.MEMBER)

    def _died(self, line: Observation) -> None:
        """The exception is in the line, or in the next one."""
        found = _EXCEPTION.search(line.fields["said"])
        error = "an exception" if found is None else found[0]
        thread = thread_of(line)
        event = MemberFailed(self._group.name, thread, thread, error)
        self._group.emit(line, event, Why([line]), Source.MEMBER)

    def _fenced(self, line: Observation) -> None:
        thread = thread_of(line)
        event = RequestRefused(self._group.name, thread, None, None, UNKNOWN, "TaskMigratedException")
        self._group.emit(line, event, Why([line]), Source.MEMBER)

    HANDLERS: ClassVar[Handlers] = {SCHEDULED: _scheduled, DUE: _due, DIED: _died, FENCED: _fenced}


def thread_of(line: Observation) -> str:
    """The thread's name: its consumer's client id has an ending."""
    return _CONSUMER.sub("", str(line.fields.get("client") or ""))
