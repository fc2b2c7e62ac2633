"""Traces -> figures, summaries and tables: all work of the local engine, and of a task on Spark.

The rows of tables go on soon after they are complete, so that no more is held than what is open: intervals,
gaps, the last event of each member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, starmap
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.garbage import few_collections
from groupstorm.pipeline.group_tables import GroupFold, GroupTables
from groupstorm.pipeline.results import TABLES, EngineResult, Handover, Key, Request, Round, TableRow
from groupstorm.pipeline.table_files import TableFiles
from groupstorm.problems import InputError
from groupstorm.trace.reader import Row, read_typed
from groupstorm.trace.rows import TraceEntry, TypedRow, typed_row

#: The tables whose rows are summed up.
SUMMED_UP = ("handovers", "rounds")

_LONGEST = attrgetter("gap_us", "partition", "from_us")


@dataclass(slots=True)
class _Rounds:
    """The rounds of one cause."""

    count: int = 0
    stable: int = 0
    members: int | None = None
    latencies: int = 0
    latency_sum_us: int = 0
    latency_max_us: int | None = None


class Summary:
    """Takes the rows of one group's tables as they are complete."""

    def __init__(self) -> None:
        #: (round, beginning, ended_by, cause) -> the gaps of this kind: their number, and the longest one.
        self._gaps: dict[tuple[Any, ...], tuple[int, Handover]] = {}
        self._rounds: dict[str, _Rounds] = {}

    def add(self, rows: Iterable[TableRow]) -> None:
        """Take rows; those of other tables than `SUMMED_UP` are passed over."""
        for row in rows:
            if isinstance(row, Handover):
                self._add_gap(row)
            elif isinstance(row, Round):
                self._add_round(row)

    def slowest_handovers(self, most: int) -> Iterator[Sequence[Any]]:
        """The longest gaps, at most so many, those of one kind that one round closed in one row: columns as
        in `SlowHandover`."""
        found = []
        for (round_us, *_), (number, worst) in self._gaps.items():
            numbers = (worst.partition, number, worst.from_us, worst.gap_us)
            names = (worst.old_owner, worst.new_owner, worst.generations, worst.ended_by, worst.cause)
            found.append((*numbers, *names, round_us, worst.rebalance_cause))
        return islice(sorted(found, key=lambda row: (-row[3], row[2], row[0])), most)

    def rounds_by_cause(self) -> list[Sequence[Any]]:
        """Columns as in `RoundsByCause`, the most frequent cause first."""
        found = [
            (
                *(cause, one.count, one.stable, one.members),
                one.latency_sum_us / one.latencies if one.latencies else None,
                one.latency_max_us,
            )
            for cause, one in self._rounds.items()
        ]
        return sorted(found, key=lambda row: (-row[1], row[0]))

    def _add_gap(self, gap: Handover) -> None:
        generations = 0 if gap.new_owner is None else gap.generations
        round_us = gap.prepared_us if generations is None or generations > 0 else None
        alone_us = gap.from_us if round_us is None else None
        kind = round_us, alone_us, gap.ended_by, gap.cause
        number, worst = self._gaps.get(kind, (0, gap))
        if gap.gap_us >= worst.gap_us and _LONGEST(gap) > _LONGEST(worst):
            worst = gap
        self._gaps[kind] = number + 1, worst

    def _add_round(self, row: Round) -> None:
        one = self._rounds.setdefault(row.cause, _Rounds())
        one.count += 1
        one.stable += row.stable_us is not None
        if row.members is not None:
            one.members = max(row.members, one.members or 0)
        latency_us = row.latency_us
        if latency_us is not None:
            one.latencies += 1
            one.latency_sum_us += latency_us
            one.latency_max_us = max(latency_us, one.latency_max_us or 0)


NOTHING_COUNTED: Final = "nothing is counted: it ends before --from or figures_from, or begins after --to"
#: Rows of the trace after which the rows of tables that are complete go on.
_ROWS_PER_BATCH = 4096
_GROUP = itemgetter(1)


class Part(NamedTuple):
    """A trace, or with several ``parts`` some of its groups."""

    run: str
    trace: Path
    part: int = 0
    parts: int = 1

    def includes(self, group: str) -> bool:
        """Whether this group is in this part of the trace."""
        return self.parts == 1 or crc32(group.encode()) % self.parts == self.part


def analyze_traces(
    request: Request, parts: Iterable[Part], folder: Path | None = None, number: int = 0
) -> EngineResult:
    """Read each trace once, one after the other, and write their tables into files with this ``number``.

    ``folder``: for the tables; None: no tables. Raises InputError naming the place of a line that is not a
    row, OutputError if a table cannot be written.
    """
    with few_collections(), TableFiles(folder, number) as files:
        return put_together(_analyze(request, part, files) for part in parts)


def _analyze(request: Request, part: Part, files: TableFiles) -> EngineResult:
    wanted, run = request.groups, part.run

    def is_included(group: str) -> bool:
        return part.includes(group) and (not wanted or group in wanted)

    fold = TraceFold(is_included, request.window, TABLES if files.are_written else SUMMED_UP)
    summaries: dict[str, Summary] = {}

    def hand_on() -> None:
        for group, table, rows in fold.take():
            summaries.setdefault(group, Summary()).add(rows)
            files.add(table, {"run": run, "group": group}, rows)

    trace = read_typed(part.trace)
    while rows := [*islice(trace, _ROWS_PER_BATCH)]:
        fold.add_all(rows)
        if len(rows) == _ROWS_PER_BATCH:
            hand_on()
    if not fold.groups:
        raise InputError(f"{part.trace}: the trace has no rows")
    figures = fold.finish()
    hand_on()
    handovers: list[Sequence[Any]] = []
    rounds: list[Sequence[Any]] = []
    for group, summary in summaries.items():
        handovers += [(run, group, *row) for row in summary.slowest_handovers(request.slowest)]
        rounds += [(run, group, *row) for row in summary.rounds_by_cause()]
    of_run = {(run, group): one for group, one in figures.items()}
    return EngineResult([(run, group) for group in fold.groups], of_run, handovers, rounds)


def put_together(results: Iterable[EngineResult]) -> EngineResult:
    """The results of some traces, or parts of them, as one: all that it lists is in the order of runs."""
    groups: set[Key] = set()
    figures: dict[Key, Figures] = {}
    handovers: list[Sequence[Any]] = []
    rounds: list[Sequence[Any]] = []
    for one in results:
        groups.update(one.groups)
        figures |= one.figures
        handovers += one.handovers
        rounds += one.rounds
    by_group = itemgetter(0, 1)
    return EngineResult(
        sorted(groups), figures, sorted(handovers, key=by_group), sorted(rounds, key=by_group)
    )


class TraceFold:
    """Takes the rows of one trace, in their order, and folds those of each group that is included."""

    def __init__(
        self, includes: Callable[[str], bool], window: Window = WHOLE, tables: Collection[str] = TABLES
    ) -> None:
        self._includes = includes
        self._window = window
        self._tables = tables
        #: None: a group that is not included.
        self._folds: dict[str, GroupFold | None] = {}
        self._in_window: set[str] = set()
        #: When the figures of each group begin to count.
        self._from_us: dict[str, int] = {}
        self._now_us = 0

    @property
    def groups(self) -> list[str]:
        """All groups of the trace so far, in the order of their names."""
        return sorted(self._folds)

    def add_all(self, rows: Iterable[TypedRow]) -> None:
        """Take the next rows."""
        to_us = self._window.to_us
        for group, together in groupby(rows, _GROUP):
            if group not in self._folds:
                included = self._includes(group)
                self._folds[group] = GroupFold(self._window, self._tables) if included else None
                of_group = [*together]
                self._from_us[group] = self._window.counted_from(of_group[0][4])
            else:
                of_group = [*together]
            self._now_us = of_group[-1][2]
            if to_us is not None:
                of_group = [row for row in of_group if row[2] <= to_us]
            fold = self._folds[group]
            if fold is not None and of_group:
                self._in_window.add(group)
                fold.add_all(of_group)

    def take(self) -> Iterator[tuple[str, str, list[TableRow]]]:
        """The rows that are complete since the last call, by group and table."""
        for group, fold in self._chosen():
            for table, rows in fold.tables.take():
                yield group, table, rows

    def finish(self) -> dict[str, Figures]:
        """The trace ends: complete the tables, and return the figures of each group that it counts."""
        end_us = self._window.end(self._now_us)
        self._in_window = {group for group in self._in_window if self._from_us[group] <= end_us}
        return {group: fold.finish(end_us) for group, fold in self._chosen()}

    def tables(self) -> dict[str, GroupTables]:
        """The tables of each group."""
        return {group: fold.tables for group, fold in self._chosen()}

    def _chosen(self) -> list[tuple[str, GroupFold]]:
        """The groups that are included and have rows in the window."""
        folds = sorted(self._folds.items())
        return [(group, fold) for group, fold in folds if fold is not None and group in self._in_window]


class TraceContent(NamedTuple):
    """A trace's content: all its groups, and figures and tables of those that were asked for and have rows
    in the window. Groups stand in the order of their names."""

    groups: Sequence[str]
    figures: Mapping[str, Figures]
    tables: Mapping[str, GroupTables]


def read_groups(
    entries: Iterable[tuple[Row, TraceEntry | None]], wanted: Sequence[str] = (), window: Window = WHOLE
) -> TraceContent:
    """Read the rows of one trace once, and keep its tables. ``wanted``: the groups that count; none: all."""
    fold = TraceFold(lambda group: not wanted or group in wanted, window)
    rows = starmap(typed_row, entries)
    while some := [*islice(rows, _ROWS_PER_BATCH)]:
        fold.add_all(some)
    return TraceContent(fold.groups, fold.finish(), fold.tables())
