"""Deadlines by key, first in first out among equals."""

from __future__ import annotations

from enum import IntEnum
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final


class TimerKind(IntEnum):
    """The event at a deadline."""

    SESSION = 0  # of a member, a new member or a pending id (Kafka: heartbeat-<group>-<member>)
    JOIN = 1  # the round closes, or its initial delay is over (join-<group>)
    SYNC = 2  # members that have not synced go (sync-<group>)
    APPEND = 3  # a delayed append completes or times out
    EXPIRATION = 4  # offsets and empty groups are looked through (expire-group-metadata)
    # of members of consumer groups
    MEMBER_SESSION = 5  # the member is silent (Kafka: session-timeout-<group>-<member>)
    MEMBER_REBALANCE = 6  # it does not give its partitions up (rebalance-timeout-<group>-<member>)
    MEMBER_JOIN = 7  # a classic one does not join again (consumer-join-<group>-<member>)
    MEMBER_SYNC = 8  # a classic one has joined and does not sync (consumer-sync-<group>-<member>)
    STREAMS_DELAY = 9  # the initial delay of a streams group is over (initial-rebalance-timeout-<group>)
    SHARE_INITIALIZATION = 10  # partitions of a share group wait for the persister, which is asked at once
    DESCRIPTIONS = 11  # descriptions of empty streams groups are deleted (streams-topology-cleanup)


#: Looked up on the class, a member costs as much as a call before Python 3.12.
SESSION: Final = TimerKind.SESSION
JOIN: Final = TimerKind.JOIN
SYNC: Final = TimerKind.SYNC
APPEND: Final = TimerKind.APPEND
EXPIRATION: Final = TimerKind.EXPIRATION
MEMBER_SESSION: Final = TimerKind.MEMBER_SESSION
MEMBER_REBALANCE: Final = TimerKind.MEMBER_REBALANCE
MEMBER_JOIN: Final = TimerKind.MEMBER_JOIN
MEMBER_SYNC: Final = TimerKind.MEMBER_SYNC
STREAMS_DELAY: Final = TimerKind.STREAMS_DELAY
SHARE_INITIALIZATION: Final = TimerKind.SHARE_INITIALIZATION
DESCRIPTIONS: Final = TimerKind.DESCRIPTIONS


_Key = tuple[TimerKind, str, str]


class Timer:
    """A deadline and what it is for. It counts while it is the one that is set under its key.

    ``key``: the kind, the group, and the member id or "" if the timer is the whole group's. ``payload``: what
    the setter wants to know at the deadline.
    """

    __slots__ = ("deadline_ms", "key", "payload")

    def __init__(self, key: _Key, deadline_ms: int, payload: Any) -> None:
        self.key = key
        self.deadline_ms = deadline_ms
        self.payload = payload


class Timers:
    """Timers in virtual or real milliseconds. A timer that is set again stands behind its equals.

    Every request sets its member's session timer again, so setting has to be cheap: a timer is appended to
    the list of its deadline, and only a deadline without a list goes into the heap. A timer that was set
    again or cancelled stays in its old list as a leftover. `next_deadline` drops leftovers when their list
    comes first: it skips the timers that are not the one under their key, and drops a list that it has
    passed. So a list lives until its deadline, which bounds the leftovers: one for each time that a timer
    was set within the longest timeout. In exchange no timer is ever looked for in a list or in the heap.
    """

    def __init__(self) -> None:
        self._set: dict[_Key, Timer] = {}
        self._due: dict[int, list[Timer]] = {}
        self._deadlines: list[int] = []
        #: The number of timers of the earliest list that are taken or leftovers.
        self._passed = 0

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: Any = None) -> None:
        """Set the timer of this kind, or set it again; ``name``: the member id, or "" for the whole group."""
        key = (kind, group, name)
        self._set[key] = timer = Timer(key, deadline_ms, payload)
        due = self._due.get(deadline_ms)
        if due is None:
            self._due[deadline_ms] = [timer]
            self._add_deadline(deadline_ms)
        else:
            due.append(timer)

    def _add_deadline(self, deadline_ms: int) -> None:
        """The first timer with this deadline is set."""
        deadlines = self._deadlines
        is_earliest = not deadlines or deadline_ms < deadlines[0]
        if is_earliest and self._passed:
            del self._due[deadlines[0]][: self._passed]
            self._passed = 0
        heappush(deadlines, deadline_ms)

    def cancel(self, kind: TimerKind, group: str, name: str = "") -> None:
        """Forget the timer, if it is set."""
        self._set.pop((kind, group, name), None)

    def next_deadline(self) -> int | None:
        """The earliest deadline; None if no timer is set."""
        deadlines, is_set = self._deadlines, self._set.get
        while deadlines:
            deadline_ms = deadlines[0]
            for timer in islice(self._due[deadline_ms], self._passed, None):
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
        """When this timer is due; None if it is not set."""
        timer = self._set.get((kind, group, name))
        return None if timer is None else timer.deadline_ms

    def groups(self) -> list[str]:
        """The groups that have a timer, a name for each timer."""
        return [group for _, group, _ in self._set]

    def __len__(self) -> int:
        return len(self._set)
