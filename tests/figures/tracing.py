"""Traces of a few rows, written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.pipeline.trace_fold import read_groups
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.rows import TracedEvent, read_row
from groupstorm.trace.schema import Source

SECOND = 1_000_000


def figures_by_group(rows: Iterable[Mapping[str, Any]], window: Window = WHOLE) -> Mapping[str, Figures]:
    """The figures of every group, by `groupstorm analyze`'s own pass over all rows."""
    return read_groups(((row, read_row(row)) for row in rows), (), window).figures


class Trace:
    """Writes a trace in seconds, one method per row."""

    def __init__(self, group: str = "g", has_member_rows: bool = True) -> None:
        self.group = group
        self.has_member_rows = has_member_rows
        self.rows: list[tuple[int, Source, TracedEvent]] = []
        self.state = "Empty"

    @classmethod
    def begun(cls, *partitions: str, record_rate: int = 0, process_rate: int = 1) -> Trace:
        """A trace whose first row names these partitions."""
        trace = cls()
        trace.scenario(*partitions, record_rate=record_rate, process_rate=process_rate)
        return trace

    def add(self, at_s: float, source: Source, event: TracedEvent) -> None:
        self.rows.append((int(at_s * SECOND), source, event))

    def scenario(self, *partitions: str, record_rate: int = 0, process_rate: int = 1) -> None:
        started = world_events.ScenarioStarted(self.group, "{}", partitions, record_rate, process_rate)
        self.add(0, Source.WORLD, started)

    def state_to(
        self,
        at_s: float,
        state: str,
        generation: int,
        cause: str = "x",
        by: str = "",
        protocol: str = "range",
    ) -> None:
        event = events.GroupStateChanged(
            self.group, self.state, state, generation, cause, by or None, protocol, None, 1
        )
        self.state = state
        self.add(at_s, Source.COORDINATOR, event)

    def start(self, at_s: float, member: str, topics: tuple[str, ...] = ("t",), member_id: str = "") -> None:
        if self.has_member_rows:
            self.add(at_s, Source.MEMBER, member_events.MemberStarted(self.group, member, None, topics))
        added = events.MemberAdded(self.group, member, member_id or f"{member}-id", None, 0, "new-member")
        self.add(at_s, Source.COORDINATOR, added)

    def step(self, at_s: float, cause: str, member: str | None, detail: str) -> None:
        self.add(at_s, Source.WORLD, world_events.StepTaken(self.group, member, cause, detail))

    def remove(self, at_s: float, member: str, cause: str = "session-expired") -> None:
        event = events.MemberRemoved(self.group, member, f"{member}-id", None, 0, cause)
        self.add(at_s, Source.COORDINATOR, event)

    def create(self, at_s: float, cause: str) -> None:
        self.add(at_s, Source.COORDINATOR, events.GroupCreated(self.group, cause))

    def delete(self, at_s: float, cause: str) -> None:
        self.add(at_s, Source.COORDINATOR, events.GroupDeleted(self.group, cause))

    def join(self, at_s: float, member: str, generation: int) -> None:
        event = events.JoinAnswered(self.group, member, f"{member}-id", generation, None)
        self.add(at_s, Source.COORDINATOR, event)

    def park(self, at_s: float, member: str, generation: int) -> None:
        self.add(at_s, Source.COORDINATOR, events.JoinParked(self.group, member, f"{member}-id", generation))

    def sync(self, at_s: float, member: str, generation: int, *partitions: str, member_id: str = "") -> None:
        who = (self.group, member, member_id or f"{member}-id", generation)
        self.add(at_s, Source.COORDINATOR, events.SyncAnswered(*who, None, partitions))

    def reconcile(
        self, at_s: float, member: str, epoch: int, has: Sequence[str], revoking: Sequence[str] = ()
    ) -> None:
        """A member of a consumer group has these, and has to give the others up."""
        state = "UNREVOKED_PARTITIONS" if revoking else "STABLE"
        event = events.MemberReconciled(
            self.group, member, f"{member}-id", epoch, state, tuple(has), tuple(revoking)
        )
        self.add(at_s, Source.COORDINATOR, event)

    def take(
        self, at_s: float, member: str, generation: int, *partitions: str, at: int = 0, callback_s: float = 0
    ) -> None:
        who = (self.group, member, f"{member}-id", generation)
        positions = (at,) * len(partitions)
        event = member_events.PartitionsAssigned(*who, partitions, positions, int(callback_s * SECOND))
        self.add(at_s, Source.MEMBER, event)

    def revoke(
        self,
        at_s: float,
        member: str,
        generation: int,
        *partitions: str,
        at: int = 0,
        callback_s: float = 0,
        cause: str = "rebalance",
    ) -> None:
        who = (self.group, member, f"{member}-id", generation)
        where = (partitions, (at,) * len(partitions), (at,) * len(partitions))
        event = member_events.PartitionsRevoked(*who, *where, int(callback_s * SECOND), cause)
        self.add(at_s, Source.MEMBER, event)

    def crash(
        self, at_s: float, member: str, generation: int, *partitions: str, at: int = 0, member_id: str = ""
    ) -> None:
        who = (self.group, member, member_id or f"{member}-id", generation)
        where = (partitions, (at,) * len(partitions), (at,) * len(partitions))
        self.add(at_s, Source.MEMBER, member_events.MemberCrashed(*who, *where))

    def lose(
        self, at_s: float, member: str, generation: int, *partitions: str, member_id: str | None = None
    ) -> None:
        who = (self.group, member, f"{member}-id" if member_id is None else member_id, generation)
        nowhere = (0,) * len(partitions)
        event = member_events.PartitionsLost(*who, partitions, nowhere, nowhere, 0, "UNKNOWN_MEMBER_ID")
        self.add(at_s, Source.MEMBER, event)

    def pause(self, at_s: float, member: str, *partitions: str, at: int = 0) -> None:
        who = (self.group, member, f"{member}-id")
        event = member_events.MemberPaused(*who, partitions, (at,) * len(partitions), 0, "pause")
        self.add(at_s, Source.MEMBER, event)

    def resume(self, at_s: float, member: str, *partitions: str, at: int = 0) -> None:
        who = (self.group, member, f"{member}-id")
        event = member_events.MemberResumed(*who, partitions, (at,) * len(partitions))
        self.add(at_s, Source.MEMBER, event)

    def rates(self, at_s: float, member: str, lines: dict[str, tuple[int, int]]) -> None:
        """partition -> (the member's position, records per second from then on)."""
        who = (self.group, member, f"{member}-id")
        positions, rates = tuple(at for at, _ in lines.values()), tuple(1000 * r for _, r in lines.values())
        event = member_events.ProcessingRatesChanged(*who, tuple(lines), positions, rates)
        self.add(at_s, Source.MEMBER, event)

    def logs(self, at_s: float, lines: dict[str, tuple[int, int]]) -> None:
        """partition -> (end of its log, records per second from then on)."""
        positions, rates = tuple(at for at, _ in lines.values()), tuple(1000 * r for _, r in lines.values())
        event = world_events.RecordRatesChanged(self.group, tuple(lines), positions, rates)
        self.add(at_s, Source.WORLD, event)

    def rejoin(self, at_s: float, member: str, cause: str = "group-rebalancing") -> None:
        event = member_events.RejoinRequested(self.group, member, f"{member}-id", 0, cause)
        self.add(at_s, Source.MEMBER, event)

    def end(self, at_s: float) -> None:
        self.add(at_s, Source.WORLD, world_events.ScenarioEnded(self.group))

    def round(
        self, at_s: float, generation: int, plan: dict[str, tuple[str, ...]], cause: str = "x", at: int = 0
    ) -> None:
        """A whole generation in one instant; who owned something else gives it up before."""
        self.state_to(at_s, "PreparingRebalance", generation - 1, cause)
        self.state_to(at_s, "CompletingRebalance", generation)
        for member in plan:
            self.join(at_s, member, generation)
        self.state_to(at_s, "Stable", generation)
        for member, partitions in plan.items():
            self.sync(at_s, member, generation, *partitions)
        if self.has_member_rows:
            for member, partitions in plan.items():
                self.take(at_s, member, generation, *partitions, at=at)

    def ended(self, at_s: float) -> Figures:
        """The figures of the trace, which ends then."""
        self.end(at_s)
        return self.figures()

    def figures(self, from_us: int = 0) -> Figures:
        accumulator = FiguresAccumulator(from_us)
        for row in self.rows:
            accumulator.add(*row)
        return accumulator.figures()


def consumer_group_trace() -> Trace:
    """Return the trace of a consumer group's coordinator (KIP-848): a hands t-1 over to b, and gets it
    back."""
    trace = Trace(has_member_rows=False)
    trace.start(0, "a")
    trace.reconcile(0, "a", 2, ["t-0", "t-1"])
    trace.state_to(0, "Stable", 2)
    trace.start(10, "b")
    trace.reconcile(10, "b", 3, [])
    trace.state_to(10, "Reconciling", 3, "heartbeat")
    trace.reconcile(11, "a", 2, ["t-0"], ["t-1"])
    trace.reconcile(13, "a", 3, ["t-0"])
    trace.reconcile(14, "b", 3, ["t-1"])
    trace.state_to(14, "Stable", 3, "heartbeat")
    trace.remove(20, "b")
    trace.state_to(20, "Assigning", 4, "session-expired")
    trace.reconcile(22, "a", 4, ["t-0", "t-1"])
    trace.state_to(22, "Stable", 4, "heartbeat")
    return trace


def coordinator_trace(protocol: str) -> Trace:
    """Return a coordinator's trace of two members, one of which comes later, and joins again to share."""
    trace = Trace(has_member_rows=False)
    trace.start(0, "a")
    trace.state_to(0, "PreparingRebalance", 0, "new-member", "a-id")
    trace.state_to(3, "CompletingRebalance", 1, protocol=protocol)
    trace.join(3, "a", 1)
    trace.state_to(3, "Stable", 1)
    trace.sync(3, "a", 1, "t-0", "t-1")
    trace.start(10, "b")
    trace.state_to(10, "PreparingRebalance", 1, "new-member", "b-id")
    trace.park(10, "b", 1)
    trace.park(12, "a", 1)
    trace.state_to(12, "CompletingRebalance", 2, protocol=protocol)
    trace.join(12, "a", 2)
    trace.join(12, "b", 2)
    trace.state_to(13, "Stable", 2)
    trace.sync(13, "a", 2, "t-0")
    return trace
