"""The trace of a run with real clients, from what was observed of them. Pure: observations in, rows out.

Reports of several processes arrive late and in any order, and a rate is known only when the next position is.
So the rows are made when the run is over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from groupstorm.clients.error_tables import RejoinCause
from groupstorm.storms.live.real_clients.observations import (
    Assigned,
    Closed,
    Committed,
    Crashed,
    EpochReached,
    Failed,
    Fenced,
    Joined,
    LeftUnasked,
    Observation,
    OfMember,
    Paused,
    Progressed,
    RebalanceSeen,
    Released,
    Resumed,
    Row,
    Started,
    Synced,
    Written,
)
from groupstorm.storms.live.real_clients.stints import Stints
from groupstorm.storms.records.logs import RECORD
from groupstorm.trace.events import member as events
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class _Member:
    """The state of a member at a time of the run, as far as it is known."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.cooperative = False
        #: Whether the broker assigns its partitions, and the error with which it has removed the member.
        self.is_of_consumer_group = False
        self.fenced = ""
        self.owned: set[str] = set()
        self.rejoining = False
        #: It has left because max.poll.interval.ms had passed.
        self.left = False


class Assembly:
    """Makes the rows of one run."""

    def __init__(self, group: str, topics: tuple[str, ...], observations: Iterable[Observation]) -> None:
        self._group = group
        self._topics = topics
        seen = sorted(observations, key=lambda one: one.time_us)
        self._observations = sorted([*seen, *_unreported_assignments(seen)], key=lambda one: one.time_us)
        stints = Stints(self._observations)
        self._paces = stints.paces()
        self._samples: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for stint in stints.all:
            self._samples[stint.member, stint.partition] += stint.samples
        self._rates = _log_rates(group, self._observations)
        self._members: dict[str, _Member] = defaultdict(_Member)
        self._committed: dict[str, int] = {}

    def rows(self) -> Iterator[tuple[int, Source, TracedEvent]]:
        """All rows, in the order of time."""
        for seen in self._observations:
            if isinstance(seen, Row):
                yield seen
                continue
            source = Source.WORLD if isinstance(seen, Written) else Source.MEMBER
            for event in self._events(seen):
                yield seen.time_us, source, event

    def _events(self, seen: Observation) -> Iterator[TracedEvent]:
        if isinstance(seen, Written):
            yield from self._rates.get(seen.time_us, ())
        elif isinstance(seen, Committed):
            self._committed.update(seen.positions)
        elif not isinstance(seen, Row):
            member = self._members[seen.member]
            yield from self._of_member(seen, member)
            if isinstance(seen, Assigned | Progressed | Resumed):
                yield from self._pace(seen.time_us, seen.member, member)

    def _of_member(self, seen: OfMember, member: _Member) -> Iterator[TracedEvent]:
        if isinstance(seen, Started):
            member.member_id, member.generation = "", -1
            yield events.MemberStarted(self._group, seen.member, seen.instance, self._topics)
        elif isinstance(seen, Joined):
            member.member_id, member.generation = seen.member_id, seen.generation
            member.cooperative = "cooperative" in seen.protocol
        elif isinstance(seen, EpochReached):
            member.member_id, member.generation = seen.member_id, seen.epoch
            member.cooperative = member.is_of_consumer_group = True
            member.rejoining = member.left = False
            member.fenced = ""
        elif isinstance(seen, Fenced):
            member.fenced = seen.error
        elif isinstance(seen, Synced):
            member.rejoining = member.left = False
        elif isinstance(seen, RebalanceSeen | LeftUnasked):
            away = isinstance(seen, LeftUnasked)
            member.left = member.left or away
            cause = RejoinCause.POLL_TIMEOUT if away else RejoinCause.GROUP_REBALANCING
            yield from self._rejoin(seen.member, cause)
        elif isinstance(seen, Assigned):
            yield self._assigned(seen, member)
        elif isinstance(seen, Released):
            yield from self._released(seen, member)
        elif isinstance(seen, Paused | Resumed):
            yield self._paused_or_resumed(seen, member)
        else:
            yield from self._gone(seen, member)

    # -- parts -----------------------------------------------------------------------------------

    def _assigned(self, seen: Assigned, member: _Member) -> TracedEvent:
        member.owned.update(seen.partitions)
        positions = self._positions(seen.time_us, seen.member, seen.partitions)
        about = (self._group, seen.member, member.member_id, member.generation)
        return events.PartitionsAssigned(*about, seen.partitions, positions, seen.duration_us)

    def _released(self, seen: Released, member: _Member) -> Iterator[TracedEvent]:
        partitions = tuple(one for one in seen.partitions if one in member.owned)
        if not partitions:
            return
        positions = self._positions(seen.time_us, seen.member, partitions)
        committed = tuple(self._committed.get(one, -1) for one in partitions)
        self._drop(seen.member, partitions)
        about = (self._group, seen.member, member.member_id, member.generation, partitions, positions)
        if seen.lost:
            why = RejoinCause.POLL_TIMEOUT if member.left else RejoinCause.GROUP_REBALANCING
            yield events.PartitionsLost(*about, committed, seen.duration_us, member.fenced or why.value)
            return
        cause = "close" if seen.closing else "assignment" if member.cooperative else "rebalance"
        yield events.PartitionsRevoked(*about, committed, seen.duration_us, cause)
        if cause == "assignment" and not member.is_of_consumer_group:
            yield from self._rejoin(seen.member, RejoinCause.REVOKED_PARTITIONS)

    def _paused_or_resumed(self, seen: Paused | Resumed, member: _Member) -> TracedEvent:
        names, positions = self._owned_at(seen.time_us, seen.member)
        about = (self._group, seen.member, member.member_id, names, positions)
        if isinstance(seen, Paused):
            return events.MemberPaused(*about, seen.duration_us, seen.cause)
        return events.MemberResumed(*about)

    def _gone(self, seen: OfMember, member: _Member) -> Iterator[TracedEvent]:
        if isinstance(seen, Crashed):
            names, positions = self._owned_at(seen.time_us, seen.member)
            committed = tuple(self._committed.get(one, -1) for one in names)
            about = (self._group, seen.member, member.member_id, member.generation)
            self._drop(seen.member, names)
            yield events.MemberCrashed(*about, names, positions, committed)
        elif isinstance(seen, Closed):
            yield from self._given_up(seen.time_us, seen.member, member)
            cause = "left" if seen.left else "silent"
            yield events.MemberClosed(self._group, seen.member, member.member_id, cause)
        elif isinstance(seen, Failed):
            yield from self._given_up(seen.time_us, seen.member, member)
            yield events.MemberFailed(self._group, seen.member, member.member_id, seen.error)

    def _given_up(self, time_us: int, name: str, member: _Member) -> Iterator[TracedEvent]:
        """A library that ends a consumer without its callback: what it owned is given up now."""
        names = tuple(sorted(member.owned))
        yield from self._released(Released(time_us, name, names, {}, {}, 0, lost=False, closing=True), member)

    def _rejoin(self, name: str, cause: RejoinCause) -> Iterator[TracedEvent]:
        member = self._members[name]
        if not member.rejoining:
            member.rejoining = True
            yield events.RejoinRequested(self._group, name, member.member_id, member.generation, cause.value)

    def _pace(self, time_us: int, name: str, member: _Member) -> Iterator[TracedEvent]:
        paces = [one for one in self._paces.pop((time_us, name), ()) if one.partition in member.owned]
        if paces:
            paces.sort()
            partitions, positions, rates = zip(*paces, strict=True)
            yield events.ProcessingRatesChanged(
                self._group, name, member.member_id, partitions, positions, rates
            )

    def _drop(self, name: str, partitions: Sequence[str]) -> None:
        self._members[name].owned.difference_update(partitions)

    def _owned_at(self, time_us: int, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        names = tuple(sorted(self._members[name].owned))
        return names, self._positions(time_us, name, names)

    def _positions(self, time_us: int, name: str, partitions: Sequence[str]) -> tuple[int, ...]:
        """The positions of the samples at this time: a stint has one whenever it begins, pauses or ends."""
        found = []
        for partition in partitions:
            samples = self._samples[name, partition]
            found.append(samples[bisect_right(samples, (time_us, _FAR)) - 1][1])
        return tuple(found)


#: Behind every position.
_FAR = 2**63


def _unreported_assignments(seen: Sequence[Observation]) -> Iterator[Assigned]:
    """An assignment that adds nothing: some libraries do not call back for it, and rows have one each time.

    It takes place when the assignment arrives, or when the partitions that it takes away were given up.
    """
    waiting: dict[str, int] = {}
    for one in seen:
        if isinstance(one, Synced):
            if one.member in waiting:
                yield Assigned(waiting[one.member], one.member, (), 0)
            waiting[one.member] = one.time_us
        elif isinstance(one, Assigned):
            waiting.pop(one.member, None)
        elif isinstance(one, Released) and one.member in waiting:
            waiting[one.member] = one.time_us
        elif isinstance(one, Crashed | Closed | Failed):
            waiting.pop(one.member, None)
    for member, time_us in waiting.items():
        yield Assigned(time_us, member, (), 0)


def _log_rates(group: str, seen: Sequence[Observation]) -> Mapping[int, list[TracedEvent]]:
    """The rows of the growing logs: between two reports a log grows evenly."""
    found: dict[int, list[TracedEvent]] = {}
    written = [one for one in seen if isinstance(one, Written)]
    for one, following in pairwise(written):
        names = sorted(one.ends)
        passed_us = max(1, following.time_us - one.time_us)
        rates = tuple((following.ends[tp] - one.ends[tp]) * RECORD // passed_us for tp in names)
        if names:
            positions = tuple(one.ends[tp] for tp in names)
            found[one.time_us] = [RecordRatesChanged(group, tuple(names), positions, rates)]
    return found
