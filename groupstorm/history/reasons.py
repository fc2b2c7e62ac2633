"""Why partitions were un-owned: the time of every gap, divided among what the group waited for meanwhile.

A gap lasts from the end of a partition's last owner to its next owner, as in `docs/figures.md`. The phases
of the group (`groupstorm.history.phases`) divide it, in a consumer group its handovers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupstorm.history.coordinator_view import Handover, Handovers
from groupstorm.history.gaps import ClosedGap, Handler
from groupstorm.history.phases import NEVER, SLOW_US, Phase, Phases, Reason
from groupstorm.history.protocols import NO_TASK_RUN, Migration, MigrationWatch, TaskRun, TaskRunWatch
from groupstorm.history.unknown import figures_from_us
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import Cause, GroupState


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


@dataclass(frozen=True, slots=True)
class Reasons:
    """``us``: un-owned time by reason. ``slowest``: who held a join phase up the longest, and how long.

    ``start_us``: the part of the un-owned time until partitions had their first owner, as the group began.
    """

    us: Mapping[Reason, int] = field(default_factory=dict)
    slowest: tuple[str, int] | None = None
    longest: Gap | None = None
    migration: Migration = field(default_factory=Migration)
    tasks: TaskRun = NO_TASK_RUN
    start_us: int = 0


#: A part of a gap: its reason, the member that the group waited for, and from when until when it may last.
_Part = tuple[Reason, str, int, int]

#: States of a consumer group in which a free partition goes to a member with its next heartbeat.
_HANDS_OVER = ("Assigning", "Reconciling")
#: A consumer group has no session.timeout.ms, and no rounds.
_OF_BROKERS = {Reason.SESSION: Reason.BROKER_SESSION, Reason.SECOND_ROUND: Reason.REVOCATION}
_NEW = "had it, as it was new"
_FIRST = "had it, as the group began"
_ENDINGS = {
    "rebalance": "gave it up to join again",
    "assignment": "was not assigned it any more",
    "subscription": "dropped the topic",
    "close": "closed",
}


class GapReasons:
    """Divides the gaps of a trace with rows of members: an `OwnershipListener` of a `FiguresAccumulator`.

    As the figures do, it counts from ``from_us`` on, or from the scenario's `figures_from` if that is 0: a
    gap that lasts until then is cut there. Time in which the group does not exist is part of no gap.
    """

    def __init__(self, from_us: int = 0) -> None:
        #: Partition -> the ending of its last owner, and until when its callback ran; the present row's.
        self._endings: dict[str, tuple[str, int]] = {}
        self._ending = "", 0
        #: When each process began; how long the callback of the new owner at hand has run.
        self._began_us: dict[str, int] = {}
        self._taking_us = 0
        self._has_members = False
        self._from_us = from_us
        self._phases = Phases(from_us)
        #: Member -> when its last session to end did so.
        self._ended_us: dict[str, int] = {}
        #: Partition -> the first phase since its last owner in which a member got it.
        self._dealt: dict[str, int] = {}
        self._handovers = Handovers()
        self._migration = MigrationWatch()
        self._tasks = TaskRunWatch()
        #: The parts of gaps that end in the present phase, by the first phase of theirs, whether they begin
        #: within it, their ending, whether the old owner is the next one, whether there is one, the phase in
        #: which a member got them, and when the old owner's session ended.
        self._parts: dict[tuple[int, bool, str, bool, bool, int, int], list[_Part]] = {}
        self._phases_known = 0
        self._us: dict[Reason, int] = {}
        self._longest: Gap | None = None
        self._start_us = 0

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {
            world_events.ScenarioStarted: self._started,
            events.GroupStateChanged: self._state_changed,
            events.JoinParked: self._phases.joined,
            events.SyncAnswered: self._sync_answered,
            events.MemberRemoved: self._member_removed,
            events.MemberReplaced: self._member_replaced,
            events.GroupConverted: self._migration.converted,
            events.GroupCreated: self._migration.created,
            events.GroupDeleted: self._migration.deleted,
            member_events.MemberFailed: self._migration.failed,
            events.MemberReconciled: self._handovers.reconciled,
            events.MemberUpdated: self._handovers.updated,
            member_events.MemberStarted: self._began,
            member_events.RejoinRequested: self._phases.rejoin_requested,
            member_events.AssignmentComputed: self._phases.computed,
            member_events.PartitionsAssigned: self._assigned,
            member_events.PartitionsRevoked: self._revoked,
            member_events.PartitionsLost: self._lost,
            member_events.MemberCrashed: self._crashed,
            member_events.MemberClosed: self._closed,
            member_events.MemberPaused: self._phases.stands_still,
            **self._tasks.handlers,
        }

    def reasons(self) -> Reasons:
        """The reasons of the gaps that have closed: of all when the figures were made."""
        found = self._us, self._phases.slowest, self._longest
        return Reasons(*found, self._migration.migration(), self._tasks.run(), self._start_us)

    # -- rows ------------------------------------------------------------------------------------

    def _started(self, _now_us: int, event: world_events.ScenarioStarted) -> None:
        self._from_us = self._phases.from_us = self._from_us or figures_from_us(event) or 0
        self._migration.started(event)
        self._tasks.started(event)

    def _began(self, now_us: int, event: member_events.MemberStarted) -> None:
        self._has_members, self._began_us[event.member] = True, now_us

    def _assigned(self, _now_us: int, event: member_events.PartitionsAssigned) -> None:
        self._has_members, self._taking_us = True, event.duration_us

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        self._migration.state_changed(now_us, event)
        self._phases.state_changed(now_us, event)

    def _sync_answered(self, _now_us: int, event: events.SyncAnswered) -> None:
        self._phases.sync_answered(event)
        for partition in event.partitions or ():
            self._dealt.setdefault(partition, len(self._phases.over))

    def _member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        self._handovers.removed(now_us, event)
        self._phases.member_removed(now_us, event)
        if event.cause == Cause.SESSION_EXPIRED:
            self._ended_us[event.member] = now_us

    def _member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        self._handovers.replaced(event)
        self._phases.member_replaced(now_us, event)

    def _revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> None:
        self._ending = _ENDINGS.get(event.cause, event.cause), now_us + event.duration_us

    def _lost(self, _now_us: int, event: member_events.PartitionsLost) -> None:
        is_closed = event.cause == "close"  # while a round was under way
        self._ending = _ENDINGS["close"] if is_closed else f"was out of the group ({event.cause})", 0

    def _crashed(self, _now_us: int, event: member_events.MemberCrashed) -> None:
        self._ending = "crashed", 0
        self._phases.died(event.member_id)

    def _closed(self, _now_us: int, event: member_events.MemberClosed) -> None:
        if event.cause == "silent":
            self._phases.died(event.member_id)

    # -- gaps (`OwnershipListener`) -----------------------------------------------------------------

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        self._handovers.taken(partition)

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        self._endings[partition] = self._ending
        self._dealt.pop(partition, None)

    def gap_closed(self, gap: ClosedGap) -> None:
        ending, called_us = self._endings.get(gap.partition, ("", 0))
        if gap.old_owner is None:
            ending, called_us = _FIRST if gap.is_first else _NEW, 0
        from_us, to_us = max(gap.from_us, self._from_us), gap.from_us + gap.gap_us
        if to_us <= from_us or not ending or not self._has_members:
            return
        old_owner = gap.old_owner or "nobody"
        parts = self._parts_of(gap, ending, to_us)
        back_us = self._began_us.get(old_owner, 0) if gap.new_owner == old_owner else 0
        back_us, taking_us = back_us * (back_us > gap.since_us), self._taking_us if gap.new_owner else 0
        if back_us or called_us > from_us or taking_us > 0:
            parts = [*_cut(parts, called_us, back_us, max(called_us, to_us - taking_us))]
        sums = self._us
        for reason, _, begin_us, end_us in parts:
            lasted_us = (end_us if end_us < to_us else to_us) - (begin_us if begin_us > from_us else from_us)
            if lasted_us > 0:
                sums[reason] = sums.get(reason, 0) + lasted_us
                if ending == _FIRST and reason is not Reason.LEFT_OUT:
                    self._start_us += lasted_us
        if self._longest is None or to_us - from_us > self._longest.to_us - self._longest.from_us:
            most, who = _most(parts, from_us, to_us)
            self._longest = Gap(gap.partition, from_us, to_us, old_owner, gap.new_owner, ending, most, who)

    def _parts_of(self, gap: ClosedGap, ending: str, to_us: int) -> list[_Part]:
        """The parts of a gap that ends at ``to_us``, before `_cut`."""
        handovers, handover = self._handovers, None
        if handovers.granted:
            handover = handovers.of(gap.partition, gap.since_us, to_us, gap.new_owner, ending == _NEW)
        is_free = gap.new_owner is None and handover is not None and handover.grants[-1][0] == to_us
        since_us = gap.since_us if handover is None else handover.released_us
        is_due = self._phases.state in _HANDS_OVER and to_us - since_us <= SLOW_US
        if handover is None or (is_free and not is_due and self._phases.state != GroupState.STABLE):
            parts = self._phases_of(gap, ending, to_us)
            if handovers.granted and not self._migration.migration().changes:
                parts = [(_OF_BROKERS.get(one[0], one[0]), *one[1:]) for one in parts]
            return parts
        parts = self._handed_over(handover, gap.since_us, ending, gap.new_owner == (gap.old_owner or ""))
        if is_free and self._phases.state == GroupState.STABLE:
            parts[-3:-1] = [(Reason.LEFT_OUT, "", parts[-3][2], parts[-2][3])]
        return parts

    def _handed_over(self, handover: Handover, from_us: int, ending: str, came_back: bool) -> list[_Part]:
        """The parts of a gap in a consumer group: until the old owner has released the partition, until the
        new one's heartbeat has fetched it, until its poll() has taken it; of members that were granted it and
        went before, until they were out."""
        released_us, expired, grants = handover
        if expired:
            waits, fetches = Reason.BROKER_SESSION, Reason.NEXT_HEARTBEAT
        elif came_back and ending != _ENDINGS["assignment"]:
            waits = fetches = Reason.RESTART
        else:
            revokes = ending in (_ENDINGS["assignment"], _ENDINGS["close"], _ENDINGS["subscription"])
            begins = {_NEW: Reason.METADATA, _FIRST: Reason.START}
            waits = Reason.REVOCATION if revokes else begins.get(ending, Reason.BROKER_SESSION)
            fetches = Reason.NEXT_HEARTBEAT
        parts = [(waits, "", from_us, released_us)]
        for granted_us, until_us, expired in grants:
            joined_us = held_us = released_us + self._phases.empty_us(released_us, granted_us)
            is_session = False
            if fetches is Reason.NEXT_HEARTBEAT and granted_us - joined_us > SLOW_US:
                held_us, is_session = self._handovers.held_up(joined_us, granted_us)
            parts += [
                (Reason.START if ending == _FIRST else Reason.EMPTY, "", released_us, joined_us),
                (Reason.BROKER_SESSION if is_session else Reason.REVOCATION, "", joined_us, held_us),
                (fetches, "", held_us, granted_us),
                (Reason.BROKER_SESSION if expired else Reason.NEXT_POLL, "", granted_us, until_us),
            ]
            released_us = until_us
        return parts

    def _phases_of(self, gap: ClosedGap, ending: str, to_us: int) -> list[_Part]:
        """The phases of the group in the gap: mostly those of other partitions that one phase brings."""
        from_us, is_taken, over = gap.since_us, gap.new_owner is not None, self._phases.over
        if len(over) != self._phases_known:
            self._parts, self._phases_known = {}, len(over)
        came_back = gap.new_owner == (gap.old_owner or "")
        now, dealt = self._phases.lasting(None if is_taken else to_us), self._dealt.get(gap.partition, NEVER)
        ended_us = self._ended_us.get(gap.old_owner or "", 0)
        ended_us *= ended_us > from_us  # when the old owner's session ended in the gap; 0: it did not
        first = len(over)
        while first and over[first - 1].to_us > from_us:
            first -= 1
        is_clipped = (over[first] if first < len(over) else now).from_us < from_us
        like = first, is_clipped, ending, came_back, is_taken, dealt, ended_us
        if like not in self._parts:
            phases = [*over[first:], now]
            if is_clipped:  # a leader that is back knows partitions that came after it
                phases[0] = phases[0]._replace(is_skipped=False, is_noticed=False)
            had_round = is_seen = False
            parts = self._parts[like] = []
            for number, phase in enumerate(phases, start=first):
                had_round = had_round or phase.state == GroupState.PREPARING_REBALANCE
                is_seen = is_seen or phase.is_noticed
                is_back = phase.from_us >= ended_us and (came_back or (is_taken and not had_round))
                reason = _reason(phase, ending, is_back, is_taken, had_round, phase is phases[-1])
                is_left_out = had_round and phase.is_dealt and number < dealt
                if is_left_out and phase.state == GroupState.STABLE and reason is not Reason.STATIC_LEADER:
                    reason = Reason.METADATA if ending == _NEW else Reason.LEFT_OUT
                if reason is Reason.METADATA and is_seen and had_round:
                    reason = Reason.LEFT_OUT
                parts.append((reason, phase.who, phase.from_us, phase.to_us))
        return self._parts[like]


def _cut(parts: Iterable[_Part], called_us: int, back_us: int, takes_us: int) -> Iterator[_Part]:
    """The parts, but for the callback of the old owner, until ``called_us``, and that of the new one, from
    ``takes_us`` on. ``back_us``: when the old owner's process is back, if it owns the partition again."""
    yield Reason.CALLBACK, "", 0, called_us
    for reason, who, begin_us, end_us in parts:
        since_us, until_us = max(begin_us, called_us), min(end_us, takes_us)
        if reason is Reason.RESTART and back_us:
            yield Reason.COORDINATOR, "", max(since_us, back_us), until_us
            until_us = min(until_us, back_us)
        yield reason, who, since_us, until_us
    yield Reason.CALLBACK, "", takes_us, NEVER


def _most(parts: Iterable[_Part], from_us: int, to_us: int) -> tuple[Reason, str]:
    """The reason of most of that time, and the last one who was waited for because of it."""
    shares: dict[Reason, int] = {}
    names: dict[Reason, str] = {}
    for reason, who, begin_us, end_us in parts:
        lasted_us = min(end_us, to_us) - max(begin_us, from_us)
        if lasted_us > 0:
            shares[reason] = shares.get(reason, 0) + lasted_us
            names[reason] = who
    most = max(shares, key=lambda reason: shares[reason])
    return most, names[most]


def _reason(
    phase: Phase, ending: str, is_back: bool, is_taken: bool, had_round: bool, is_last: bool
) -> Reason:
    """Why a partition whose last owner ended by ``ending`` had no owner during one phase of its group.

    ``is_back``: the old owner's process comes back to it. ``is_taken``: it has a next owner. ``had_round``: a
    round has begun in the gap.
    """
    if phase.state == GroupState.PREPARING_REBALANCE:
        handed_on = ending == _ENDINGS["assignment"] and phase.reason is Reason.REJOIN
        return Reason.SECOND_ROUND if handed_on else phase.reason
    if phase.state == GroupState.COMPLETING_REBALANCE:
        return Reason.ASSIGN if phase.reason is Reason.NEXT_POLL else phase.reason
    if phase.is_skipped and ending == _NEW:
        return Reason.STATIC_LEADER
    if phase.state == GroupState.STABLE and (phase.reason is Reason.SESSION or (is_last and had_round)):
        return phase.reason
    if phase.state == GroupState.EMPTY and (ending != _FIRST or had_round):
        # before its first row nobody knows whether the group is empty
        return Reason.RESTART if is_taken and not phase.from_us else Reason.EMPTY
    waited_for = {
        _FIRST: Reason.START,
        _NEW: Reason.METADATA,
        _ENDINGS["assignment"]: Reason.SECOND_ROUND,
        _ENDINGS["rebalance"]: Reason.REJOIN,
    }
    return waited_for.get(ending) or (Reason.RESTART if is_back else Reason.SESSION)
