"""Why partitions were un-owned: the time of every gap, divided among what the group waited for meanwhile.

A gap lasts from the end of a partition's last owner to its next owner, as in `docs/figures.md`. In it the
group is Stable, or waits in a join phase (PreparingRebalance) or for the leader's plan (CompletingRebalance).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from groupstorm.figures.figures_from import figures_from_us
from groupstorm.figures.handovers import Handover, Handovers
from groupstorm.figures.migration import Migration, MigrationWatch, migration_sentences
from groupstorm.figures.task_runs import NO_TASK_RUN, TaskRun, TaskRunWatch
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.wording import listed, seconds

SLOW_US = 10_000_000
"""A join phase that takes longer waits for somebody: heartbeats bring the others within seconds."""


class Reason(StrEnum):
    START = "start"
    SESSION = "session"
    BROKER_SESSION = "broker's session"
    RESTART = "restart"
    METADATA = "metadata"
    STATIC_LEADER = "static leader"
    SLOW = "slow"
    INITIAL_DELAY = "initial delay"
    SECOND_ROUND = "second round"
    REJOIN = "rejoin"
    ASSIGN = "assign"
    CALLBACK = "callback"
    REVOCATION = "revocation"
    NEXT_HEARTBEAT = "next heartbeat"
    NEXT_POLL = "next poll"


WORDS: Mapping[Reason, str] = {
    Reason.START: "the group's start, until its first member joins",
    Reason.SESSION: "silent members whose session has to expire (session.timeout.ms)",
    Reason.BROKER_SESSION: "silent members whose session has to expire (group.consumer.session.timeout.ms)",
    Reason.RESTART: "processes on their way back",
    Reason.METADATA: "members that have not refreshed their metadata yet (metadata.max.age.ms)",
    Reason.STATIC_LEADER: "a static leader that is back and does not assign until the next round (KIP-814)",
    Reason.SLOW: "join phases that wait for a slow member",
    Reason.INITIAL_DELAY: "group.initial.rebalance.delay.ms",
    Reason.SECOND_ROUND: "the second round of cooperative rebalances",
    Reason.REJOIN: "members that learn of a round with their next heartbeat and join again",
    Reason.ASSIGN: "the leader's assignor and its SyncGroup",
    Reason.CALLBACK: "rebalance callbacks and the way to the first fetch",
    Reason.REVOCATION: "old owners that revoke, and tell it with a heartbeat",
    Reason.NEXT_HEARTBEAT: "new owners whose next heartbeat fetches the partition "
    "(group.consumer.heartbeat.interval.ms)",
    Reason.NEXT_POLL: "new owners whose next poll() takes it, and the way to the first fetch",
}


class Gap(NamedTuple):
    """One partition without an owner. ``new_owner`` None: until the end.

    ``reason``: of most of its time; ``who``: the member that the group waited for, "" if that says nothing.
    """

    partition: str
    from_us: int
    to_us: int
    old_owner: str
    new_owner: str | None
    ending: str
    reason: Reason
    who: str

    def sentence(self) -> str:
        lasted = seconds((self.to_us - self.from_us) / 1e6)
        then = f"{self.new_owner} took it" if self.new_owner else "nobody took it until the end"
        if self.new_owner == self.old_owner:
            then = f"{self.new_owner} got it back"
        waited = f"a join phase that waits for {self.who}" if self.who else WORDS[self.reason]
        begins = f"{self.partition}, {lasted} from {self.from_us / 1e6:,.1f} s on"
        return f"{begins}: {self.old_owner} {self.ending}; the time went to {waited}; {then}"


@dataclass(frozen=True, slots=True)
class Reasons:
    """``us``: un-owned time by reason. ``slowest``: who held a join phase up the longest, and how long."""

    us: Mapping[Reason, int] = field(default_factory=dict)
    slowest: tuple[str, int] | None = None
    longest: Gap | None = None
    migration: Migration = field(default_factory=Migration)
    tasks: TaskRun = NO_TASK_RUN


class _Phase(NamedTuple):
    from_us: int
    to_us: int
    state: str
    reason: Reason
    who: str = ""
    #: Whether the group's leader has come back and does not assign partitions that existed before.
    is_skipped: bool = False


_NEW = "had it, as it was new"
_FIRST = "had it, as the group began"
_ENDINGS = {
    "rebalance": "gave it up to join again",
    "assignment": "was not assigned it any more",
    "subscription": "dropped the topic",
    "close": "closed",
}


class GapReasons:
    """A `TraceSink` that divides the gaps of a storm's trace. `reasons` has them when the run is over.

    As the figures do, it counts from `figures_from` on: a gap that lasts until then is cut there.
    """

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}
        self._unowned: set[str] = set()
        self._is_scenario = self._has_begun = False
        self._from_us = 0
        self._gaps: dict[str, tuple[int, str, str]] = {}
        self._phases: list[_Phase] = []
        self._state: str = GroupState.EMPTY
        self._since_us = 0
        self._now_us = 0
        self._last_joiner = ""
        self._expired_us: int | None = None
        self._removed = ""
        self._removed_us: int | None = None
        self._leader: str | None = None
        #: Whether the leader of the present generation has restarted under its group.instance.id.
        self._leader_is_back = False
        self._handovers = Handovers()
        self._migration = MigrationWatch()
        self._tasks = TaskRunWatch()
        self._us: dict[Reason, int] = {}
        self._slowest: tuple[str, int] | None = None
        self._longest: Gap | None = None
        self._handlers: Mapping[type, Callable[[int, Any], None]] = {
            world_events.ScenarioStarted: self._started,
            world_events.PartitionsCreated: self._created,
            world_events.PartitionsDeleted: self._deleted,
            events.GroupStateChanged: self._state_changed,
            events.JoinParked: self._joined,
            events.MemberRemoved: self._member_removed,
            events.MemberReplaced: self._member_replaced,
            events.GroupConverted: self._migration.converted,
            events.GroupCreated: self._migration.created,
            events.GroupDeleted: self._migration.deleted,
            member_events.MemberFailed: self._migration.failed,
            events.MemberReconciled: self._handovers.reconciled,
            member_events.MemberStarted: self._member_started,
            member_events.PartitionsAssigned: self._assigned,
            member_events.PartitionsRevoked: self._revoked,
            member_events.PartitionsLost: self._lost,
            member_events.MemberCrashed: self._crashed,
            **self._tasks.handlers,
        }

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        handlers = self._handlers
        for time_us, _, event in entries:
            handler = handlers.get(type(event))
            if handler is not None:
                handler(time_us, event)
            self._now_us = time_us

    def close(self) -> None:
        """The last row was added."""

    def reasons(self) -> Reasons:
        """Gaps that are open last until now."""
        for partition in list(self._gaps):
            self._gap_over(partition, None, self._now_us)
        return Reasons(self._us, self._slowest, self._longest, self._migration.migration(), self._tasks.run())

    # -- rows ------------------------------------------------------------------------------------

    def _started(self, now_us: int, event: world_events.ScenarioStarted) -> None:
        self._from_us = figures_from_us(event) or 0
        self._is_scenario = True
        self._migration.started(event)
        self._tasks.started(event)
        self._created(now_us, event)

    def _created(
        self, now_us: int, event: world_events.ScenarioStarted | world_events.PartitionsCreated
    ) -> None:
        for partition in event.partitions:
            if partition not in self._owners:
                self._owners[partition] = set()
                self._unowned.add(partition)
                if self._has_begun:
                    self._gaps[partition] = now_us, "nobody", _NEW

    def _deleted(self, now_us: int, event: world_events.PartitionsDeleted) -> None:
        for partition in event.partitions:
            if partition in self._gaps:
                self._gap_over(partition, None, now_us)
            self._owners.pop(partition, None)
            self._unowned.discard(partition)

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        self._migration.state_changed(now_us, event)
        if event.state == GroupState.PREPARING_REBALANCE:
            self._last_joiner = ""
        reason, who = Reason.CALLBACK, ""
        if self._state == GroupState.PREPARING_REBALANCE:
            reason, who = self._join_phase_over(now_us, event.cause)
        elif self._state == GroupState.COMPLETING_REBALANCE:
            reason = Reason.ASSIGN
        elif event.cause == Cause.SESSION_EXPIRED:
            reason = Reason.SESSION
        self._phase_over(now_us, reason, who)
        self._state, self._leader_is_back = event.state, False
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._leader = event.leader

    def _phase_over(self, now_us: int, reason: Reason, who: str) -> None:
        self._phases.append(_Phase(self._since_us, now_us, self._state, reason, who, self._leader_is_back))
        self._since_us = now_us

    def _join_phase_over(self, now_us: int, cause: str) -> tuple[Reason, str]:
        """What the join phase that ends now has waited for: the last member to join, or to be removed."""
        lasted_us = now_us - max(self._since_us, self._from_us)
        if cause == Cause.INITIAL_DELAY:
            return Reason.INITIAL_DELAY, ""
        if self._expired_us == now_us:
            return Reason.SESSION, ""
        if lasted_us <= SLOW_US:
            return Reason.REJOIN, ""
        who = self._removed if self._removed_us == now_us else self._last_joiner
        if self._slowest is None or lasted_us > self._slowest[1]:
            self._slowest = who, lasted_us
        return Reason.SLOW, who

    def _joined(self, _now_us: int, event: events.JoinParked) -> None:
        self._last_joiner = event.member

    def _member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        self._removed, self._removed_us = event.member, now_us
        self._handovers.removed(now_us, event)
        if event.cause == Cause.SESSION_EXPIRED:
            self._expired_us = now_us

    def _member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        """A static member is back. If it leads a Stable group, it is told to skip the assignor."""
        self._handovers.replaced(event)
        if event.previous_member_id != self._leader:
            return
        self._leader = event.member_id
        if self._state == GroupState.STABLE:
            self._phase_over(now_us, Reason.CALLBACK, "")
            self._leader_is_back = True

    def _member_started(self, now_us: int, _event: member_events.MemberStarted) -> None:
        """With the first one partitions have to have owners."""
        if self._is_scenario and not self._has_begun:
            self._has_begun = True
            self._gaps.update(dict.fromkeys(sorted(self._unowned), (now_us, "nobody", _FIRST)))

    def _assigned(self, now_us: int, event: member_events.PartitionsAssigned) -> None:
        for partition in event.partitions:
            owners = self._owners.setdefault(partition, set())
            self._unowned.discard(partition)
            owners.add(event.member)
            if partition in self._gaps:
                self._gap_over(partition, event.member, now_us)
        self._has_begun = self._has_begun or not self._unowned

    def _revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> None:
        self._ended(now_us, event.member, event.partitions, _ENDINGS.get(event.cause, event.cause))

    def _lost(self, now_us: int, event: member_events.PartitionsLost) -> None:
        self._ended(now_us, event.member, event.partitions, f"was out of the group ({event.cause})")

    def _crashed(self, now_us: int, event: member_events.MemberCrashed) -> None:
        self._ended(now_us, event.member, event.partitions, "crashed")

    def _ended(self, now_us: int, member: str, partitions: Sequence[str], ending: str) -> None:
        for partition in partitions:
            owners = self._owners.get(partition)
            if not owners or member not in owners:
                continue
            owners.discard(member)
            if not owners:
                self._unowned.add(partition)
                if self._has_begun:
                    self._gaps[partition] = now_us, member, ending

    # -- gaps ------------------------------------------------------------------------------------

    def _gap_over(self, partition: str, new_owner: str | None, now_us: int) -> None:
        from_us, old_owner, ending = self._gaps.pop(partition)
        from_us = max(from_us, self._from_us)
        if now_us <= from_us:
            return
        shares: dict[Reason, int] = {}
        names: dict[Reason, str] = {}
        came_back = new_owner == old_owner
        handover = self._handovers.of(partition, from_us, new_owner)
        if handover is not None:
            parts = _handed_over(handover, from_us, now_us, ending, came_back)
        else:
            parts = self._divided(from_us, now_us, ending, came_back)
        for reason, who, lasted_us in parts:
            shares[reason] = shares.get(reason, 0) + lasted_us
            names[reason] = who
        for reason, lasted_us in shares.items():
            self._us[reason] = self._us.get(reason, 0) + lasted_us
        if self._longest is None or now_us - from_us > self._longest.to_us - self._longest.from_us:
            most = max(shares, key=lambda reason: shares[reason])
            self._longest = Gap(partition, from_us, now_us, old_owner, new_owner, ending, most, names[most])

    def _divided(
        self, from_us: int, to_us: int, ending: str, came_back: bool
    ) -> Iterable[tuple[Reason, str, int]]:
        """The phases of the group that lie in the gap: reason, member that it waited for, microseconds."""
        now = _Phase(self._since_us, to_us, self._state, Reason.CALLBACK, "", self._leader_is_back)
        phases = [_clipped(now, from_us)]
        for phase in reversed(self._phases):
            if phase.to_us <= from_us:
                break
            phases.append(_clipped(phase, from_us))
        phases.reverse()
        had_round = False
        for number, phase in enumerate(phases):
            had_round = had_round or phase.state == GroupState.PREPARING_REBALANCE
            is_last = number == len(phases) - 1
            if phase.to_us > phase.from_us:
                reason = _reason(phase, ending, came_back, had_round, is_last)
                yield reason, phase.who, phase.to_us - phase.from_us


def _handed_over(
    handover: Handover, from_us: int, to_us: int, ending: str, came_back: bool
) -> Iterable[tuple[Reason, str, int]]:
    """The parts of a gap in a consumer group: until the old owner has released the partition, until the new
    one's heartbeat has fetched it, until its poll() has taken it."""
    released_us, expired, granted_us = handover
    if expired:
        waits, fetches = Reason.BROKER_SESSION, Reason.NEXT_HEARTBEAT
    elif came_back:
        waits = fetches = Reason.RESTART
    else:
        revokes = ending in (_ENDINGS["assignment"], _ENDINGS["close"], _ENDINGS["subscription"])
        begins = {_NEW: Reason.METADATA, _FIRST: Reason.START}
        waits = Reason.REVOCATION if revokes else begins.get(ending, Reason.BROKER_SESSION)
        fetches = Reason.NEXT_HEARTBEAT
    for reason, lasted_us in (
        (waits, released_us - from_us),
        (fetches, granted_us - released_us),
        (Reason.NEXT_POLL, to_us - granted_us),
    ):
        if lasted_us > 0:
            yield reason, "", lasted_us


def _clipped(phase: _Phase, from_us: int) -> _Phase:
    """The part of a phase that lies in a gap. A leader that is back knows partitions that came after it."""
    if phase.from_us >= from_us:
        return phase
    return phase._replace(from_us=from_us, is_skipped=False)


def _reason(phase: _Phase, ending: str, came_back: bool, had_round: bool, is_last: bool) -> Reason:
    """Why a partition whose last owner ended by ``ending`` had no owner during one phase of its group.

    ``came_back``: the old owner is the next one. ``had_round``: a round has begun in the gap.
    """
    if phase.state == GroupState.PREPARING_REBALANCE:
        handed_on = ending == _ENDINGS["assignment"] and phase.reason is Reason.REJOIN
        return Reason.SECOND_ROUND if handed_on else phase.reason
    if phase.state == GroupState.COMPLETING_REBALANCE:
        return Reason.ASSIGN
    if phase.is_skipped and ending == _NEW:
        return Reason.STATIC_LEADER
    if phase.state == GroupState.STABLE and (phase.reason is Reason.SESSION or (is_last and had_round)):
        return phase.reason
    return _reason_at_rest(phase.state, ending, came_back or not had_round)


def _reason_at_rest(state: str, ending: str, came_back: bool) -> Reason:
    """The same while no round was under way, and the partition waited for one or for its owner."""
    if state == GroupState.EMPTY and ending != _FIRST:
        return Reason.RESTART
    waited_for = {
        _FIRST: Reason.START,
        _NEW: Reason.METADATA,
        _ENDINGS["assignment"]: Reason.SECOND_ROUND,
        _ENDINGS["rebalance"]: Reason.REJOIN,
    }
    return waited_for.get(ending) or (Reason.RESTART if came_back else Reason.SESSION)


def reasons_sentences(variants: Mapping[str, Sequence[Reasons]]) -> list[str]:
    """What each variant's un-owned time was spent on, and its longest gap. Several runs (seeds) add up."""
    by_shares: dict[str, list[str]] = {}
    for name, runs in variants.items():
        if any(run.us for run in runs):
            by_shares.setdefault(_shares(runs), []).append(name)
    parts = [f"under {listed(names)} {shares}" for shares, names in by_shares.items()]
    sentences = [f"Where un-owned time went: {'; '.join(parts)}."] if parts else []
    sentences += migration_sentences(
        {name: [run.migration for run in runs] for name, runs in variants.items()}
    )
    gaps = [(name, gap) for name, runs in variants.items() if (gap := longest_gap(runs)) is not None]
    if gaps:
        worst, gap = max(gaps, key=lambda pair: _lasted(pair[1]))
        told = variants[worst][0].tasks.words(gap.sentence())
        sentences.append(f"Longest gap, under {worst}: {told}.")
    return sentences


def longest_gap(runs: Sequence[Reasons]) -> Gap | None:
    """Of several runs."""
    return max((run.longest for run in runs if run.longest is not None), key=_lasted, default=None)


def _lasted(gap: Gap) -> int:
    return gap.to_us - gap.from_us


def _shares(runs: Sequence[Reasons]) -> str:
    """The one or two reasons that take most of the time."""
    sums: dict[Reason, int] = {}
    for run in runs:
        for reason, lasted_us in run.us.items():
            sums[reason] = sums.get(reason, 0) + lasted_us
    total = sum(sums.values())
    ranked = sorted(sums, key=lambda reason: -sums[reason])
    named = [ranked[0], *(reason for reason in ranked[1:2] if sums[reason] * 4 >= total)]
    return listed([f"{100 * sums[reason] // total} % to {_words(reason, runs)}" for reason in named])


def _words(reason: Reason, runs: Sequence[Reasons]) -> str:
    if reason is not Reason.SLOW:
        return runs[0].tasks.words(WORDS[reason])
    held = max((run.slowest for run in runs if run.slowest is not None), key=lambda one: one[1], default=None)
    if held is None:
        return WORDS[reason]
    return f"join phases that wait for a slow member ({held[0]}, {seconds(held[1] / 1e6)} at the longest)"
