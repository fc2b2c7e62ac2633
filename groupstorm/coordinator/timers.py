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


class Timer(NamedTuple):
    """``deadline_ms``: when it was due. ``payload``: what the setter wants to know then."""

    kind: TimerKind
    group: str
    name: str
    deadline_ms: int
    payload: object


_Key = tuple[TimerKind, str, str]


class _Entry:
    __slots__ = ("deadline_ms", "payload", "queued", "sequence")

    def __init__(self) -> None:
        self.deadline_ms = 0
        self.sequence = 0
        self.payload: object = None
        self.queued: tuple[int, int] = (0, 0)


class Timers:
    """A heap of deadlines (virtual or real milliseconds); setting a key again is a new set."""

    __slots__ = ("_entries", "_heap", "_sequence")

    def __init__(self) -> None:
        self._entries: dict[_Key, _Entry] = {}
        self._heap: list[tuple[int, int, _Key]] = []
        self._sequence = 0

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: object = None) -> None:
        """(Re)set the timer of this kind; ``name``: the member id, or "" where it is the whole group's."""
        key = (kind, group, name)
        self._sequence = sequence = self._sequence + 1
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        elif entry.queued[0] <= deadline_ms:
            entry.deadline_ms, entry.sequence, entry.payload = deadline_ms, sequence, payload
            return
        entry.deadline_ms, entry.sequence, entry.payload = deadline_ms, sequence, payload
        entry.queued = (deadline_ms, sequence)
        heappush(self._heap, (deadline_ms, sequence, key))

    def cancel(self, kind: TimerKind, group: str, name: str = "") -> None:
        """Forget the timer, if it is set."""
        self._entries.pop((kind, group, name), None)

    def next_deadline(self) -> int | None:
        """The earliest deadline; None where nothing is set."""
        heap, entries = self._heap, self._entries
        while heap:
            deadline_ms, sequence, key = heap[0]
            entry = entries.get(key)
            if entry is None or entry.queued != (deadline_ms, sequence):
                heappop(heap)
            elif entry.sequence != sequence:
                heappop(heap)
                entry.queued = (entry.deadline_ms, entry.sequence)
                heappush(heap, (entry.deadline_ms, entry.sequence, key))
            else:
                return deadline_ms
        return None

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the earliest timer that is due by ``now_ms``."""
        deadline_ms = self.next_deadline()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        _, _, key = heappop(self._heap)
        entry = self._entries.pop(key)
        return Timer(*key, deadline_ms, entry.payload)

    def deadline_of(self, kind: TimerKind, group: str, name: str = "") -> int | None:
        """When this timer is due; None where it is not set."""
        entry = self._entries.get((kind, group, name))
        return None if entry is None else entry.deadline_ms

    def __len__(self) -> int:
        return len(self._entries)
