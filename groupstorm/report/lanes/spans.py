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
from groupstorm.history.rebalances import Rebalance, Round
from groupstorm.report.lanes.joins import Join, Joins

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
