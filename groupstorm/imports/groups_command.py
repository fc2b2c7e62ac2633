"""Reads a file into which somebody pasted the output of kafka-consumer-groups --describe.

A snapshot is one group at one time, as its coordinator describes it: the tables of one command together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, tzinfo
from enum import StrEnum
from typing import Any, Final, NamedTuple

from groupstorm.imports.envelopes import FrontReader
from groupstorm.imports.lines import Log
from groupstorm.imports.prefixes import Writer, find_prefix
from groupstorm.imports.source import LogSource, Observation
from groupstorm.imports.times import Instant, date_of, instant
from groupstorm.problems import InputError
from groupstorm.trace.events.group_states import GroupState

_REMARK = re.compile(r"Consumer group '(?P<group>.*)' (?P<what>has no active members|is rebalancing)\.")
_AGAIN: Final = (
    "is described once more, and no line says when: print the time before each command (date -Is), or give "
    "one file per time, with --at FILE=TIME"
)
_SHARE_GROUPS: Final = (
    "a table of kafka-share-groups is not read, as a share group has no owners of partitions: give the log "
    "of its coordinator, or of its consumers"
)
#: The time of a line that is no table's ends before this character.
_FRONT_MAX: Final = 80


class DescribedGroups(LogSource):
    """``at``: when the command ran, unless lines of the output say it: a line that is a time holds for the
    tables behind it, on ``day`` or that of ``at`` if it has no date. ``group``: of tables without the column
    GROUP, which came with Kafka 2.4. ``tz``: of times that name no zone."""

    def __init__(
        self, log: Log, number: int, at: Instant | None, group: str | None, tz: tzinfo, day: date | None
    ) -> None:
        super().__init__(log, number, tz, day or (None if at is None else date_of(at.us)))
        self._group = group
        self._now_us: int | None = None
        #: Whether the tables stand between the lines of a program's log.
        self._is_log = False
        self._front = FrontReader(None, self.clock.order)
        self._snapshots: dict[str, Snapshot] = {}
        #: The table that rows may follow, and the line of its header.
        self._header: Header | None = None
        self._header_line = 0
        self.writers.add(Writer.GROUPS_COMMAND)
        if at is not None:
            self._set_time(at)

    def observations(self) -> Iterator[Observation]:
        for file in self.files():
            for raw in self.pieces(file):
                yield from self._line(raw.decode("utf-8", "replace").strip())
        yield from self._close()

    def _set_time(self, said: Instant) -> None:
        self._now_us = self.clock.us(said)

    def _line(self, text: str) -> Iterator[Observation]:
        said = self._time(text)
        if said is not None:
            if self._now_us is None and self._is_log:
                self._set_time(said)  # of what stands before the first line that has a time
            yield from self._close()
            self._set_time(said)
            self._header = None
            return
        if is_of_share_groups(text):
            self._refuse_share_groups()
        if (head := header(text)) is not None:
            self._header, self._header_line = head, self.lines
        elif (remark := _REMARK.search(text)) is not None:
            self.understood += 1
            self._snapshot(remark["group"]).remark(remark["what"])
        elif not text:
            self._header = None
        elif self._header is not None:
            self._row(self._header, text)

    def _snapshot(self, group: str) -> Snapshot:
        return self._snapshots.setdefault(group, Snapshot(group, self.lines))

    def _time(self, text: str) -> Instant | None:
        """The time that a line is, or the time of a program's line."""
        prefix = find_prefix(text)
        self._is_log = self._is_log or prefix is not None
        if self._header is not None and prefix is None and cells(self._header, text) is not None:
            return None
        return instant(text) or self._front.time(
            text[:_FRONT_MAX] if prefix is None else text[: prefix.start]
        )

    def _refuse_share_groups(self) -> None:
        sentence = f"{self.place(self.lines)}: {_SHARE_GROUPS}"
        if not self._is_log:
            raise InputError(sentence)
        self.damage = self.damage or [sentence]

    def _row(self, head: Header, text: str) -> None:
        row = cells(head, text)
        if row is None:
            self.count_not_understood(text, f"{head.table}: {len(text.split())} cells")
            return
        group = row.get("GROUP", self._group)
        if group is None:
            raise InputError(f"{self.place(self.lines)}: the table names no group: name it with --group")
        snapshot = self._snapshot(group)
        before = snapshot.tables.setdefault(head.table, self._header_line)
        if before != self._header_line and self._now_us is None:
            raise InputError(f"{self.place(self.lines)}: group {group} {_AGAIN}")
        try:
            snapshot.add(head.table, row)
        except ValueError:
            self.count_not_understood(text, f"{head.table}: a cell is no number")
            return
        self.understood += 1

    def _close(self) -> Iterator[Observation]:
        """The snapshots at one time. Those without one say so."""
        snapshots, self._snapshots = self._snapshots, {}
        for one in snapshots.values():
            time_us = self._now_us or 0
            self.see_time(time_us)
            fields = {**one.fields(), "is_timeless": self._now_us is None}
            if self._now_us is None:
                self.clock.lacks = "time"
            yield Observation(time_us, self.number, one.line, DESCRIBED, one.group, fields)


class Table(StrEnum):
    """Which table a header begins."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"


#: The column that only this table has.
_MARKS: Final[Mapping[Table, str]] = {
    Table.OFFSETS: "LOG-END-OFFSET",
    Table.MEMBERS: "#PARTITIONS",
    Table.STATE: "ASSIGNMENT-STRATEGY",
}
_COLUMN = re.compile(r"COORDINATOR \(ID\)|\S+")
#: The coordinator's address and id are one cell.
_COORDINATOR_ID = re.compile(r"(?<=\S)\s+(?=\(-?\d+\))")
_NOTHING: Final = "-"
#: ``orders:0,1;other:3`` since 4.0, ``orders(0,1), other(3)`` before.
_ASSIGNED = re.compile(r"([\w.-]+)(?::(\d+(?:,\d+)*)|\((\d+(?:,\s*\d+)*)\))")
#: Columns whose cells may hold spaces, if they are the last ones of a table.
_LAST: Final = "ASSIGNMENT"


class Header(NamedTuple):
    table: Table
    columns: tuple[str, ...]


def header(text: str) -> Header | None:
    """The header that a line is; None if it is none."""
    columns = tuple(_COLUMN.findall(text))
    if len(columns) < 4 or not all(column.upper() == column for column in columns):
        return None
    for table, mark in _MARKS.items():
        if mark in columns:
            return Header(table, columns)
    return None


def is_of_share_groups(text: str) -> bool:
    """Whether a line is of what kafka-share-groups prints."""
    columns = set(text.split())
    return (
        text.startswith("Share group '")
        or {"PARTITION", "START-OFFSET"} <= columns
        or {"#PARTITIONS", "MEMBER-EPOCH"} <= columns
        or ({"(ID)", "STATE", "#MEMBERS"} <= columns and "ASSIGNMENT-STRATEGY" not in columns)
    )


def cells(head: Header, text: str) -> Mapping[str, str] | None:
    """Column -> cell of a row, without cells that are "-"; None if the row does not fit the header."""
    if head.table is Table.STATE:
        text = _COORDINATOR_ID.sub("", text)
    found = text.split()
    if len(found) > len(head.columns) and head.columns[-1] == _LAST:
        last = len(head.columns) - 1
        found = [*found[:last], " ".join(found[last:])]
    if head.table is Table.STATE and len(found) == len(head.columns) - 1:
        found.insert(head.columns.index(_MARKS[Table.STATE]), _NOTHING)  # blank before Kafka 4 if it has none
    if len(found) != len(head.columns):
        return None
    return {column: cell for column, cell in zip(head.columns, found, strict=True) if cell != _NOTHING}


def assigned(cell: str) -> list[str]:
    """The partitions of an assignment's cell, as topic-partition."""
    return [
        f"{topic}-{number.strip()}"
        for topic, new, old in _ASSIGNED.findall(cell)
        for number in (new or old).split(",")
    ]


#: States in which a classic group's coordinator does not say what its members have.
REBALANCING: Final = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})

#: The kind of an observation that describes a group, and of one that says where the logs of its topics end.
DESCRIBED: Final = "described"
LOG_ENDS: Final = "log-ends"


@dataclass(slots=True)
class Snapshot:
    """``members``: by member id; None if nothing says who they are. ``line``: the first line about the group.
    ``tables``: which tables name the group, and the lines of their headers.

    A member's ``partitions`` are None if nothing says what it has.
    """

    group: str
    line: int
    tables: dict[Table, int] = field(default_factory=dict)
    state: str | None = None
    protocol: str | None = None
    epoch: int | None = None
    members: dict[str, dict[str, Any]] | None = None
    committed: dict[str, int] = field(default_factory=dict)

    def add(self, table: Table, row: Mapping[str, str]) -> None:
        """A row of a table. Raises ValueError for a cell that should be a number, and then takes nothing."""
        for column in _NUMBERS:
            _number(row, column)
        if table is Table.STATE:
            self.state, self.protocol = row.get("STATE"), row.get("ASSIGNMENT-STRATEGY")
            self.epoch = _number(row, "GROUP-EPOCH")
            return
        member = self._member(row)
        if table is Table.MEMBERS and member is not None:
            self._assign(member, row)
        elif table is Table.OFFSETS and "TOPIC" in row and "PARTITION" in row:
            partition = f"{row['TOPIC']}-{int(row['PARTITION'])}"
            offset = _number(row, "CURRENT-OFFSET")
            if offset is not None:
                self.committed[partition] = offset
            if member is not None:
                owned = member["partitions"] or []
                member["partitions"] = owned if partition in owned else [*owned, partition]
        elif member is not None and member["partitions"] is None:
            member["partitions"] = []

    def remark(self, what: str) -> None:
        """The command says that the group is rebalancing, and does not print what its members have, or that
        it has no active members."""
        if what == "is rebalancing":
            self.state = self.state or "PreparingRebalance"
        else:
            self.members, self.state = {}, self.state or "Empty"

    @property
    def _are_hidden(self) -> bool:
        """Whether no row says who the members are. Those of a classic group that rebalances have nothing."""
        return self.members is None or (not self.members and self.state in REBALANCING)

    def fields(self) -> dict[str, Any]:
        """The fields of an observation."""
        return {
            "state": self.state,
            "protocol": self.protocol,
            "epoch": self.epoch,
            "members": None if self._are_hidden else [*(self.members or {}).values()],
            "committed": dict(self.committed),
        }

    def _member(self, row: Mapping[str, str]) -> dict[str, Any] | None:
        if self.members is None:
            self.members = {}
        member_id = row.get("CONSUMER-ID")
        if member_id is None:
            return None
        member = self.members.setdefault(
            member_id,
            {"member_id": member_id, "instance": None, "client": None, "partitions": None, "epoch": None},
        )
        member["client"] = row.get("CLIENT-ID") or member["client"]
        member["instance"] = row.get("GROUP-INSTANCE-ID") or member["instance"]
        return member

    def _assign(self, member: dict[str, Any], row: Mapping[str, str]) -> None:
        cell = row.get("CURRENT-ASSIGNMENT", row.get("ASSIGNMENT"))
        member["epoch"] = _number(row, "CURRENT-EPOCH")
        if cell is not None:
            member["partitions"] = assigned(cell)
        elif _number(row, "#PARTITIONS") == 0:
            member["partitions"] = []
        if member["epoch"] is not None:
            member["target_epoch"] = _number(row, "TARGET-EPOCH")
            member["target"] = assigned(row.get("TARGET-ASSIGNMENT", ""))


#: Columns of numbers.
_NUMBERS: Final = (
    "GROUP-EPOCH",
    "PARTITION",
    "CURRENT-OFFSET",
    "#PARTITIONS",
    "CURRENT-EPOCH",
    "TARGET-EPOCH",
)


def _number(row: Mapping[str, str], column: str) -> int | None:
    return int(row[column]) if column in row else None
