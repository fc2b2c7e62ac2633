"""Reads a file into which somebody pasted the output of kafka-consumer-groups --describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, tzinfo
from typing import Final, NamedTuple

from groupstorm.imports.envelopes import FrontReader
from groupstorm.imports.groups_command.snapshot import DESCRIBED, Snapshot
from groupstorm.imports.groups_command.tables import Header, cells, header, is_of_share_groups
from groupstorm.imports.lines import Log
from groupstorm.imports.observation import Observation
from groupstorm.imports.prefixes import Writer, find_prefix
from groupstorm.imports.source import LogSource
from groupstorm.imports.times import Instant, date_of, instant
from groupstorm.problems import InputError

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


class _Table(NamedTuple):
    """A table that rows may follow. ``line``: that of its header."""

    header: Header
    line: int


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
        self._table: _Table | None = None
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
            self._table = None
            return
        if is_of_share_groups(text):
            self._refuse_share_groups()
        head = header(text)
        remark = _REMARK.search(text)
        if head is not None:
            self._table = _Table(head, self.lines)
        elif remark is not None:
            self._remark(remark["group"], remark["what"])
        elif not text:
            self._table = None
        elif self._table is not None:
            self._row(self._table, text)

    def _time(self, text: str) -> Instant | None:
        """The time that a line is, or the time of a program's line."""
        prefix = find_prefix(text)
        self._is_log = self._is_log or prefix is not None
        if self._table is not None and prefix is None and cells(self._table.header, text) is not None:
            return None
        return instant(text) or self._front.time(
            text[:_FRONT_MAX] if prefix is None else text[: prefix.start]
        )

    def _refuse_share_groups(self) -> None:
        sentence = f"{self.place(self.lines)}: {_SHARE_GROUPS}"
        if not self._is_log:
            raise InputError(sentence)
        self.damage = self.damage or [sentence]

    def _remark(self, group: str, what: str) -> None:
        self.understood += 1
        snapshot = self._snapshots.setdefault(group, Snapshot(group, self.lines))
        if what == "is rebalancing":
            snapshot.is_rebalancing()
        else:
            snapshot.no_members()

    def _row(self, table: _Table, text: str) -> None:
        row = cells(table.header, text)
        if row is None:
            self.count_not_understood(text, f"{table.header.table}: {len(text.split())} cells")
            return
        group = row.get("GROUP", self._group)
        if group is None:
            raise InputError(f"{self.place(self.lines)}: the table names no group: name it with --group")
        snapshot = self._snapshots.setdefault(group, Snapshot(group, self.lines))
        before = snapshot.tables.setdefault(table.header.table, table.line)
        if before != table.line and self._now_us is None:
            raise InputError(f"{self.place(self.lines)}: group {group} {_AGAIN}")
        try:
            snapshot.add(table.header.table, row)
        except ValueError:
            self.count_not_understood(text, f"{table.header.table}: a cell is no number")
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
