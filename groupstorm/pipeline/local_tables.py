"""The tables of one group from its rows, in plain Python: as `ownership`, `rounds` and `members` on Spark."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupstorm.figures.by_group import Window
from groupstorm.figures.record_model import Line, RecordModel
from groupstorm.pipeline.owner_facts import OwnerFact, OwnerFacts
from groupstorm.pipeline.results import ABSENCES, ENDS_ABSENCE, MEMBER_EVENTS, RATES_CHANGED

Row = Mapping[str, Any]
TableRow = dict[str, Any]


@dataclass(slots=True)
class _Interval:
    """An owner interval; ``line`` is the owner's, None if the trace does not say where its owner stands."""

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
    """Takes the rows of one group, in their order; `finish` gives the tables."""

    def __init__(self, window: Window) -> None:
        self.intervals: list[TableRow] = []
        self.handovers: list[TableRow] = []
        self.rounds: list[TableRow] = []
        self.members: list[TableRow] = []
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
        """The trace ends: open rows last until now, and rows before the window are left out."""
        from_us = self._window.from_us
        if self._deleted_us is not None:
            self._absences.append((self._deleted_us, end_us))
        for name, partition in self._partitions.items():
            self._close_gap(name, partition, end_us, None)
            for interval in partition.owners.values():
                interval.row.update(to_us=end_us, to_position=self._position(name, interval, end_us))
        self._close_round()
        self.handovers = [
            gap for gap in map(self._within_window, self.handovers) if gap is not None and gap["gap_us"] > 0
        ]
        self._find_rounds()
        self.intervals = [
            row for row in self.intervals if row["to_us"] > from_us or row["from_us"] >= from_us
        ]
        self.rounds = [row for row in self.rounds if row["prepared_us"] >= from_us]
        self.members = [row for row in self.members if row["time_us"] >= from_us]

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
        self._last_of_member[row["member"]] = found
        self.members.append(found)

    # -- rounds ----------------------------------------------------------------------------------

    def _add_to_rounds(self, row: Row) -> None:
        event, state, now_us = row["event"], row.get("state"), row["time_us"]
        if event == "group_state_changed" and state == "PreparingRebalance":
            self._close_round()
            names = ("generation", "completing_seq", "completing_us", "protocol", "members", "stable_us",
                     "answered_us", "latency_us")  # fmt: skip
            number = {"round": len(self.rounds) + 1, "prepared_seq": row["seq"], "prepared_us": now_us}
            self.rounds.append(number | {"cause": row["cause"]} | dict.fromkeys(names))
        if not self.rounds:
            return
        round_ = self.rounds[-1]
        if event == "group_state_changed" and state == "CompletingRebalance":
            round_.update(generation=row.get("generation"), completing_seq=row["seq"], completing_us=now_us)
            round_.update(protocol=row.get("protocol"), members=row.get("count"))
            self._end_generation()
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

    def _end_generation(self) -> None:
        """First answers count anew: imported traces may lack the PreparingRebalance of a generation."""
        if self._answered:
            self.rounds[-1]["answered_us"] = max(self._answered.values())
        self._answered.clear()
        self._replaced.clear()

    def _close_round(self) -> None:
        if not self.rounds:
            return
        self._end_generation()
        round_ = self.rounds[-1]
        if round_["stable_us"] is not None and round_["answered_us"] is not None:
            round_["latency_us"] = round_["answered_us"] - round_["prepared_us"]

    def _find_rounds(self) -> None:
        """Give each handover the last round that was prepared before the gap was closed."""
        prepared = [round_["prepared_seq"] for round_ in self.rounds]
        for handover in self.handovers:
            closed_seq = handover.pop("close_seq")
            number = len(prepared) if closed_seq is None else bisect_left(prepared, closed_seq)
            if number:
                round_ = self.rounds[number - 1]
                handover.update(prepared_us=round_["prepared_us"], rebalance_cause=round_["cause"])

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
            interval.row.update(to_seq=row["seq"], to_us=row["time_us"], ended_by=row["event"])
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
        self.intervals.append(begun)
        partition.owners[fact.member] = _Interval(begun, self._line(fact, row["time_us"], None))

    def _end(self, partition: _Partition, fact: OwnerFact, row: Row) -> None:
        ended = partition.owners.pop(fact.member).row
        ended.update(to_seq=row["seq"], to_us=row["time_us"], to_position=fact.position)
        ended.update(ended_by=row["event"], cause=row.get("cause"))
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
        began, took = partition.gap_row, None if closing is None else closing[1]
        old = None if began is None else began.get("generation")
        new = None if took is None else took.get("generation")
        self.handovers.append(
            {
                "partition": name,
                "from_us": partition.gap_us,
                "to_us": now_us,
                "gap_us": now_us - partition.gap_us,
                "paused_us": 0,
                "old_owner": partition.gap_owner,
                "new_owner": None if closing is None or closing[0] is None else closing[0].member,
                "old_generation": old,
                "new_generation": new,
                "generations": None if old is None or new is None else new - old,
                "ended_by": "partitions_created" if began is None else began["event"],
                "cause": None if began is None else began.get("cause"),
                "prepared_us": None,
                "rebalance_cause": None,
                # what the window and the rounds need, and the table does not have
                "close_seq": None if took is None else took["seq"],
                "revoking_us": self._callback_us(began),
                "taking_us": self._callback_us(took),
            }
        )
        partition.gap_us = partition.gap_row = partition.gap_owner = None

    def _callback_us(self, row: Row | None) -> int:
        if row is None or not self._owner_facts.by_members:
            return 0
        return int(row.get("duration_us", 0))

    def _within_window(self, gap: TableRow) -> TableRow | None:
        """The part of a gap that lies in the window and in which the group existed; None if there is none."""
        from_us, to_us = max(gap["from_us"], self._window.from_us), gap["to_us"]
        if to_us <= from_us:
            return None
        revoking_us, taking_us = gap.pop("revoking_us"), gap.pop("taking_us")
        revoking_us = max(0, revoking_us - (from_us - gap["from_us"]))
        absent_us = sum(max(0, min(to_us, end) - max(from_us, begin)) for begin, end in self._absences)
        gap_us = to_us - from_us - absent_us
        paused_us = gap_us
        if gap["old_owner"] is None or gap["old_owner"] != gap["new_owner"]:
            revoking_us = min(gap_us, revoking_us)
            paused_us = revoking_us + min(gap_us - revoking_us, taking_us)
        return gap | {"from_us": from_us, "gap_us": gap_us, "paused_us": paused_us}

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
        for row in getattr(one, name):
            yield {"run": run, "group": group, **row}
