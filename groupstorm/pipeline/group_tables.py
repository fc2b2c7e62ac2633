"""Figures and tables of one group from its rows, here and on Spark: one fold, to which the tables listen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.accumulator import Window
from groupstorm.history.gaps import ClosedGap, Handler
from groupstorm.pipeline.results import (
    ABSENCES,
    ENDS_ABSENCE,
    MEMBER_EVENTS,
    TABLES,
    Handover,
    Interval,
    MemberEvent,
    Round,
    TableRow,
)
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import TraceEntry, TypedRow, event_name, event_types


class _Facts(NamedTuple):
    """The values of a row that rows of tables have, None if it has none."""

    event: str
    cause: str | None = None
    error: str | None = None
    generation: int | None = None
    partitions: Sequence[str] | None = None
    duration_us: int | None = None


@cache
def _places(kind: Any) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that takes the values of `_Facts` from (event's name, *event, None)."""
    fields = ("event", *kind._fields)
    return itemgetter(*(fields.index(name) if name in fields else len(fields) for name in _Facts._fields))


class _OpenInterval(NamedTuple):
    """The beginning of an interval; ``number`` says how it stands in its table."""

    number: int
    generation: int | None
    from_seq: int
    from_us: int
    from_position: int | None


@dataclass(slots=True)
class _OpenRound:
    """A round as far as rows have told it."""

    number: int
    prepared_seq: int
    prepared_us: int
    cause: str
    generation: int | None = None
    completing_seq: int | None = None
    completing_us: int | None = None
    protocol: str | None = None
    members: int | None = None
    stable_us: int | None = None
    answered_us: int | None = None


#: A gap that began with the first process of the group, or with the partition itself.
_STARTED = _Facts("member_started")
_CREATED = _Facts("partitions_created")


class GroupTables:
    """Hears what the rows of one group, in their order, mean for partitions. `entries` has them; at the end
    come `end_trace`, what is heard then, and `complete`.

    A row of a table is there as soon as it is complete. `rows` gives all that are, `take` those since the
    last `take`, which are forgotten.
    """

    def __init__(self, window: Window, tables: Collection[str] = TABLES) -> None:
        """``tables``: those that are wanted; without ``intervals`` and ``members``, which are not summed up,
        an analysis takes two thirds of the time."""
        #: Rows that are complete, and numbers that say how they stand in their table.
        self._rows: dict[str, list[TableRow]] = {name: [] for name in tables}
        self._numbers: dict[str, list[int]] = {name: [] for name in tables}
        self._has_intervals = "intervals" in tables
        self._has_members = "members" in tables
        self._from_us = window.from_us
        #: The number and time of the row at hand, and what it says; then the end of the trace, and None.
        self._seq = self._now_us = 0
        self._told: Any = None
        self._known: _Facts | None = None
        #: Open intervals, with their numbers, by partition and member.
        self._intervals: dict[tuple[str, str], _OpenInterval] = {}
        self._begun = self._closed = 0
        #: The row that ended a partition's last interval.
        self._ends: dict[str, _Facts] = {}
        self._round: _OpenRound | None = None
        self._rounds = 0
        self._last_of_member: dict[str, tuple[Any, ...]] = {}
        #: What of `ABSENCES` is not so now, and since when.
        self._absent: set[str] = set()
        self._deleted_us: int | None = None
        #: Times in which the group did not exist or had no members, until it was there again.
        self._absences: list[tuple[int, int]] = []
        self._answered: dict[str, int] = {}
        self._replaced: set[str] = set()

    def entries(self, rows: Iterable[TypedRow]) -> Iterator[TraceEntry]:
        """The entries of ``rows``: what is heard until the next one is taken is about that row."""
        for seq, _, now_us, entry, told in rows:
            if entry is not None:
                self._seq, self._now_us, self._told, self._known = seq, now_us, told, None
                yield entry

    @property
    def handlers(self) -> Mapping[type, Handler]:
        of_members = [event_types()[name] for name in MEMBER_EVENTS if self._has_members]
        return {
            **dict.fromkeys(of_members, self._add_member_event),
            **{event_types()[name]: self._see_absence for name in ABSENCES},
            events.GroupStateChanged: self._state_changed,
            events.MemberReplaced: self._member_replaced,
            events.SyncAnswered: self._sync_answered,
            world_events.PartitionsCreated: self._partitions_created,
        }

    def _facts(self) -> _Facts:
        """Return the values of the row at hand, if the trace has not ended."""
        facts = self._known
        if facts is None:
            kind: Any = type(self._told)
            facts = self._known = _Facts(*_places(kind)((event_name(kind), *self._told, None)))
        return facts

    def _partitions_created(self, _now_us: int, event: world_events.PartitionsCreated) -> None:
        self._ends.update(dict.fromkeys(event.partitions, _CREATED))

    def _see_absence(self, now_us: int, _event: object) -> None:
        """The group does not exist from now on, or has no members; or it is there again."""
        event = self._facts().event
        if event in ENDS_ABSENCE:
            self._absent.discard(ABSENCES[event])
        else:
            self._absent.add(ABSENCES[event])
        if self._absent and self._deleted_us is None:
            self._deleted_us = now_us
        elif not self._absent and self._deleted_us is not None:
            self._absences.append((self._deleted_us, now_us))
            self._deleted_us = None

    def end_trace(self, end_us: int) -> None:
        """The trace ends: intervals and gaps that end from now on were open until then."""
        self._now_us, self._told = end_us, None

    def complete(self) -> None:
        """Open rounds and the last events of members last until the end."""
        self._close_round()
        for member, (seq, now_us, told) in self._last_of_member.items():
            self._emit("members", seq, now_us, MemberEvent(member, seq, now_us, None, *told))

    def rows(self, name: str) -> list[TableRow]:
        """The rows of a table that are complete: `TABLES` has their columns."""
        numbers = self._numbers[name]
        return [self._rows[name][place] for place in sorted(range(len(numbers)), key=numbers.__getitem__)]

    def take(self) -> Iterator[tuple[str, list[TableRow]]]:
        """The rows that are complete since the last call, by table."""
        for name, rows in self._rows.items():
            if rows:
                yield name, rows
                self._rows[name], self._numbers[name] = [], []

    def _emit(self, name: str, number: int, last_us: int, row: TableRow) -> None:
        """The row is complete. It belongs to the window if ``last_us`` does."""
        if last_us >= self._from_us:
            self._rows[name].append(row)
            self._numbers[name].append(number)

    # -- members ---------------------------------------------------------------------------------

    def _add_member_event(self, now_us: int, _event: object) -> None:
        event, cause, error, generation, partitions, duration_us = self._facts()
        member = self._told.member
        before = self._last_of_member.get(member)
        if before is not None:
            from_seq, from_us, told = before
            self._emit("members", from_seq, from_us, MemberEvent(member, from_seq, from_us, now_us, *told))
        count = None if partitions is None else len(partitions)
        said = event, cause, error, generation, count, duration_us
        self._last_of_member[member] = (self._seq, now_us, said)

    # -- rounds ----------------------------------------------------------------------------------

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        if event.state == GroupState.PREPARING_REBALANCE:
            self._close_round()
            self._rounds += 1
            self._round = _OpenRound(self._rounds, self._seq, now_us, event.cause)
        round_ = self._round
        if round_ is None:
            return
        if event.state == GroupState.COMPLETING_REBALANCE:
            round_.generation = self._facts().generation
            round_.completing_seq, round_.completing_us = self._seq, now_us
            round_.protocol, round_.members = event.protocol, event.count
            self._end_generation(round_)
        elif event.state == GroupState.STABLE and round_.stable_us is None:
            round_.stable_us = now_us

    def _member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        if self._has_members:
            self._add_member_event(now_us, event)
        if self._round is not None and self._round.completing_seq is not None:
            self._replaced.add(event.member_id)

    def _sync_answered(self, now_us: int, event: events.SyncAnswered) -> None:
        if self._has_members:
            self._add_member_event(now_us, event)
        round_ = self._round
        if round_ is None or round_.completing_seq is None or event.error is not None:
            return
        generation, member_id = self._facts().generation, event.member_id
        if generation is not None and generation == round_.generation and member_id not in self._replaced:
            self._answered.setdefault(member_id, now_us)

    def _end_generation(self, round_: _OpenRound) -> None:
        """First answers count anew: imported traces may lack the PreparingRebalance of a generation."""
        if self._answered:
            round_.answered_us = max(self._answered.values())
        self._answered.clear()
        self._replaced.clear()

    def _close_round(self) -> None:
        round_ = self._round
        if round_ is None:
            return
        self._end_generation(round_)
        latency_us = None
        if round_.stable_us is not None and round_.answered_us is not None:
            latency_us = round_.answered_us - round_.prepared_us
        row = Round(
            *(round_.number, round_.prepared_seq, round_.prepared_us, round_.cause, round_.generation),
            *(round_.completing_seq, round_.completing_us, round_.protocol, round_.members),
            *(round_.stable_us, round_.answered_us, latency_us),
        )
        self._emit("rounds", row.round, row.prepared_us, row)

    # -- ownership (`OwnershipListener`) ---------------------------------------------------------

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        if self._has_intervals:
            self._begun += 1
            self._intervals[partition, member] = _OpenInterval(
                self._begun, self._facts().generation, self._seq, self._now_us, position
            )

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        to_us, to_seq, ended_by, cause = self._now_us, None, None, None
        if self._told is not None:
            end = self._ends[partition] = self._facts()
            to_seq, ended_by, cause = self._seq, end.event, end.cause
        if not self._has_intervals:
            return
        number, generation, from_seq, from_us, from_position = self._intervals.pop((partition, member))
        if to_seq is None and from_position is None:
            position = None
        interval = Interval(
            partition, member, generation, from_seq, from_us, from_position,
            to_seq, to_us, position, ended_by, cause,
        )  # fmt: skip
        # what ends as the window begins is no part of it, but for what begins then, too
        self._emit("intervals", number, to_us if to_us > self._from_us else from_us, interval)

    def gap_closed(self, gap: ClosedGap) -> None:
        partition, _, now_us, _, old_owner, new_owner, _, since_us = gap
        from_us = since_us if since_us > self._from_us else self._from_us
        gap_us = now_us - from_us
        if self._absences or self._deleted_us is not None:
            gap_us -= self._absent_us(from_us, now_us)
        if now_us <= from_us or gap_us <= 0:
            return
        ended_by, cause, _, old, _, callback_us = self._ends.get(partition, _STARTED)
        new, taking_us = None, 0
        if self._told is not None:
            facts = self._facts()
            new, taking_us = facts.generation, facts.duration_us or 0
        paused_us = gap_us
        if old_owner is None or old_owner != new_owner:
            paused_us = min(gap_us, max(0, (callback_us or 0) - (from_us - since_us)))
            paused_us += min(gap_us - paused_us, taking_us)
        # the last round that was prepared before the gap was closed, unless it was over before the gap began
        round_ = self._round
        if round_ is not None and round_.stable_us is not None and round_.stable_us < since_us:
            round_ = None
        prepared_us, rebalance_cause = (None, None) if round_ is None else (round_.prepared_us, round_.cause)
        handover = Handover(
            partition, from_us, now_us, gap_us, paused_us, old_owner, new_owner, old, new,
            None if old is None or new is None else new - old, ended_by, cause,
            prepared_us, rebalance_cause,
        )  # fmt: skip
        self._closed += 1
        self._emit("handovers", self._closed, now_us, handover)

    def _absent_us(self, from_us: int, to_us: int) -> int:
        """Return how long of that time the group did not exist, or had no members."""
        absences = self._absences
        if self._deleted_us is not None:
            absences = [*absences, (self._deleted_us, to_us)]
        return sum(max(0, min(to_us, end) - max(from_us, begin)) for begin, end in absences)


class GroupFold:
    """Figures and tables of one group, from one pass over its rows."""

    def __init__(self, window: Window, tables: Collection[str] = TABLES) -> None:
        self.tables = GroupTables(window, tables)
        self._figures = FiguresAccumulator(window.from_us, listener=self.tables)

    def add_all(self, rows: Iterable[TypedRow]) -> None:
        """Take the next rows."""
        self._figures.add_all(self.tables.entries(rows))

    def finish(self, end_us: int) -> Figures:
        """The trace ends: completes the tables, and returns the figures."""
        self.tables.end_trace(end_us)
        figures = self._figures.figures(end_us)
        self.tables.complete()
        return figures
