"""The rounds of a group: of a classic group from the changes of its state, of a consumer group its epochs.

A replay repeats the time between two rests of a group, however many generations it has, so a round here is
neither a generation nor a rebalance of `groupstorm.history`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from groupstorm.trace.events.coordinator import (
    GroupEpochBumped,
    GroupStateChanged,
    MemberAdded,
    MemberRemoved,
    MemberReplaced,
)
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.events.member import PartitionsAssigned
from groupstorm.trace.rows import TracedEvent

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


#: The cause of an epoch before which no member came or went.
_SUBSCRIPTIONS: Final = "subscriptions or topics changed"


class EpochReader:
    """Takes the events of one group in their order. ``rounds``: those that have ended.

    A round goes from one epoch to the next. It lasts until a member takes partitions for the last time: what
    members give up before they leave belongs to the next epoch. The states of such a group follow from the
    epochs of its members, which a broker logs at DEBUG alone, so they do not count here.
    """

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self._open: Round | None = None
        self._cause = _SUBSCRIPTIONS
        self._members: set[str] = set()

    def add(self, time_us: int, event: TracedEvent) -> None:
        """Take an event of the group; events of other kinds change nothing."""
        if isinstance(event, MemberAdded):
            self._members.add(event.member_id)
            self._cause = cause_class(event.cause)
        elif isinstance(event, MemberReplaced):
            self._members.discard(event.previous_member_id)
            self._members.add(event.member_id)
        elif isinstance(event, MemberRemoved):
            self._members.discard(event.member_id)
            self._cause = cause_class(event.cause)
        elif isinstance(event, GroupEpochBumped):
            self.finish()
            self._open = Round(time_us, time_us, self._cause, len(self._members), completed=True)
            self._cause = _SUBSCRIPTIONS
        elif isinstance(event, PartitionsAssigned) and event.partitions and self._open is not None:
            self._open = self._open._replace(ended_us=time_us)

    def finish(self) -> None:
        """The last epoch ends with the trace."""
        if self._open is not None:
            self.rounds.append(self._open)
            self._open = None
