"""Deadlines by key, first in first out among equals.

A timer that is set again keeps its entry in the heap until that comes up and then moves to its
new place, so that a member's heartbeat costs no heap operation.
"""

from __future__ import annotations

from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple


class TimerKind(IntEnum):
    """What is due."""

    SESSION = 0  # of a member, a new member or a pending id (Kafka: heartbeat-<group>-<member>)
    JOIN = 1  # the round closes, or its initial delay is over (join-<group>)
    SYNC = 2  # members that have not synced go (sync-<group>)
    APPEND = 3  # a delayed append completes or times out
    EXPIRATION = 4  # offsets and empty groups are looked through (expire-group-metadata)


class Timer(NamedTuple):
    """``deadline_ms``: when it was due. ``payload``: what the setter wants to know then."""

    kind: TimerKind
    group: str
    name: str
    deadline_ms: int
    payload: object


class _Entry:
    """A timer that is set. ``sequence``: the number of its last setting, 0 once it is cancelled;
    ``queued``: the number under which it stands in the heap, ``queued_ms`` its deadline there."""

    __slots__ = ("deadline_ms", "group", "kind", "name", "payload", "queued", "queued_ms", "sequence")

    def __init__(self, kind: TimerKind, group: str, name: str) -> None:
        self.kind = kind
        self.group = group
        self.name = name
        self.deadline_ms = 0
        self.payload: object = None
        self.sequence = 0
        self.queued = 0
        self.queued_ms = 0


class Timers:
    """A heap of deadlines (virtual or real milliseconds); setting a timer again is a new set."""

    __slots__ = ("_entries", "_heap", "_sequence")

    def __init__(self) -> None:
        self._entries: list[dict[tuple[str, str], _Entry]] = [{} for _ in TimerKind]
        self._heap: list[tuple[int, int, _Entry]] = []
        self._sequence = 0

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: object = None) -> None:
        """(Re)set the timer of this kind; ``name``: the member id, or "" where it is the whole group's."""
        self._sequence = sequence = self._sequence + 1
        entries = self._entries[kind]
        entry = entries.get((group, name))
        if entry is None:
            entry = entries[group, name] = _Entry(kind, group, name)
        entry.deadline_ms, entry.sequence, entry.payload = deadline_ms, sequence, payload
        if not entry.queued or deadline_ms < entry.queued_ms:
            self._queue(entry)

    def _queue(self, entry: _Entry) -> None:
        """Into the heap; what stands there of it already no longer counts."""
        entry.queued, entry.queued_ms = entry.sequence, entry.deadline_ms
        heappush(self._heap, (entry.deadline_ms, entry.sequence, entry))

    def cancel(self, kind: TimerKind, group: str, name: str = "") -> None:
        """Forget the timer, if it is set."""
        entry = self._entries[kind].pop((group, name), None)
        if entry is not None:
            entry.sequence = 0

    def next_deadline(self) -> int | None:
        """The earliest deadline; None where nothing is set."""
        heap = self._heap
        while heap:
            deadline_ms, queued, entry = heap[0]
            if entry.sequence == queued:
                return deadline_ms
            heappop(heap)
            if entry.sequence and entry.queued == queued:
                self._queue(entry)
        return None

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the earliest timer that is due by ``now_ms``."""
        deadline_ms = self.next_deadline()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        entry = heappop(self._heap)[2]
        entry.sequence = 0
        del self._entries[entry.kind][entry.group, entry.name]
        return Timer(entry.kind, entry.group, entry.name, deadline_ms, entry.payload)

    def deadline_of(self, kind: TimerKind, group: str, name: str = "") -> int | None:
        """When this timer is due; None where it is not set."""
        entry = self._entries[kind].get((group, name))
        return None if entry is None else entry.deadline_ms

    def __len__(self) -> int:
        return sum(map(len, self._entries))
