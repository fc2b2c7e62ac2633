"""The trace of a run with real clients, from what was observed of them. Pure: observations in, rows out.

Reports of several processes arrive late and in any order, and a rate is known only when the next position is.
So the rows are made when the run is over. A stint is the time from an assignment of a partition to its end;
between two samples of a stint the position is linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

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
from groupstorm.storms.records.logs import RECORD
from groupstorm.trace.events import member as events
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Pace(NamedTuple):
    """From this sample on the member goes on from ``position`` by ``rate``."""

    partition: str
    position: int
    rate: int


@dataclass(slots=True)
class Stint:
    """One member on one partition; ``samples``: (time, position), both rising."""

    member: str
    partition: str
    samples: list[tuple[int, int]] = field(default_factory=list)

    def add(self, time_us: int, position: int) -> None:
        before_us, reached = self.samples[-1]
        if before_us == time_us:
            self.samples.pop()
        self.samples.append((time_us, max(position, reached)))

    @property
    def last(self) -> int:
        return self.samples[-1][1]


class Stints:
    """All stints of a run, from its observations in their order."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self.all: list[Stint] = []
        self._open: dict[tuple[str, str], Stint] = {}
        self._committed: dict[str, int] = {}
        seen_all = tuple(observations)
        self._written = [seen for seen in seen_all if isinstance(seen, Written)]
        for seen in seen_all:
            self._take(seen)

    def paces(self) -> dict[tuple[int, str], list[Pace]]:
        """(time, member) -> how the member goes on from then. One for each sample but a stint's last."""
        found: dict[tuple[int, str], list[Pace]] = defaultdict(list)
        for stint in self.all:
            for (time_us, position), (next_us, reached) in pairwise(stint.samples):
                rate = (reached - position) * RECORD // max(1, next_us - time_us)
                found[time_us, stint.member].append(Pace(stint.partition, position, rate))
        return dict(found)

    def _take(self, seen: Observation) -> None:
        if isinstance(seen, Committed):
            self._committed.update(seen.positions)
        elif isinstance(seen, Assigned):
            for partition in seen.partitions:
                self._begin(seen.time_us, seen.member, partition)
        elif isinstance(seen, Progressed):
            self._sample(seen.time_us, seen.member, seen.positions, seen.first)
        elif isinstance(seen, Released):
            self._sample(seen.time_us, seen.member, seen.positions, seen.first)
            self._end(seen.time_us, seen.member, seen.partitions)
        elif isinstance(seen, Paused | Resumed):
            self._stand(seen.time_us, seen.member)
        elif isinstance(seen, Crashed | Closed | Failed):
            self._end(seen.time_us, seen.member, [tp for name, tp in self._open if name == seen.member])

    def _begin(self, time_us: int, member: str, partition: str) -> None:
        """At the committed offset, or at the end of the log, until the member reports where it began."""
        stint = Stint(member, partition)
        start = self._committed.get(partition)
        stint.samples.append((time_us, self._log_end(time_us, partition) if start is None else start))
        self._open[member, partition] = stint
        self.all.append(stint)

    def _log_end(self, time_us: int, partition: str) -> int:
        """Between two reports of the logs' ends it is linear."""
        behind = bisect_right(self._written, time_us, key=lambda seen: seen.time_us)
        if behind == 0:
            return 0
        before = self._written[behind - 1]
        end = before.ends.get(partition, 0)
        if behind == len(self._written):
            return end
        after = self._written[behind]
        passed_us, whole_us = time_us - before.time_us, max(1, after.time_us - before.time_us)
        return end + (after.ends.get(partition, end) - end) * passed_us // whole_us

    def _sample(
        self, time_us: int, member: str, positions: Mapping[str, int], first: Mapping[str, int]
    ) -> None:
        for partition, offset in first.items():
            stint = self._open.get((member, partition))
            if stint is not None and len(stint.samples) == 1:
                stint.samples[0] = (stint.samples[0][0], offset)  # it is known now where the member began
        for partition, position in positions.items():
            stint = self._open.get((member, partition))
            if stint is not None:
                stint.add(time_us, position)

    def _stand(self, time_us: int, member: str) -> None:
        for (name, _), stint in self._open.items():
            if name == member:
                stint.add(time_us, stint.last)

    def _end(self, time_us: int, member: str, partitions: Iterable[str]) -> None:
        for partition in tuple(partitions):
            stint = self._open.pop((member, partition), None)
            if stint is not None:
                stint.add(time_us, stint.last)


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
                yield seen.time_us, seen.source, seen.event
                continue
            source = Source.WORLD if isinstance(seen, Written) else Source.MEMBER
            for event in self._events(seen):
                yield seen.time_us, source, event

    def _events(self, seen: Observation) -> Iterator[TracedEvent]:
        if isinstance(seen, Written):
            yield from self._rates.get(seen.time_us, ())
        elif isinstance(seen, Committed):
            self._committed.update(seen.positions)
        elif isinstance(seen, OfMember):
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
