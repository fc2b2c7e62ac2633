"""The rounds of a group, from the changes of its state: of a trace, or of a replay that runs."""

from __future__ import annotations

from typing import Final, NamedTuple

from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.group_states import Cause, GroupState

#: States of a group in which nothing is under way.
_AT_REST: Final = frozenset({GroupState.STABLE.value, GroupState.EMPTY.value})
#: The cause of a round, or of a removal, that no log says.
UNKNOWN: Final = "unknown"
#: Causes that are one event for the owner of the consumers: which of them a trace has depends on the version
#: of a client, or on whether its leader noticed first.
_A_MEMBER_CAME: Final = "a member came"
_ASKED_AGAIN: Final = "a member asked for another round"
_CLASSES: Final = {
    Cause.NEW_MEMBER.value: _A_MEMBER_CAME,
    Cause.PENDING_MEMBER.value: _A_MEMBER_CAME,
    Cause.STATIC_MEMBER.value: _A_MEMBER_CAME,
    Cause.HEARTBEAT.value: _A_MEMBER_CAME,
    Cause.MEMBER_UPDATED.value: _ASKED_AGAIN,
    Cause.LEADER_REJOINED.value: _ASKED_AGAIN,
    Cause.LEFT.value: "a member left",
    Cause.SESSION_EXPIRED.value: "a session expired",
}


class Round(NamedTuple):
    """From the change that ended the rest of a group to its next rest.

    ``cause``: of that change, in words. ``completed``: whether the group became Stable, and not Empty.
    """

    began_us: int
    ended_us: int
    cause: str
    members: int
    completed: bool

    @property
    def duration_us(self) -> int:
        return self.ended_us - self.began_us


def cause_class(cause: str) -> str:
    """A cause in words that are the same for every version of a client."""
    return _CLASSES.get(cause, cause)


class RoundReader:
    """Takes the state changes of one group in their order. ``rounds``: those that have ended."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self._began_us: int | None = None
        self._cause = ""

    def add(self, time_us: int, event: GroupStateChanged) -> None:
        """Take a change of the group's state."""
        if event.state not in _AT_REST:
            if self._began_us is None:
                self._began_us, self._cause = time_us, event.cause
            return
        if self._began_us is None:
            if event.state != GroupState.STABLE or event.previous_state == GroupState.STABLE:
                return
            self._began_us, self._cause = time_us, event.cause
        completed = event.state == GroupState.STABLE
        cause = cause_class(self._cause)
        self.rounds.append(Round(self._began_us, time_us, cause, event.count or 0, completed))
        self._began_us = None

    def began_before(self, time_us: int) -> int | None:
        """When the round began that is under way now, if one is."""
        return self._began_us if self._began_us is not None and self._began_us <= time_us else None
