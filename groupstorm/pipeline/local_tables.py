"""The tables of one group from its rows: intervals, handovers, rounds and members, here and on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from groupstorm.figures.by_group import Window
from groupstorm.figures.record_model import Line, RecordModel
from groupstorm.pipeline.owner_facts import OwnerFact, OwnerFacts
from groupstorm.pipeline.results import ABSENCES, ENDS_ABSENCE, MEMBER_EVENTS, RATES_CHANGED, TABLES

Row = Mapping[str, Any]
TableRow = dict[str, Any]


@dataclass(slots=True)
class _Interval:
    """An owner interval; ``line`` is the owner's, None if the trace does not say where its owner stands.

    ``number``: of the intervals, in the order in which they began.
    """

    number: int
    row: TableRow
    line: Line | None
    paused: bool = False


@dataclass(slots=True)
class _Partition:
    owners: dict[str, _Interval] = field(default_factory=dict)
    #: The gap that is open: when it began, and the row that began it (None: the partition was created).
    gap_us: int | None = None
    gap_row: Row | None = None
    gap_owner: str | None = None


class GroupTables:
    """Takes the rows of one group, in their order; `finish` completes the tables.

    A row of a table is there as soon as it is complete. `rows` gives all that are, `take` those since the
    last `take`, which are forgotten.
    """

    def __init__(self, window: Window) -> None:
        #: Rows that are complete, with numbers that say how they stand in their table.
        self._found: dict[str, list[tuple[int, TableRow]]] = {name: [] for name in TABLES}
        self._begun = 0
        self._closed = 0
        self._round: TableRow | None = None
        self._rounds = 0
        self._window = window
        self._partitions: dict[str, _Partition] = {}
        self._unowned = 0
        self._complete = False
        self._model = RecordModel(0, 0)
        self._owner_facts = OwnerFacts()
        self._last_of_member: dict[str, TableRow] = {}
        #: What of `ABSENCES` is not so now, and since when.
        self._absent: set[str] = set()
        self._deleted_us: int | None = None
        #: Times in which the group did not exist or had no members, until it was there again, or to the end.
        self._absences: list[tuple[int, int]] = []
        self._answered: dict[str, int] = {}
        self._replaced: set[str] = set()

    def add(self, row: Row) -> None:
        """Take the next row."""
        event, now_us = row["event"], row["time_us"]
        if event in MEMBER_EVENTS:
            self._add_member_event(row)
        self._add_to_rounds(row)
        self._change_partitions(row)
        if event in ABSENCES:
            self._see_absence(event, now_us)
        for fact in self._owner_facts.of_row(row):
            self._apply(fact, row)
        if not self._complete and not self._unowned and self._partitions:
            self._complete = True

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

    def _change_partitions(self, row: Row) -> None:
        """Partitions are created or deleted, or their logs change."""
        event, now_us = row["event"], row["time_us"]
        if event == "scenario_started":
            self._model = RecordModel(row["record_rate"], row["process_rate"])
        if event in ("scenario_started", "partitions_created"):
            for partition in row["partitions"]:
                self._create(partition, now_us)
        elif event == "partitions_deleted":
            for partition in row["partitions"]:
                self._delete(partition, row)
        elif event == "record_rates_changed":
            for partition, position, rate in zip(
                row["partitions"], row["positions"], row["rates"], strict=True
            ):
                self._model.change_log(partition, Line(position, now_us, rate))

    def finish(self, end_us: int) -> None:
        """The trace ends: open rows last until now."""
        for name, partition in self._partitions.items():
            self._close_gap(name, partition, end_us, None)
            for interval in partition.owners.values():
                position = self._position(name, interval, end_us)
                self._end_interval(interval, to_us=end_us, to_position=position)
        self._close_round()
        for row in self._last_of_member.values():
            self._emit("members", row["seq"], row["time_us"], row)

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
        found = {name: row.get(name) for name in ("member", "seq", "time_us")} | {"until_us": None}
        found |= {name: row.get(name) for name in ("event", "cause", "error", "generation")}
        partitions = row.get("partitions")
        found["partitions"] = None if partitions is None else len(partitions)
        found["duration_us"] = row.get("duration_us")
        before = self._last_of_member.get(row["member"])
        if before is not None:
            before["until_us"] = row["time_us"]
            self._emit("members", before["seq"], before["time_us"], before)
        self._last_of_member[row["member"]] = found

    # -- rounds ----------------------------------------------------------------------------------

    def _add_to_rounds(self, row: Row) -> None:
        event, state, now_us = row["event"], row.get("state"), row["time_us"]
        if event == "group_state_changed" and state == "PreparingRebalance":
            self._close_round()
            names = ("generation", "completing_seq", "completing_us", "protocol", "members", "stable_us",
                     "answered_us", "latency_us")  # fmt: skip
            self._rounds += 1
            number = {"round": self._rounds, "prepared_seq": row["seq"], "prepared_us": now_us}
            self._round = number | {"cause": row["cause"]} | dict.fromkeys(names)
        round_ = self._round
        if round_ is None:
            return
        if event == "group_state_changed" and state == "CompletingRebalance":
            round_.update(generation=row.get("generation"), completing_seq=row["seq"], completing_us=now_us)
            round_.update(protocol=row.get("protocol"), members=row.get("count"))
            self._end_generation(round_)
        elif event == "group_state_changed" and state == "Stable" and round_["stable_us"] is None:
            round_["stable_us"] = now_us
        elif round_["completing_seq"] is None:
            return
        elif event == "member_replaced":
            self._replaced.add(row["member_id"])
        elif (
            event == "sync_answered"
            and "error" not in row
            and row.get("generation") is not None
            and row["generation"] == round_["generation"]
            and row["member_id"] not in self._replaced
        ):
            self._answered.setdefault(row["member_id"], now_us)

    def _end_generation(self, round_: TableRow) -> None:
        """First answers count anew: imported traces may lack the PreparingRebalance of a generation."""
        if self._answered:
            round_["answered_us"] = max(self._answered.values())
        self._answered.clear()
        self._replaced.clear()

    def _close_round(self) -> None:
        round_ = self._round
        if round_ is None:
            return
        self._end_generation(round_)
        if round_["stable_us"] is not None and round_["answered_us"] is not None:
            round_["latency_us"] = round_["answered_us"] - round_["prepared_us"]
        self._emit("rounds", round_["round"], round_["prepared_us"], round_)

    # -- ownership -------------------------------------------------------------------------------

    def _apply(self, fact: OwnerFact, row: Row) -> None:
        now_us = row["time_us"]
        if fact.partition not in self._partitions:
            if fact.kind != "own":
                return
            self._create(fact.partition, now_us)
        partition = self._partitions[fact.partition]
        owner = partition.owners.get(fact.member)
        if fact.kind == "own":
            if owner is None:
                self._begin(partition, fact, row)
        elif owner is None:
            return
        elif fact.kind == "end":
            self._end(partition, fact, row)
        elif fact.kind == RATES_CHANGED:
            if not owner.paused:
                owner.line = self._line(fact, now_us, owner.line)
        elif owner.paused != (fact.kind == "pause"):
            owner.paused, owner.line = not owner.paused, self._line(fact, now_us, owner.line)

    def _create(self, name: str, now_us: int) -> None:
        if name not in self._partitions:
            self._partitions[name] = _Partition(gap_us=now_us if self._complete else None)
            self._unowned += 1

    def _delete(self, name: str, row: Row) -> None:
        self._model.forget_log(name)
        partition = self._partitions.pop(name, None)
        if partition is None:
            return
        for interval in partition.owners.values():
            self._end_interval(interval, to_seq=row["seq"], to_us=row["time_us"], ended_by=row["event"])
        if not partition.owners:
            self._unowned -= 1
            self._close_gap(name, partition, row["time_us"], (None, row))

    def _begin(self, partition: _Partition, fact: OwnerFact, row: Row) -> None:
        if not partition.owners:
            self._unowned -= 1
            self._close_gap(fact.partition, partition, row["time_us"], (fact, row))
        begun: TableRow = {
            "partition": fact.partition, "member": fact.member, "generation": row.get("generation"),
            "from_seq": row["seq"], "from_us": row["time_us"], "from_position": fact.position,
            "to_seq": None, "to_us": None, "to_position": None, "ended_by": None, "cause": None,
        }  # fmt: skip
        self._begun += 1
        line = self._line(fact, row["time_us"], None)
        partition.owners[fact.member] = _Interval(self._begun, begun, line)

    def _end_interval(self, interval: _Interval, **end: object) -> None:
        row = interval.row
        row.update(end)
        # what ends as the window begins is no part of it, but for what begins then, too
        last_us = row["to_us"] if row["to_us"] > self._window.from_us else row["from_us"]
        self._emit("intervals", interval.number, last_us, row)

    def _end(self, partition: _Partition, fact: OwnerFact, row: Row) -> None:
        self._end_interval(
            partition.owners.pop(fact.member),
            to_seq=row["seq"],
            to_us=row["time_us"],
            to_position=fact.position,
            ended_by=row["event"],
            cause=row.get("cause"),
        )
        if not partition.owners:
            self._unowned += 1
            if self._complete:
                partition.gap_us, partition.gap_row = row["time_us"], row
                partition.gap_owner = fact.member

    def _close_gap(
        self, name: str, partition: _Partition, now_us: int, closing: tuple[OwnerFact | None, Row] | None
    ) -> None:
        """``closing``: what the new owner did (None: the partition was deleted), and the row."""
        if partition.gap_us is None:
            return
        from_us = max(partition.gap_us, self._window.from_us)
        began, took = partition.gap_row, None if closing is None else closing[1]
        gap_us = now_us - from_us - self._absent_us(from_us, now_us)
        new_owner = None if closing is None or closing[0] is None else closing[0].member
        self._closed += 1
        if now_us > from_us and gap_us > 0:
            revoking_us = max(0, self._callback_us(began) - (from_us - partition.gap_us))
            paused_us = gap_us
            if partition.gap_owner is None or partition.gap_owner != new_owner:
                revoking_us = min(gap_us, revoking_us)
                paused_us = revoking_us + min(gap_us - revoking_us, self._callback_us(took))
            self._add_handover(name, (from_us, now_us, gap_us, paused_us), partition, new_owner, took)
        partition.gap_us = partition.gap_row = partition.gap_owner = None

    def _add_handover(
        self,
        name: str,
        times_us: tuple[int, int, int, int],
        partition: _Partition,
        new_owner: str | None,
        took: Row | None,
    ) -> None:
        """``times_us``: from, to, how long of that the group existed, and how much of that was a pause."""
        began, round_ = partition.gap_row, self._round
        from_us, to_us, gap_us, paused_us = times_us
        old = None if began is None else began.get("generation")
        new = None if took is None else took.get("generation")
        handover = {
            "partition": name,
            "from_us": from_us,
            "to_us": to_us,
            "gap_us": gap_us,
            "paused_us": paused_us,
            "old_owner": partition.gap_owner,
            "new_owner": new_owner,
            "old_generation": old,
            "new_generation": new,
            "generations": None if old is None or new is None else new - old,
            "ended_by": "partitions_created" if began is None else began["event"],
            "cause": None if began is None else began.get("cause"),
            # the last round that was prepared before the gap was closed
            "prepared_us": None if round_ is None else round_["prepared_us"],
            "rebalance_cause": None if round_ is None else round_["cause"],
        }
        self._emit("handovers", self._closed, to_us, handover)

    def _absent_us(self, from_us: int, to_us: int) -> int:
        """How long of that time the group did not exist, or had no members."""
        absences = self._absences
        if self._deleted_us is not None:
            absences = [*absences, (self._deleted_us, to_us)]
        return sum(max(0, min(to_us, end) - max(from_us, begin)) for begin, end in absences)

    def _callback_us(self, row: Row | None) -> int:
        if row is None or not self._owner_facts.by_members:
            return 0
        return int(row.get("duration_us", 0))

    def _line(self, fact: OwnerFact, now_us: int, before: Line | None) -> Line | None:
        """How the owner goes on from a fact: at the fact's rate, or at its rate before."""
        if fact.position is None:
            return None
        rate = self._model.process_rate if before is None else before.rate
        return Line(fact.position, now_us, rate if fact.rate is None else fact.rate)

    def _position(self, partition: str, interval: _Interval, now_us: int) -> int | None:
        line = interval.line
        if line is None or interval.paused:
            return None if line is None else line.position
        return self._model.position(partition, line, now_us)


def all_rows(tables: Mapping[Any, GroupTables], name: str) -> Iterable[TableRow]:
    """The rows of one table of all groups, with the columns ``run`` and ``group`` in front."""
    for (run, group), one in tables.items():
        for row in one.rows(name):
            yield {"run": run, "group": group, **row}
