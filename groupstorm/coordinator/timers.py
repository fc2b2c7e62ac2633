"""Deadlines by key, first in first out among equals."""

from __future__ import annotations

from collections.abc import Callable
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


#: Looked up on the class, a member costs as much as a call before Python 3.12.
SESSION = TimerKind.SESSION


class Timer(NamedTuple):
    """``deadline_ms``: when it was due. ``payload``: what the setter wants to know then."""

    kind: TimerKind
    group: str
    name: str
    deadline_ms: int
    payload: object


_Key = tuple[TimerKind, str, str]


class Timers:
    """Virtual or real milliseconds; setting a timer again is a new set.

    A member's session is set again with every request: timers lie by their deadline, in the order of
    setting, and only deadlines that are new go into a heap. ``on_earlier`` is told a deadline that is set
    and comes before all others, so that nobody has to ask after every call.
    """

    __slots__ = ("_deadlines", "_due", "_on_earlier", "_set")

    def __init__(self, on_earlier: Callable[[int], None] | None = None) -> None:
        self._on_earlier = on_earlier
        #: When each is due.
        self._set: dict[_Key, int] = {}
        #: Deadline -> the timers that are due then, with their payloads.
        self._due: dict[int, dict[_Key, object]] = {}
        self._deadlines: list[int] = []

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: object = None) -> None:
        """(Re)set the timer of this kind; ``name``: the member id, or "" where it is the whole group's."""
        key = (kind, group, name)
        before_ms = self._set.get(key)
        if before_ms is not None:
            del self._due[before_ms][key]
        self._set[key] = deadline_ms
        due = self._due.get(deadline_ms)
        if due is None:
            due = self._due[deadline_ms] = {}
            heappush(self._deadlines, deadline_ms)
            if self._on_earlier is not None and self._deadlines[0] == deadline_ms:
                self._on_earlier(deadline_ms)
        due[key] = payload

    def cancel(self, kind: TimerKind, group: str, name: str = "") -> None:
        """Forget the timer, if it is set."""
        key = (kind, group, name)
        deadline_ms = self._set.pop(key, None)
        if deadline_ms is not None:
            del self._due[deadline_ms][key]

    def next_deadline(self) -> int | None:
        """The earliest deadline; None where nothing is set."""
        deadlines = self._deadlines
        while deadlines:
            deadline_ms = deadlines[0]
            if self._due[deadline_ms]:
                return deadline_ms
            del self._due[heappop(deadlines)]
        return None

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the earliest timer that is due by ``now_ms``."""
        deadline_ms = self.next_deadline()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        due = self._due[deadline_ms]
        key = next(iter(due))
        del self._set[key]
        return Timer(*key, deadline_ms, due.pop(key))

    def deadline_of(self, kind: TimerKind, group: str, name: str = "") -> int | None:
        """When this timer is due; None where it is not set."""
        return self._set.get((kind, group, name))

    def __len__(self) -> int:
        return len(self._set)
