"""The local engine: traces in one pass each, in this process. It needs neither Spark nor Java."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.figures import Figures
from groupstorm.figures.by_group import GroupsAccumulator
from groupstorm.pipeline.local_tables import GroupTables, all_rows
from groupstorm.pipeline.results import TABLES, EngineResult, Key, Request, figure_columns
from groupstorm.problems import InputError, writing
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.trace.reader import read_entries

if TYPE_CHECKING:
    import pyarrow

#: What Spark leaves in a folder of Parquet files that it has completed; so do we.
COMPLETE_MARK = "_SUCCESS"


def analyze_locally(request: Request) -> tuple[EngineResult, Mapping[Key, GroupTables]]:
    """Read every trace once. Raises InputError naming the place of a line that is not a row."""
    groups: list[Key] = []
    figures: dict[Key, Figures] = {}
    tables: dict[Key, GroupTables] = {}
    for run, trace in request.traces.items():
        accumulators = GroupsAccumulator(request.window)
        of_trace: dict[str, GroupTables | None] = {}
        now_us = -1
        for row, entry in read_entries(trace):
            group, now_us = row["group"], row["time_us"]
            if group not in of_trace:
                wanted = not request.groups or group in request.groups
                of_trace[group] = GroupTables(request.window) if wanted else None
            chosen = of_trace[group]
            if chosen is None:
                accumulators.pass_time(now_us)
                continue
            accumulators.add(group, now_us, entry)
            if entry is not None and request.window.holds(now_us):
                chosen.add(row)
        if now_us < 0:
            raise InputError(f"{trace}: the trace has no rows")
        end_us = request.window.end(now_us)
        by_group = accumulators.figures()
        for group in sorted(of_trace):
            groups.append((run, group))
            chosen = of_trace[group]
            if chosen is not None and group in by_group:
                chosen.finish(end_us)
                figures[run, group], tables[run, group] = by_group[group], chosen
    handovers = _slowest_handovers(all_rows(tables, "handovers"), request.slowest)
    return EngineResult(groups, figures, handovers, _rounds_by_cause(all_rows(tables, "rounds"))), tables


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
    pyarrow = import_pyarrow()
    types = {"string": pyarrow.string(), "int64": pyarrow.int64()}
    keys = [("run", pyarrow.string()), ("group", pyarrow.string())]
    for name, columns in TABLES.items():
        schema = pyarrow.schema([*keys, *((column, types[kind]) for column, kind in columns.items())])
        _write_table(pyarrow.Table.from_pylist([*all_rows(tables, name)], schema), out / name)
    rows = [{"run": run} | {k: _as_map(v) for k, v in one.to_json().items()} for run, one in figures.items()]
    _write_table(pyarrow.Table.from_pylist(rows, _figures_schema()), out / "figures")


def _figures_schema() -> pyarrow.Schema:
    pyarrow = import_pyarrow()
    types = {"int": pyarrow.int64(), "float": pyarrow.float64(), "str": pyarrow.string()}
    fields = [("run", pyarrow.string())]
    for name, kind, is_map in figure_columns():
        fields.append((name, pyarrow.map_(pyarrow.string(), types[kind]) if is_map else types[kind]))
    return pyarrow.schema(fields)


def _as_map(value: object) -> object:
    return [*value.items()] if isinstance(value, Mapping) else value


def _write_table(table: pyarrow.Table, folder: Path) -> None:
    from pyarrow import parquet

    with writing(folder):
        folder.mkdir()
        parquet.write_table(table, folder / "part-00000.parquet", compression="zstd")
        (folder / COMPLETE_MARK).touch()
