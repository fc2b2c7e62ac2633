"""The phases of a group, one after the other, each with what the group waited for in it.

A group is Stable, or waits in a join phase (PreparingRebalance) or for its leader's plan
(CompletingRebalance).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import Cause, GroupState

SLOW_US = 10_000_000
"""A join phase that takes longer waits for somebody: heartbeats bring the others within seconds."""
#: A member that has been told of a round polls again within this time, or it is at work.
_POLL_US = 1_000_000
#: The end of the phase that is not over.
NEVER = 2**62
#: `rejoin_requested` with this cause: the leader's metadata have changed (only a leader compares them).
_SEEN = "metadata-changed"


class Reason(StrEnum):
    """The reasons why a partition has no owner; `groupstorm.figures.reasons` has their words."""

    START = "start"
    SESSION = "session"
    BROKER_SESSION = "broker's session"
    RESTART = "restart"
    COORDINATOR = "coordinator"
    EMPTY = "empty"
    METADATA = "metadata"
    LEFT_OUT = "left out"
    STATIC_LEADER = "static leader"
    SLOW = "slow"
    INITIAL_DELAY = "initial delay"
    SECOND_ROUND = "second round"
    REJOIN = "rejoin"
    LEADER_POLL = "leader's poll"
    ASSIGN = "assign"
    CALLBACK = "callback"
    REVOCATION = "revocation"
    NEXT_HEARTBEAT = "next heartbeat"
    NEXT_POLL = "next poll"


class Phase(NamedTuple):
    """A time in which the group was in one state, and the reason that holds for most free partitions."""

    from_us: int
    to_us: int
    state: str
    reason: Reason
    #: The member that a join phase waited for.
    who: str = ""
    #: Whether the group's leader has come back and does not assign partitions that existed before.
    is_skipped: bool = False
    #: Whether it began as the leader saw other partitions than before.
    is_noticed: bool = False
    #: Whether the trace has the assignments of all members in its generation.
    is_dealt: bool = False


class Phases:
    """Takes the rows that begin and end phases.

    ``from_us``: a join phase counts from then on. ``over``: the phases that are over. ``slowest``: who held a
    join phase up the longest, and how long.
    """

    def __init__(self, from_us: int) -> None:
        self.from_us = from_us
        self.over: list[Phase] = []
        #: The phases, from when until when, in which the group had no member.
        self._empty: list[tuple[int, int]] = []
        self.state: str = GroupState.EMPTY
        self.slowest: tuple[str, int] | None = None
        self._since_us = 0
        self._last_joiner = ""
        #: When the last one joined; how long it and those just before it stood still; until when each does.
        self._joined_us = self._held_us = 0
        self._still_until_us: dict[str, int] = {}
        #: When each member, and the last of those that have joined, was told of the round.
        self._told_us: dict[str, int] = {}
        self._all_told_us = 0
        #: When the leader ran its assignor last, and for how long.
        self._plan = 0, 0
        self._removed = ""
        self._removed_us: int | None = None
        self._expired_us: int | None = None
        #: Its member id; empty once its session has ended.
        self._leader: str | None = None
        #: The member ids of processes that have died, as long as they are in the group.
        self._dead: set[str] = set()
        #: Whether the leader of the present generation has restarted under its group.instance.id.
        self._leader_is_back = False
        #: Whether the leader has seen other partitions since the last round.
        self._has_noticed = False
        #: The number of members in the present generation, and those whose assignment is known.
        self._members = 0
        self._answered: set[str] = set()

    # -- rows ------------------------------------------------------------------------------------

    def computed(self, now_us: int, event: member_events.AssignmentComputed) -> None:
        self._plan = now_us, event.duration_us

    def state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        if event.state == GroupState.PREPARING_REBALANCE:
            self._last_joiner = ""
            self._joined_us, self._held_us, self._all_told_us = now_us, 0, now_us
        reason, who = Reason.NEXT_POLL, ""
        if self.state == GroupState.PREPARING_REBALANCE:
            reason, who = self._join_phase(now_us, event.cause)
        elif self.state == GroupState.COMPLETING_REBALANCE:
            reason = Reason.SESSION if self._is_leader_dead else Reason.ASSIGN
            computed_us, duration_us = self._plan  # as the assignor begins, or has ended
            began_us = min(computed_us, now_us - duration_us)
            if duration_us >= 0 and not self._is_leader_dead and began_us > self._since_us:
                self._end(began_us, Reason.LEADER_POLL, "")
        elif event.cause == Cause.SESSION_EXPIRED:
            reason = Reason.SESSION
        self._end(now_us, reason, who)
        self.state, self._leader_is_back, self._has_noticed = event.state, False, False
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._leader = event.leader
            self._members, self._answered = event.count or 0, set()

    def sync_answered(self, event: events.SyncAnswered) -> None:
        if event.partitions is not None and not event.error:
            self._answered.add(event.member_id)

    def rejoin_requested(self, now_us: int, event: member_events.RejoinRequested) -> None:
        """A member knows that it has to join; perhaps, as it leads a Stable group, since it has seen all
        partitions that there are. (One that is back will not assign them.)"""
        self._told_us[event.member] = now_us
        if event.cause != _SEEN or self.state != GroupState.STABLE or self._leader_is_back:
            return
        self._end(now_us, Reason.NEXT_POLL, "")
        self._has_noticed = True

    def joined(self, now_us: int, event: events.JoinParked) -> None:
        still_us = self._still_until_us.get(event.member, 0) - self._joined_us
        self._held_us = self._held_us + still_us if still_us > 0 else 0
        self._joined_us, self._last_joiner = now_us, event.member
        self._all_told_us = max(self._all_told_us, self._told_us.pop(event.member, now_us))

    def stands_still(self, now_us: int, event: member_events.MemberPaused) -> None:
        self._still_until_us[event.member] = now_us + event.duration_us

    def member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        self._removed, self._removed_us = event.member, now_us
        self._dead.discard(event.member_id)
        if event.cause == Cause.SESSION_EXPIRED:
            self._expired_us = now_us
            if event.member_id == self._leader:
                self._leader = ""

    def member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        """A static member is back. If it leads a Stable group, it is told to skip the assignor."""
        self._dead.discard(event.previous_member_id)
        if event.previous_member_id != self._leader:
            return
        self._leader = event.member_id
        if self.state == GroupState.STABLE:
            self._end(now_us, Reason.NEXT_POLL, "")
            self._leader_is_back = True

    def died(self, member_id: str) -> None:
        """A process has ended without a word to the coordinator."""
        self._dead.add(member_id)

    # -- phases ----------------------------------------------------------------------------------

    def lasting(self, end_us: int | None) -> Phase:
        """The phase that lasts; of a partition that nobody has taken by ``end_us`` it may be a round."""
        reason, who = Reason.NEXT_POLL, ""
        if end_us is not None and self.state == GroupState.PREPARING_REBALANCE:
            begins = bool(self.over) and self.over[-1].state == GroupState.EMPTY
            reason, who = self._join_phase(end_us, Cause.INITIAL_DELAY if begins else "", is_open=True)
        elif self.state == GroupState.COMPLETING_REBALANCE and self._is_leader_dead:
            reason = Reason.SESSION
        return self._phase(NEVER, reason, who)

    def empty_us(self, from_us: int, to_us: int) -> int:
        """The time between two instants in which the group had no member."""
        spans = ((max(since_us, from_us), min(until_us, to_us)) for since_us, until_us in self._empty)
        return sum(max(0, until_us - since_us) for since_us, until_us in spans)

    @property
    def _is_leader_dead(self) -> bool:
        return self._leader == "" or self._leader in self._dead

    def _end(self, now_us: int, reason: Reason, who: str) -> None:
        self.over.append(self._phase(now_us, reason, who))
        if self.state == GroupState.EMPTY:
            self._empty.append((self._since_us, now_us))
        self._since_us = now_us

    def _phase(self, to_us: int, reason: Reason, who: str) -> Phase:
        flags = self._leader_is_back, self._has_noticed, 0 < self._members <= len(self._answered)
        return Phase(self._since_us, to_us, self.state, reason, who, *flags)

    def _join_phase(self, now_us: int, cause: str, *, is_open: bool = False) -> tuple[Reason, str]:
        """The reason for a join phase that ends now, or is open at the end, and the member that was slow."""
        lasted_us = now_us - max(self._since_us, self.from_us)
        if cause == Cause.INITIAL_DELAY:
            return Reason.INITIAL_DELAY, ""
        if self._expired_us == now_us or (is_open and self._dead):
            return Reason.SESSION, ""
        works_us = now_us - max(self._all_told_us, self.from_us)  # on a batch, or in a callback
        is_at_work = works_us > _POLL_US and self._joined_us == now_us
        if lasted_us <= SLOW_US and 2 * max(self._held_us, works_us * is_at_work) <= max(0, lasted_us):
            return Reason.REJOIN, ""
        who = "one that has not joined" if is_open else self._last_joiner
        who = self._removed if self._removed_us == now_us else who
        if self.slowest is None or lasted_us > self.slowest[1]:
            self.slowest = who, lasted_us
        return Reason.SLOW, who
