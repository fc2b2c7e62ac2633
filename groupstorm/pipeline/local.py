"""The local engine: traces in one pass each, in this process. It needs neither Spark nor Java."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupstorm.figures import Figures
from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.pipeline.local_tables import GroupFold, GroupTables, all_rows
from groupstorm.pipeline.results import TABLES, EngineResult, Key, Request, arrow_figures, arrow_table
from groupstorm.problems import InputError, writing
from groupstorm.trace.reader import Row, read_entries
from groupstorm.trace.rows import TraceEntry

if TYPE_CHECKING:
    import pyarrow

#: The file that Spark leaves in a folder of Parquet files that it has completed; so do we.
COMPLETE_MARK = "_SUCCESS"

#: The first columns of every table.
KEYS = {"run": "string", "group": "string"}


def analyze_locally(request: Request) -> tuple[EngineResult, Mapping[Key, GroupTables]]:
    """Read every trace once. Raises InputError naming the place of a line that is not a row."""
    groups: list[Key] = []
    figures: dict[Key, Figures] = {}
    tables: dict[Key, GroupTables] = {}
    for run, trace in request.traces.items():
        content = read_groups(read_entries(trace), request.groups, request.window)
        if not content.groups:
            raise InputError(f"{trace}: the trace has no rows")
        for group in content.groups:
            groups.append((run, group))
            if group in content.figures:
                figures[run, group] = content.figures[group]
                tables[run, group] = content.tables[group]
    handovers = _slowest_handovers(all_rows(tables, "handovers"), request.slowest)
    return EngineResult(groups, figures, handovers, _rounds_by_cause(all_rows(tables, "rounds"))), tables


class TraceContent(NamedTuple):
    """A trace's content: all its groups, and figures and tables of those that were asked for and have rows
    in the window. Groups stand in the order of their names."""

    groups: Sequence[str]
    figures: Mapping[str, Figures]
    tables: Mapping[str, GroupTables]


def read_groups(
    entries: Iterable[tuple[Row, TraceEntry | None]], wanted: Sequence[str] = (), window: Window = WHOLE
) -> TraceContent:
    """Read the rows of one trace once. ``wanted``: the groups that count; none: all."""
    of_trace: dict[str, GroupFold | None] = {}
    in_window: set[str] = set()
    now_us = 0
    for row, entry in entries:
        group, now_us = row["group"], row["time_us"]
        if group not in of_trace:
            of_trace[group] = GroupFold(window) if not wanted or group in wanted else None
        chosen = of_trace[group]
        if chosen is not None and window.holds(now_us):
            in_window.add(group)
            chosen.add(row, entry)
    end_us = window.end(now_us)
    folds = {group: fold for group, fold in sorted(of_trace.items()) if fold and group in in_window}
    figures = {group: fold.finish(end_us) for group, fold in folds.items()}
    return TraceContent(sorted(of_trace), figures, {group: fold.tables for group, fold in folds.items()})


def _slowest_handovers(handovers: Iterable[Mapping[str, Any]], per_group: int) -> list[Sequence[Any]]:
    """The longest gaps of each group, those of one kind that one round closed in one row."""
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for gap in handovers:
        generations = gap["generations"]
        round_us = gap["prepared_us"] if generations is None or generations > 0 else None
        alone_us = gap["from_us"] if round_us is None else None
        kind = gap["run"], gap["group"], round_us, alone_us, gap["ended_by"], gap["cause"]
        kinds.setdefault(kind, []).append(gap)
    found = []
    for (run, group, round_us, *_), gaps in kinds.items():
        worst = max(gaps, key=itemgetter("gap_us", "partition", "from_us"))
        numbers = [len(gaps), worst["from_us"], worst["gap_us"]]
        names = [worst[name] for name in ("old_owner", "new_owner", "generations", "ended_by", "cause")]
        found.append([run, group, worst["partition"], *numbers, *names, round_us, worst["rebalance_cause"]])
    found.sort(key=lambda row: (row[0], row[1], -row[5], row[4], row[2]))
    slowest: list[Sequence[Any]] = []
    for _, rows in groupby(found, key=itemgetter(0, 1)):
        slowest += [*rows][:per_group]
    return slowest


def _rounds_by_cause(rounds: Iterable[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """Rounds summed up by what caused them, the most frequent cause first."""
    causes: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in rounds:
        causes.setdefault((one["run"], one["group"], one["cause"]), []).append(one)
    found = []
    for key, ones in causes.items():
        latencies = [one["latency_us"] for one in ones if one["latency_us"] is not None]
        found.append(
            [
                *key,
                len(ones),
                sum(one["stable_us"] is not None for one in ones),
                max((one["members"] for one in ones if one["members"] is not None), default=None),
                sum(latencies) / len(latencies) if latencies else None,
                max(latencies, default=None),
            ]
        )
    return sorted(found, key=lambda row: (row[0], row[1], -row[3], row[2]))


def write_tables(tables: Mapping[Key, GroupTables], figures: Mapping[str, Figures], out: Path) -> None:
    """One folder of a Parquet file per table in ``out``.

    Raises InputError if pyarrow is not installed, OutputError if ``out`` cannot be written.
    """
    for name in TABLES:
        _write_table(arrow_table(name, all_rows(tables, name), KEYS), out / name)
    rows = (({"run": run}, one) for run, one in figures.items())
    _write_table(arrow_figures(rows, {"run": "string"}), out / "figures")


def _write_table(table: pyarrow.Table, folder: Path) -> None:
    from pyarrow import parquet

    with writing(folder):
        folder.mkdir()
        parquet.write_table(table, folder / "part-00000.parquet", compression="zstd")
        (folder / COMPLETE_MARK).touch()
