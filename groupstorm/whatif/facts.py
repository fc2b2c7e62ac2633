"""The facts of a trace about one group: what each member was seen doing, the rounds, topics and settings.

Rounds are those of a classic group from the changes of its state, of a consumer group its epochs. A replay
repeats the time between two rests of a group, however many generations it has, so a round here is neither a
generation nor a rebalance of `groupstorm.history`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.storms.scenario.setting_names import STREAMS_PROTOCOL
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


#: The cause of an epoch before which no member came or went.
_SUBSCRIPTIONS: Final = "subscriptions or topics changed"


class RoundReader:
    """Takes the events of one group in their order; events of other kinds change nothing.

    A round of a consumer group goes from one epoch to the next. It lasts until a member takes partitions for
    the last time: what members give up before they leave belongs to the next epoch. The states of such a
    group follow from the epochs of its members, which a broker logs at DEBUG alone, so they do not count.

    ``began_us``: when the group left its rest; None if it is at rest. ``first_join_phase_us``: when the first
    round began, and its join phase ended. ``assigning_us``: from the end of each join phase to the
    assignments.
    """

    def __init__(self) -> None:
        self.began_us: int | None = None
        self.first_state: GroupStateChanged | None = None
        self.first_join_phase_us: tuple[int, int] | None = None
        self.assigning_us: list[int] = []
        self._by_state: list[Round] = []
        self._joined_us: int | None = None
        self._cause = ""
        #: The last one is open.
        self._epochs: list[Round] = []
        self._epoch_cause = _SUBSCRIPTIONS
        self._members: set[str] = set()

    @property
    def has_epochs(self) -> bool:
        """Whether it is a consumer group (KIP-848)."""
        return bool(self._epochs)

    @property
    def rounds(self) -> Sequence[Round]:
        """The rounds of a classic group that have ended; all epochs of a consumer group."""
        return self._epochs or self._by_state

    def add(self, time_us: int, event: TracedEvent) -> None:
        """Take an event of the group."""
        if isinstance(event, GroupStateChanged):
            self._state_changed(time_us, event)
        elif isinstance(event, MemberAdded):
            self._members.add(event.member_id)
            self._epoch_cause = cause_class(event.cause)
        elif isinstance(event, MemberReplaced):
            self._members.discard(event.previous_member_id)
            self._members.add(event.member_id)
        elif isinstance(event, MemberRemoved):
            self._members.discard(event.member_id)
            self._epoch_cause = cause_class(event.cause)
        elif isinstance(event, GroupEpochBumped):
            bumped = Round(time_us, time_us, self._epoch_cause, len(self._members), completed=True)
            self._epochs.append(bumped)
            self._epoch_cause = _SUBSCRIPTIONS
        elif isinstance(event, PartitionsAssigned) and event.partitions and self._epochs:
            self._epochs[-1] = self._epochs[-1]._replace(ended_us=time_us)

    def _state_changed(self, time_us: int, event: GroupStateChanged) -> None:
        self.first_state = self.first_state or event
        completed, is_at_rest = event.state == GroupState.STABLE, event.state in _AT_REST
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._joined_us = time_us
            if self.began_us is not None and self.first_join_phase_us is None:
                self.first_join_phase_us = self.began_us, time_us
        begins = not is_at_rest or (completed and event.previous_state != GroupState.STABLE)
        if begins and self.began_us is None:
            self.began_us, self._cause = time_us, event.cause
        if not is_at_rest or self.began_us is None:
            return
        if completed and self._joined_us is not None:
            self.assigning_us.append(time_us - self._joined_us)
        cause = cause_class(self._cause)
        self._by_state.append(Round(self.began_us, time_us, cause, event.count or 0, completed))
        self.began_us = self._joined_us = None


class Sign(NamedTuple):
    """A row about one process. ``kind``: one of those below. ``detail``: its cause, if it has one.

    ``for_us``: how long it lasts, if the row says so. ``place``: the row, or the lines of the logs behind it.
    ``round_us``: when the round began that was under way.
    """

    time_us: int
    kind: str
    detail: str
    place: str
    for_us: int = 0
    round_us: int | None = None
    member_id: str = ""


#: The kinds of signs; REVOKED: the member has given up the last of its partitions.
STARTED, JOINED, REPLACED, PARKED, SYNCED = "started", "joined", "replaced", "parked", "synced"
CLOSING, REVOKED, CLOSED, REMOVED, CRASHED = "closing", "revoked", "closed", "removed", "crashed"
FAILED, LOST, REJOIN, PAUSED = "failed", "lost", "rejoin", "paused"
#: The detail of a `JOINED` of which only the round is known: its time is when that round began.
IN_ROUND: Final = "in-round"
#: The name under which threads of the classic protocol join.
_THREADS: Final = "stream"


Offsets = tuple[tuple[int, int], tuple[int, int]]


@dataclass
class Reading:
    """The facts of a trace about one group. Times are microseconds since the trace began."""

    group: str
    path: Path
    signs: dict[str, list[Sign]] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    #: The topics that each member subscribes to.
    subscriptions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Topic -> its partitions, as far as any row names them; and topics that grew, with the time.
    topics: dict[str, int] = field(default_factory=dict)
    grown: list[tuple[int, str, int, str]] = field(default_factory=list)
    #: The former counts of topics that grew.
    first_counts: dict[str, int] = field(default_factory=dict)
    rounds: RoundReader = field(default_factory=RoundReader)
    #: The ends of logs, and what the group committed, of each partition: (when, offset) first and last.
    log_ends: dict[str, Offsets] = field(default_factory=dict)
    commits: dict[str, Offsets] = field(default_factory=dict)
    #: The assignors that rounds chose, each with the row that says so first.
    assignors: dict[str, str] = field(default_factory=dict)
    #: The settings that the scenario of a storm had, and what client logs say of each member.
    scenario: Mapping[str, Any] = field(default_factory=dict)
    configured: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Settings that the log of the broker has: each with its value, and the line.
    broker_configured: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: From when on figures count: of a storm as it says, of another trace from the first complete assignment
    #: on, before which nobody knows who could consume.
    figures_from_us: int = 0
    #: From whose rows ownership follows in an imported trace; "" in a trace that was not imported.
    imported_view: str = ""
    #: Whether the trace has rows of the members themselves.
    has_member_rows: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    #: Whether a row is one of threads of Kafka Streams.
    has_thread_rows: bool = False
    #: Events that no scenario can repeat, in sentences.
    problems: list[str] = field(default_factory=list)
    #: When members joined the first round of the group.
    first_joins_us: list[int] = field(default_factory=list)
    #: The times from the beginning of a round until each member said that it knew of it.
    learned_us: list[int] = field(default_factory=list)
    ended_us: int = 0
    figures: Figures | None = None

    @property
    def began_empty(self) -> bool:
        """Whether the trace has the first round of the group."""
        first = self.rounds.first_state
        return first is None or first.previous_state == GroupState.EMPTY

    @property
    def is_streams(self) -> bool:
        """Whether the members are threads of a Kafka Streams application, of either protocol."""
        protocols = {one.get("group.protocol") for one in self.configured.values()}
        return self.has_thread_rows or STREAMS_PROTOCOL in protocols or _THREADS in self.assignors

    @property
    def is_storm(self) -> bool:
        """Whether the trace is that of a storm, whose first row has its scenario."""
        return bool(self.scenario)
