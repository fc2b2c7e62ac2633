"""The spans of a group's rebalances: rebalance > round > join of a member > sync, revoke, assign.

A tree is a trace of OpenTelemetry's. The names of attributes are those of its semantic conventions for
messaging where these have one, else they begin with ``groupstorm.``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from groupstorm.explain.history import History
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.rebalances import Rebalance, Round
from groupstorm.report.lanes.members import GroupLanes, Member, Row

#: The error of a join after which the member sent no SyncGroup, but joined again.
NO_SYNC: Final = "no-sync"
_GONE: Final = frozenset({"member_closed", "member_crashed", "member_failed", "member_removed"})


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a join: ``name`` is sync, revoke or assign."""

    name: str
    from_us: int
    to_us: int
    partitions: Sequence[str] = ()
    cause: str = ""


@dataclass(slots=True, eq=False)
class Join:
    """``had_us``: when the coordinator answered its JoinGroup, or else when it came; None if it never had it.

    ``to_us``: None as long as the member is on its way. ``generation``: that it came to. ``error``: why it
    did not get there.
    """

    member: Member
    from_us: int
    cause: str = ""
    member_id: str = ""
    had_us: int | None = None
    to_us: int | None = None
    generation: int | None = None
    error: str = ""
    #: Whether it sent a JoinGroup: a member of a consumer group (KIP-848) does not.
    is_classic: bool = False
    parts: list[Part] = field(default_factory=list)
    #: Answers and parked requests: the event's name, its error if it has one, and when.
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    waits_us: int | None = None
    #: The row with which the member said, before it fetched, that it has to join again.
    again: Row | None = None

    @property
    def is_synced(self) -> bool:
        """Whether the member has its assignment."""
        return any(part.name == "sync" for part in self.parts)


class Joins(GroupLanes):
    """Takes the rows of one group beside its explanation.

    ``all``: the joins that the coordinator had, in the order in which it had them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Join] = []
        self._open: dict[Member, Join] = {}
        self._assigned: dict[Member, frozenset[str]] = {}
        self._now_us = 0

    def add(self, row: Row, figures: FiguresAccumulator) -> None:
        self._now_us = row["time_us"]
        self.take(row, figures)
        member = self.of(row)
        if member is None:
            return
        name = row["event"]
        if name in _GONE:
            if name != "member_removed" or not self.by_members:
                self._finish(member, row, name.removeprefix("member_"))
        elif row["source"] == "member":
            self._see_member(member, row)
        else:
            self._see_coordinator(member, row)

    def finish(self) -> None:
        """The trace ends."""
        for join in [*self._open.values()]:
            self._end(join, self._now_us, "")

    def _see_member(self, member: Member, row: Row) -> None:
        event, now_us = row["event"], row["time_us"]
        if event == "rejoin_requested":
            join = self._open.get(member)
            if join is not None and join.is_synced:
                join.again = row  # it revoked partitions, and takes the new ones before it joins again
            elif member.joining:
                if join is not None and join.had_us is not None:
                    self._end(join, now_us, row["cause"])
                self._begin(member, row).cause = row["cause"]
        elif event in ("partitions_revoked", "partitions_lost") and row.get("cause") != "close":
            join = self._begin(member, row)
            until_us = now_us + row.get("duration_us", 0)
            join.parts.append(Part("revoke", now_us, until_us, row["partitions"], row.get("cause", "")))
            join.waits_us = None if join.waits_us is None else until_us
        elif event == "partitions_assigned" and (member in self._open or row["partitions"]):
            join = self._begin(member, row)
            begun_us = join.waits_us if join.waits_us is not None else now_us - row.get("duration_us", 0)
            if join.is_classic or row["partitions"]:
                begun_us = min(now_us, max(begun_us, join.from_us))
                join.parts.append(Part("assign", begun_us, now_us, row["partitions"]))
            self._had(join, row)
            self._end(join, now_us, "")

    def _see_coordinator(self, member: Member, row: Row) -> None:
        event, now_us, error = row["event"], row["time_us"], row.get("error", "")
        if event in ("join_parked", "join_answered", "sync_parked", "sync_answered"):
            before = self._open.get(member)
            if event == "join_parked" and before is not None and before.waits_us is not None:
                # no row says when it fetched, or it joins again without a SyncGroup
                self._end(before, now_us, "" if before.is_synced else NO_SYNC)
            join = self._begin(member, row)
            join.is_classic = True
            join.requests.append((event, error, now_us))
            if not error:
                self._had(join, row)
                self._classic_row(join, row)
        elif event == "member_reconciled":
            self._reconciled(member, row)

    def _classic_row(self, join: Join, row: Row) -> None:
        event, now_us = row["event"], row["time_us"]
        if event == "join_answered":
            join.waits_us = now_us
        elif event == "sync_answered":
            begun_us = join.waits_us if join.waits_us is not None else now_us
            join.parts.append(Part("sync", begun_us, now_us, row.get("partitions", ())))
            join.waits_us = now_us
            if not self.by_members:
                self._end(join, now_us, "")

    def _reconciled(self, member: Member, row: Row) -> None:
        """A member of a consumer group has another target than before, or comes towards it."""
        assigned = frozenset(row.get("partitions", ()))
        has_changed = self._assigned.get(member, frozenset()) != assigned or row.get("revoking")
        self._assigned[member] = assigned
        if has_changed or member in self._open:
            join = self._begin(member, row)
            self._had(join, row)
            join.waits_us = row["time_us"]
            if row["state"] == "STABLE" and not self.by_members:
                join.parts.append(Part("assign", row["time_us"], row["time_us"], row.get("partitions", ())))
                self._end(join, row["time_us"], "")

    def _begin(self, member: Member, row: Row) -> Join:
        """The join that the member is in, perhaps a new one."""
        join = self._open.get(member)
        if join is None:
            join = self._open[member] = Join(member, row["time_us"])
        return join

    def _had(self, join: Join, row: Row) -> None:
        """The coordinator knows of the join."""
        if join.had_us is None:
            self.all.append(join)
        if join.had_us is None or row["event"] == "join_answered":
            join.had_us = row["time_us"]
        join.generation = row.get("generation", join.generation)
        join.member_id = row.get("member_id", join.member_id)

    def _finish(self, member: Member, row: Row, why: str) -> None:
        join = self._open.get(member)
        if join is not None:
            self._end(join, row["time_us"], why)

    def _end(self, join: Join, now_us: int, error: str) -> None:
        join.to_us = max(now_us, *(part.to_us for part in join.parts)) if join.parts else now_us
        join.error = error
        del self._open[join.member]
        if join.again is not None and join.member.present:
            self._begin(join.member, join.again).cause = join.again["cause"]


Value = str | int | float | Sequence[str]

GROUP: Final = "messaging.consumer.group.name"
CLIENT: Final = "messaging.client.id"
SYSTEM: Final = "messaging.system"
ERROR: Final = "error.type"


@dataclass(slots=True, eq=False)
class Span:
    """``links``: the spans that caused it. ``events``: what happened in it, and when. ``error``: or ""."""

    name: str
    from_us: int
    to_us: int
    attributes: dict[str, Value] = field(default_factory=dict)
    children: list[Span] = field(default_factory=list)
    events: list[tuple[str, int]] = field(default_factory=list)
    links: list[Span] = field(default_factory=list)
    error: str = ""

    def take(self, child: Span) -> None:
        """The child's time is within this span's."""
        self.children.append(child)
        self.from_us = min(self.from_us, child.from_us)
        self.to_us = max(self.to_us, child.to_us)


def spans(history: History, joins: Joins) -> Iterator[Span]:
    """The roots: causes, each before the rebalance that is linked to it, rebalances, and joins without a
    round (a static member is back). Those of the history's time."""
    joins.finish()
    rounds = [one for rebalance in history.rebalances for one in rebalance.rounds]
    by_round = _by_round(rounds, joins.all)
    for rebalance in history.rebalances:
        cause = _cause(history, rebalance, by_round[rebalance.rounds[0].begun["seq"]])
        if cause is not None:
            yield cause
        yield _rebalance(history, rebalance, by_round, cause)
    for join in by_round[None]:
        if join.from_us >= history.from_us:
            yield _join(history, join)


def _by_round(rounds: Sequence[Round], joins: Sequence[Join]) -> dict[int | None, list[Join]]:
    """Seq of the row with which a round begins -> its joins; None: those that came when no round was open."""
    begins_us = [one.begun_us for one in rounds]
    found: dict[int | None, list[Join]] = {None: [], **{one.begun["seq"]: [] for one in rounds}}
    for join in joins:
        had_us = join.from_us if join.had_us is None else join.had_us
        index = bisect_right(begins_us, had_us) - 1
        ended = None if index < 0 else rounds[index].ended
        is_late = join.is_classic and ended is not None and had_us > ended["time_us"]
        found[None if index < 0 or is_late else rounds[index].begun["seq"]].append(join)
    return found


def _rebalance(
    history: History, one: Rebalance, by_round: dict[int | None, list[Join]], cause: Span | None
) -> Span:
    root = _span(history, f"rebalance {one.cause}", one.begun_us, one.until_us(history.to_us))
    root.attributes["groupstorm.cause"] = one.cause
    if one.culprit:
        root.attributes["groupstorm.begun_by"] = one.culprit
    if history.figures is not None and history.figures.unowned_partition_seconds is not None:
        root.attributes["groupstorm.unowned_partition_seconds"] = one.unowned_us / 1e6
    root.links = [] if cause is None else [cause]
    before: Span | None = None
    for number, round_ in enumerate(one.rounds, 1):
        span = _round(history, round_, number, by_round[round_.begun["seq"]])
        span.links = [] if before is None else [before]
        root.take(span)
        before = span
    return root


def _round(history: History, one: Round, number: int, joins: Sequence[Join]) -> Span:
    ended_us = history.to_us if one.ended is None else int(one.ended["time_us"])
    span = _span(history, f"round {number}", one.begun_us, ended_us)
    span.attributes["groupstorm.cause"] = one.cause
    for row in filter(None, (one.begun, one.joined, one.ended)):
        if row["event"] == "group_state_changed":
            span.events.append((row["state"], row["time_us"]))
    for row in filter(None, (one.joined, one.ended)):
        for column in ("generation", "protocol"):
            if column in row:
                span.attributes[f"groupstorm.{column}"] = row[column]
    if one.members is not None:
        span.attributes["groupstorm.members"] = one.members
    for join in joins:
        span.take(_join(history, join))
    return span


def _join(history: History, join: Join) -> Span:
    to_us = history.to_us if join.to_us is None else join.to_us
    verb = "join" if join.is_classic else "reconcile"
    span = _span(history, f"{verb} {join.member.label}", join.from_us, to_us)
    span.attributes[CLIENT] = join.member.client
    span.attributes["groupstorm.member_id"] = join.member_id
    if join.cause:
        span.attributes["groupstorm.cause"] = join.cause
    if join.generation is not None:
        span.attributes["groupstorm.generation"] = join.generation
    if join.error:
        span.error = span.attributes[ERROR] = join.error
    for event, error, time_us in join.requests:
        span.events.append((f"{event}: {error}" if error else event, time_us))
    for part in join.parts:
        child = _span(history, f"{part.name} {join.member.label}", part.from_us, part.to_us)
        child.attributes[CLIENT] = join.member.client
        child.attributes["groupstorm.partitions"] = [*part.partitions]
        if part.cause:
            child.attributes["groupstorm.cause"] = part.cause
        span.take(child)
    return span


def _cause(history: History, rebalance: Rebalance, joins: Sequence[Join]) -> Span | None:
    """The cause of a rebalance: a member that came or went, or a member that had to join again.

    A member that went silent goes from its last row on. ``joins``: those of the first round.
    """
    changes = [one for one in rebalance.changes if one.time_us <= rebalance.begun_us]
    if changes:
        kind, time_us, row, alive = changes[-1].kind, changes[-1].time_us, changes[-1].row, changes[-1].alive
        from_us = time_us if alive is None else min(time_us, int(alive["time_us"]))
        span = _span(history, f"member {kind}: {changes[-1].cause}", from_us, time_us)
        span.attributes[CLIENT] = row.get("member", changes[-1].member)
        return span
    for join in joins:
        is_culprit = rebalance.culprit in (join.member.client, join.member.name)
        if is_culprit and join.cause and join.from_us <= rebalance.begun_us:
            span = _span(history, f"member has to join: {join.cause}", join.from_us, join.from_us)
            span.attributes[CLIENT] = join.member.client
            return span
    return None


def _span(history: History, name: str, from_us: int, to_us: int) -> Span:
    return Span(name, from_us, max(from_us, to_us), {SYSTEM: "kafka", GROUP: history.group})
