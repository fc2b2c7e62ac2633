"""Figures and tables of one group from its rows, here and on Spark: one fold, to which the tables listen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
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
from groupstorm.trace.rows import TraceEntry

Row = Mapping[str, Any]


PARTITIONS_DELETED = "partitions_deleted"


class _End(NamedTuple):
    """The row that ended a partition's last interval."""

    event: str
    cause: str | None
    generation: int | None
    callback_us: int


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
_STARTED = _End("member_started", None, None, 0)
_CREATED = _End("partitions_created", None, None, 0)


class GroupTables:
    """Takes the rows of one group, in their order, and hears what they mean for partitions. At the end come
    `end_trace`, what is heard then, and `complete`.

    A row of a table is there as soon as it is complete. `rows` gives all that are, `take` those since the
    last `take`, which are forgotten.
    """

    def __init__(self, window: Window, tables: Collection[str] = TABLES) -> None:
        """``tables``: those that are wanted; without ``intervals`` and ``members``, which are not summed up,
        an analysis takes two thirds of the time."""
        #: Rows that are complete, with numbers that say how they stand in their table.
        self._found: dict[str, list[tuple[int, TableRow]]] = {name: [] for name in tables}
        self._has_intervals = "intervals" in tables
        self._has_members = "members" in tables
        self._window = window
        #: The row at hand; None: the trace has ended.
        self._row: Row | None = None
        self._end_us = 0
        #: Open intervals, with their numbers, by partition and member.
        self._intervals: dict[tuple[str, str], _OpenInterval] = {}
        self._begun = self._closed = 0
        self._ends: dict[str, _End] = {}
        self._round: _OpenRound | None = None
        self._rounds = 0
        self._last_of_member: dict[str, MemberEvent] = {}
        #: What of `ABSENCES` is not so now, and since when.
        self._absent: set[str] = set()
        self._deleted_us: int | None = None
        #: Times in which the group did not exist or had no members, until it was there again.
        self._absences: list[tuple[int, int]] = []
        self._answered: dict[str, int] = {}
        self._replaced: set[str] = set()

    def add(self, row: Row) -> None:
        """Take the next row; what is heard from now on is about this one."""
        self._row = row
        event = row["event"]
        if self._has_members and event in MEMBER_EVENTS:
            self._add_member_event(row)
        self._add_to_rounds(row)
        if event == "partitions_created":
            self._ends.update(dict.fromkeys(row["partitions"], _CREATED))
        if event in ABSENCES:
            self._see_absence(event, row["time_us"])

    def _see_absence(self, event: str, now_us: int) -> None:
        """The group does not exist from now on, or has no members; or it is there again."""
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
        self._row, self._end_us = None, end_us

    def complete(self) -> None:
        """Open rounds and the last events of members last until the end."""
        self._close_round()
        for row in self._last_of_member.values():
            self._emit("members", row.seq, row.time_us, row)

    def rows(self, name: str) -> list[TableRow]:
        """The rows of a table that are complete: `TABLES` has their columns."""
        return [row for _, row in sorted(self._found[name], key=itemgetter(0))]

    def take(self) -> Iterator[tuple[str, list[TableRow]]]:
        """The rows that are complete since the last call, by table."""
        for name, rows in self._found.items():
            if rows:
                yield name, [row for _, row in rows]
                rows.clear()

    def _emit(self, name: str, number: int, last_us: int, row: TableRow) -> None:
        """The row is complete. It belongs to the window if ``last_us`` does."""
        if last_us >= self._window.from_us:
            self._found[name].append((number, row))

    # -- members ---------------------------------------------------------------------------------

    def _add_member_event(self, row: Row) -> None:
        member, seq, now_us, partitions = row["member"], row["seq"], row["time_us"], row.get("partitions")
        before = self._last_of_member.get(member)
        if before is not None:
            self._emit("members", before.seq, before.time_us, before._replace(until_us=now_us))
        count = None if partitions is None else len(partitions)
        said = row["event"], row.get("cause"), row.get("error"), row.get("generation")
        self._last_of_member[member] = MemberEvent(
            member, seq, now_us, None, *said, count, row.get("duration_us")
        )

    # -- rounds ----------------------------------------------------------------------------------

    def _add_to_rounds(self, row: Row) -> None:
        event, state, now_us = row["event"], row.get("state"), row["time_us"]
        if event == "group_state_changed" and state == "PreparingRebalance":
            self._close_round()
            self._rounds += 1
            self._round = _OpenRound(self._rounds, row["seq"], now_us, row["cause"])
        round_ = self._round
        if round_ is None:
            return
        if event == "group_state_changed" and state == "CompletingRebalance":
            round_.generation, round_.completing_seq, round_.completing_us = (
                row.get("generation"),
                row["seq"],
                now_us,
            )
            round_.protocol, round_.members = row.get("protocol"), row.get("count")
            self._end_generation(round_)
        elif event == "group_state_changed" and state == "Stable" and round_.stable_us is None:
            round_.stable_us = now_us
        elif round_.completing_seq is None:
            return
        elif event == "member_replaced":
            self._replaced.add(row["member_id"])
        elif (
            event == "sync_answered"
            and "error" not in row
            and row.get("generation") is not None
            and row["generation"] == round_.generation
            and row["member_id"] not in self._replaced
        ):
            self._answered.setdefault(row["member_id"], now_us)

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

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {}

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        if not self._has_intervals:
            return
        row = self._row
        assert row is not None
        self._begun += 1
        self._intervals[partition, member] = _OpenInterval(
            self._begun, row.get("generation"), row["seq"], row["time_us"], position
        )

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        row = self._row
        if row is not None:
            event = row["event"]
            cause = None if event == PARTITIONS_DELETED else row.get("cause")
            callback_us = int(row.get("duration_us") or 0)
            self._ends[partition] = _End(event, cause, row.get("generation"), callback_us)
        if not self._has_intervals:
            return
        begun = self._intervals.pop((partition, member))
        if row is None:
            to_us, to_seq, ended_by, cause = self._end_us, None, None, None
            position = None if begun.from_position is None else position
        else:
            to_us, to_seq, ended_by = row["time_us"], row["seq"], event
        interval = Interval(
            *(partition, member, begun.generation, begun.from_seq, begun.from_us, begun.from_position),
            *(to_seq, to_us, position, ended_by, cause),
        )
        # what ends as the window begins is no part of it, but for what begins then, too
        last_us = to_us if to_us > self._window.from_us else begun.from_us
        self._emit("intervals", begun.number, last_us, interval)

    def gap_closed(self, gap: ClosedGap) -> None:
        row, round_ = self._row, self._round
        partition, old_owner, new_owner, since_us = gap.partition, gap.old_owner, gap.new_owner, gap.since_us
        now_us = self._end_us if row is None else row["time_us"]
        from_us = max(since_us, self._window.from_us)
        gap_us = now_us - from_us - self._absent_us(from_us, now_us)
        if now_us <= from_us or gap_us <= 0:
            return
        end = self._ends.get(partition, _STARTED)
        taking_us = 0 if row is None else int(row.get("duration_us") or 0)
        paused_us = gap_us
        if old_owner is None or old_owner != new_owner:
            paused_us = min(gap_us, max(0, end.callback_us - (from_us - since_us)))
            paused_us += min(gap_us - paused_us, taking_us)
        old, new = end.generation, None if row is None else row.get("generation")
        # the last round that was prepared before the gap was closed
        prepared_us, rebalance_cause = (None, None) if round_ is None else (round_.prepared_us, round_.cause)
        handover = Handover(
            *(partition, from_us, now_us, gap_us, paused_us, old_owner, new_owner, old, new),
            *(None if old is None or new is None else new - old, end.event, end.cause),
            *(prepared_us, rebalance_cause),
        )
        self._closed += 1
        self._emit("handovers", self._closed, now_us, handover)

    def _absent_us(self, from_us: int, to_us: int) -> int:
        """Return how long of that time the group did not exist, or had no members."""
        absences = self._absences
        if self._deleted_us is not None:
            absences = [*absences, (self._deleted_us, to_us)]
        elif not absences:
            return 0
        return sum(max(0, min(to_us, end) - max(from_us, begin)) for begin, end in absences)


class GroupFold:
    """Figures and tables of one group, from one pass over its rows."""

    def __init__(self, window: Window, tables: Collection[str] = TABLES) -> None:
        self.tables = GroupTables(window, tables)
        self._figures = FiguresAccumulator(window.from_us, listener=self.tables)

    def add(self, row: Row, entry: TraceEntry | None) -> None:
        """Take the next row; ``entry`` is its typed event, None if the event is not known."""
        if entry is not None:
            self.tables.add(row)
            self._figures.add(*entry)

    def finish(self, end_us: int) -> Figures:
        """The trace ends: completes the tables, and returns the figures."""
        self.tables.end_trace(end_us)
        figures = self._figures.figures(end_us)
        self.tables.complete()
        return figures
