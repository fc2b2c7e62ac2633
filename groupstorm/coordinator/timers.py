"""Deadlines by key, first in first out among equals."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final


class TimerKind(IntEnum):
    """What is due."""

    SESSION = 0  # of a member, a new member or a pending id (Kafka: heartbeat-<group>-<member>)
    JOIN = 1  # the round closes, or its initial delay is over (join-<group>)
    SYNC = 2  # members that have not synced go (sync-<group>)
    APPEND = 3  # a delayed append completes or times out
    EXPIRATION = 4  # offsets and empty groups are looked through (expire-group-metadata)


#: Looked up on the class, a member costs as much as a call before Python 3.12.
SESSION: Final = TimerKind.SESSION


_Key = tuple[TimerKind, str, str]


class Timer:
    """What is due when; it counts while it is the one that is set under its key.

    ``key``: its kind, its group, and the member id or "" where it is the whole group's. ``payload``: what
    the setter wants to know then.
    """

    __slots__ = ("deadline_ms", "key", "payload")

    def __init__(self, key: _Key, deadline_ms: int, payload: object) -> None:
        self.key = key
        self.deadline_ms = deadline_ms
        self.payload = payload


class Timers:
    """Virtual or real milliseconds; setting a timer again is a new set.

    A member's session is set again with every request: timers lie by their deadline, in the order of
    setting, and only deadlines that are new go into a heap. One that was set again or cancelled stays
    where it lay, until it comes first there. ``on_earlier`` is told a deadline that is set and comes before
    all others, so that nobody has to ask after every call.
    """

    __slots__ = ("_deadlines", "_due", "_on_earlier", "_passed", "_set")

    def __init__(self, on_earlier: Callable[[int], None] | None = None) -> None:
        self._on_earlier = on_earlier
        self._set: dict[_Key, Timer] = {}
        self._due: dict[int, list[Timer]] = {}
        self._deadlines: list[int] = []
        #: How many of those with the earliest deadline are taken, or are not set any more.
        self._passed = 0

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: object = None) -> None:
        """(Re)set the timer of this kind; ``name``: the member id, or "" where it is the whole group's."""
        key = (kind, group, name)
        self._set[key] = timer = Timer(key, deadline_ms, payload)
        due = self._due.get(deadline_ms)
        if due is None:
            self._due[deadline_ms] = [timer]
            self._begin(deadline_ms)
        else:
            due.append(timer)

    def _begin(self, deadline_ms: int) -> None:
        """Nothing was due then so far."""
        deadlines = self._deadlines
        is_earliest = not deadlines or deadline_ms < deadlines[0]
        if is_earliest and self._passed:
            del self._due[deadlines[0]][: self._passed]
            self._passed = 0
        heappush(deadlines, deadline_ms)
        if is_earliest and self._on_earlier is not None:
            self._on_earlier(deadline_ms)

    def cancel(self, kind: TimerKind, group: str, name: str = "") -> None:
        """Forget the timer, if it is set."""
        self._set.pop((kind, group, name), None)

    def next_deadline(self) -> int | None:
        """The earliest deadline; None where nothing is set."""
        deadlines, is_set = self._deadlines, self._set.get
        while deadlines:
            deadline_ms = deadlines[0]
            due = self._due[deadline_ms]
            while self._passed < len(due):
                timer = due[self._passed]
                if is_set(timer.key) is timer:
                    return deadline_ms
                self._passed += 1
            self._passed = 0
            del self._due[heappop(deadlines)]
        return None

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the earliest timer that is due by ``now_ms``."""
        deadline_ms = self.next_deadline()
        if deadline_ms is None or deadline_ms > now_ms:
            return None
        timer = self._due[deadline_ms][self._passed]
        self._passed += 1
        del self._set[timer.key]
        return timer

    def deadline_of(self, kind: TimerKind, group: str, name: str = "") -> int | None:
        """When this timer is due; None where it is not set."""
        timer = self._set.get((kind, group, name))
        return None if timer is None else timer.deadline_ms

    def __len__(self) -> int:
        return len(self._set)
