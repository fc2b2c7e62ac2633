"""Rows of a small group whose gaps are divided by hand, and the reasons that are found in them."""

from __future__ import annotations

from groupstorm.figures import FiguresAccumulator
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

G = "group"

Row = tuple[float, TracedEvent]


def divided(*rows: Row, end_s: float = 0, detail: str = "{}") -> Reasons:
    """Return the reasons of a group in which a and b own p0 and p1 from 1 s on."""
    begin: list[Row] = [
        (0, world_events.ScenarioStarted(G, detail, ("p0", "p1"), 0, 1)),
        (0, state("PreparingRebalance", "new-member")),
        *ended(1, cause="initial-delay"),
        (1, assigned("a", "p0")),
        (1, assigned("b", "p1")),
    ]
    return of_rows(*begin, *rows, (end_s, world_events.ScenarioEnded(G)))


def of_rows(*rows: Row) -> Reasons:
    gaps = GapReasons()
    figures = FiguresAccumulator(listener=gaps)
    for at_s, event in rows:
        figures.add(int(at_s * 1_000_000), Source.WORLD, event)
    figures.figures()
    return gaps.reasons()


def ended(at_s: float, assigned_s: float | None = None, cause: str = "all-joined") -> list[Row]:
    """Return the rows of a join phase that ends, and of the assignment: at once, or at ``assigned_s``."""
    stable_s = at_s if assigned_s is None else assigned_s
    return [(at_s, state("CompletingRebalance", cause)), (stable_s, state("Stable", "assigned"))]


def state(name: str, cause: str) -> events.GroupStateChanged:
    return events.GroupStateChanged(G, "", name, 1, cause, None, None, None, 2)


def assigned(member: str, *partitions: str) -> member_events.PartitionsAssigned:
    return member_events.PartitionsAssigned(G, member, member, 1, partitions, (), 0)


def revoked(member: str, cause: str, *partitions: str) -> member_events.PartitionsRevoked:
    return member_events.PartitionsRevoked(G, member, member, 1, partitions, (), (), 0, cause)


def removed(member: str, cause: str) -> events.MemberRemoved:
    return events.MemberRemoved(G, member, member, None, 1, cause)


def joined(member: str) -> events.JoinParked:
    return events.JoinParked(G, member, member, 1)


def in_seconds(found: Reasons) -> dict[Reason, float]:
    return {reason: us / 1_000_000 for reason, us in found.us.items()}
