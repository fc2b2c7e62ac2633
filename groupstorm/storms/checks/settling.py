"""The world at the end of a run: whether the group came to rest, and what kept it from that.

A configuration can be such that the group never comes to rest: rounds follow one another because members take
longer than their timeouts allow. That is a finding about the configuration, not a fault of the emulation. The
verdict of the invariant `group_settles` then begins with one of `groupstorm.figures.table.FINDINGS`.

The module stays Python where `invariants` is compiled: mypyc's protocols have no subclasses in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.figures.table import LIVELOCK, NEVER_AT_REST, SETTLED_LATE
from groupstorm.storms.checks.verdicts import (
    HELD,
    MEMBERS_LIVE,
    NO_NEW_ASSIGNMENT,
    NO_OPERATION_FAILED,
    NOBODY_READS,
    OWNED_AT_END,
    REMOVAL_NOT_WRITTEN,
    SETTLES,
    TIMER_OUTLIVED_GROUP,
    UPGRADED_TOO_EARLY,
    WRITE_OUTLIVED_MEMBER,
)
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState


class Owner(Protocol):
    """Says which partitions a process works on."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...


class Consumer(Protocol):
    """A process that can own partitions."""

    name: str
    started: bool

    @property
    def work(self) -> Owner: ...


class FinalState(Protocol):
    """The world when the run is over, as the checks see it."""

    @property
    def consumers(self) -> Mapping[str, Consumer]: ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    @property
    def settled(self) -> bool: ...

    @property
    def unanswered(self) -> Sequence[str]:
        """Names of the processes whose requests are still parked."""

    def reads(self, topic: str) -> bool: ...

    @property
    def left_behind(self) -> Sequence[str]:
        """Names of members of a consumer group whose process is gone, and which no session removes."""


#: The setting that says whether a group that cannot settle fails a run.
IF_NEVER_SETTLED: Final = "if_never_settled"

OBSERVED_US: Final = 3_600_000_000
"""A group that has not settled is observed for so long after the last step."""

MOST_ROUNDS: Final = 500
"""After so many rounds the observation ends: members that join without a pause would take hours of it."""

LEAST_ROUNDS: Final = 3
"""So many rounds after the last step, and none of them for a change, are no coincidence."""

NAMED_MAX: Final = 3

_REMOVED: Final[Mapping[str, str]] = {
    "rebalance-timeout": "did not join a round within the rebalance timeout (max.poll.interval.ms)",
    "left": "left the group because max.poll.interval.ms had passed since its last poll()",
    "session-expired": "sent no heartbeat for session.timeout.ms",
    "sync-timeout": "did not send its SyncGroup within the rebalance timeout (max.poll.interval.ms)",
}

#: Invariant -> the beginnings of the verdicts that Kafka's own defects explain.
_KAFKAS_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    OWNED_AT_END: (NO_NEW_ASSIGNMENT, NOBODY_READS, REMOVAL_NOT_WRITTEN),
    SETTLES: (REMOVAL_NOT_WRITTEN,),
    MEMBERS_LIVE: (REMOVAL_NOT_WRITTEN,),
    NO_OPERATION_FAILED: (TIMER_OUTLIVED_GROUP, WRITE_OUTLIVED_MEMBER, UPGRADED_TOO_EARLY),
}


def kafkas_own(verdicts: Mapping[str, str]) -> str | None:
    """The sentence on what Kafka itself does wrong, without which the run's invariants held; None if it is
    not that."""
    broken = {name: verdict for name, verdict in verdicts.items() if verdict != HELD}
    if not broken or any(
        not verdict.startswith(_KAFKAS_OWN.get(name, ())) for name, verdict in broken.items()
    ):
        return None
    return "; ".join(dict.fromkeys(broken.values()))


def _has_new_targets(event: events.GroupStateChanged) -> bool:
    """Whether the targets of a consumer group have been computed anew: it has none of the other rounds. Those
    of its first member are computed at once."""
    is_first = event.previous_state == "Empty" and event.state == "Stable"
    return event.previous_state == "Assigning" or event.state == "Reconciling" or is_first


class Rounds:
    """The rounds of a group and the members that the coordinator removed, each with its time."""

    def __init__(self) -> None:
        self.completed_us: list[int] = []
        self.removed: list[tuple[int, str]] = []

    def group_changed(self, event: events.Event, now_us: int) -> None:
        if isinstance(event, events.GroupStateChanged):
            if event.state == GroupState.COMPLETING_REBALANCE.value or _has_new_targets(event):
                self.completed_us.append(now_us)
        elif isinstance(event, events.MemberRemoved):
            self.removed.append((now_us, event.cause))

    def since(self, time_us: int) -> int:
        return sum(at_us >= time_us for at_us in self.completed_us)


class SettlingWorld(Protocol):
    """The world, as the observation sees it."""

    @property
    def settled(self) -> bool: ...

    @property
    def committed(self) -> Mapping[TopicPartition, int]:
        """The group's offsets now."""


class Settling:
    """Observes a group from the last step of its scenario on."""

    def __init__(self, world: SettlingWorld, rounds: Rounds) -> None:
        self._world = world
        self._rounds = rounds
        self._since_us = 0
        self._looked_us = 0
        self._committed: Mapping[TopicPartition, int] = {}

    def steps_done(self, now_us: int) -> None:
        """The scenario does nothing more from now on."""
        self._since_us = now_us
        self._look(now_us)

    def _look(self, now_us: int) -> None:
        self._looked_us = now_us
        self._committed = dict(self._world.committed)

    def is_worth_observing(self, now_us: int) -> bool:
        """Whether a group whose time to settle is over may be one that cannot."""
        half_us = (self._since_us + now_us) // 2
        if self._world.settled and not self._rounds.since(half_us):
            return False
        if now_us - self._since_us < OBSERVED_US:
            self._look(now_us)
        return True

    def sentence(self, at_rest: bool, now_us: int) -> str | None:
        """The sentence on what kept the group from settling; None if it cannot be said."""
        window = _duration(now_us - self._since_us)
        if at_rest:
            return f"{SETTLED_LATE}: the group came to rest {window} after the last step (settle_timeout_ms)"
        rounds = self._rounds.since(self._since_us)
        if rounds < LEAST_ROUNDS:
            return None
        stuck = self._stuck()
        kind = LIVELOCK if len(stuck) == len(self._world.committed) else NEVER_AT_REST
        parts = f"{kind}: {rounds} rounds in {window}"
        if stuck:
            parts += f", {_named(stuck, kind)} progressed"
            if self._looked_us > self._since_us:
                parts += f" for {_duration(now_us - self._looked_us)}"
        removed = Counter(cause for at_us, cause in self._rounds.removed if at_us >= self._since_us)
        causes = [(count, cause) for cause, count in removed.items() if cause in _REMOVED]
        if causes:
            count, cause = max(causes)
            parts += f"; {'once' if count == 1 else f'{count} times'} a member {_REMOVED[cause]}"
        return parts

    def _stuck(self) -> list[TopicPartition]:
        """The partitions whose committed offset has not risen since the last look."""
        now = self._world.committed
        return [part for part, offset in now.items() if offset <= self._committed.get(part, -1)]


def _named(stuck: list[TopicPartition], kind: str) -> str:
    if kind == LIVELOCK:
        return "no partition"
    if len(stuck) > NAMED_MAX:
        return f"{len(stuck)} partitions never"
    return f"{' and '.join(map(str, stuck))} never"


def _duration(time_us: int) -> str:
    minutes = time_us // 60_000_000
    if minutes == 60:
        return "an hour"
    return f"{minutes} minutes" if minutes > 1 else f"{time_us // 1_000_000} seconds"
