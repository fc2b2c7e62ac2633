"""Functions from DataFrame to DataFrame: from the rows of traces to each table, for any number of runs.

``rows`` have the columns of a trace and ``run`` (`read_traces`). A run ends with its last row. Tables are
keyed by ``run`` and ``group``; `docs/analyze.md` says what their columns mean.

Spark sorts the rows of every group, and one Python task reads them by the fold of the local engine. What it
has found goes on at once, so that it holds no more than what is open: intervals, gaps, the last event of each
member.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.pipeline.group_tables import GroupFold
from groupstorm.pipeline.results import TABLES, Key, TableRow, figures_schema
from groupstorm.problems import InputError
from groupstorm.trace.parquet import batch_rows
from groupstorm.trace.rows import read_row, typed_row

if TYPE_CHECKING:
    import pyarrow

GROUP = ("run", "group")

#: Beside the tables: a row per group with its figures as JSON, or with the problem of a row that does not fit
#: the schema.
FIGURES = "figures"

#: The columns of all tables together; those of one name are of one type.
_FOUND: Mapping[str, str] = {
    **dict.fromkeys((*GROUP, "table", FIGURES, "problem"), "string"),
    **reduce(or_, map(dict, TABLES.values())),
}


def intervals(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per time in which a member owned a partition without a break."""
    return table(folded(rows, window), "intervals")


def handovers(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per gap between two owners of a partition, with its phases and the round that closed it."""
    return table(folded(rows, window), "handovers")


def rounds(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per rebalance: its cause, its generation, and when each phase of it was over."""
    return table(folded(rows, window), "rounds")


def members(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per event of a member, and until when the member stayed so."""
    return table(folded(rows, window), "members")


def figures(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per run and group with the figures of a storm (`docs/figures.md`); null: not known.

    The job fails if a row does not fit the schema.
    """
    read = f.from_json(FIGURES, figures_schema()).alias("found")
    checked = f.when(f.col("problem").isNull(), read).otherwise(f.raise_error(f.col("problem")))
    found = table(folded(rows, window), FIGURES)
    return found.select(*GROUP, checked.alias("found")).select(*GROUP, "found.*")


def folded(rows: DataFrame, window: Window = WHOLE, ends: DataFrame | None = None) -> DataFrame:
    """The rows of all tables, each with the name of its ``table``, and the figures of each group.

    ``ends``: per run, where its trace ends (``end_us``); None: with its last row.
    """
    if ends is None:
        ends = rows.groupBy("run").agg(f.max("time_us").alias("end_us"))
    in_order = rows.join(f.broadcast(ends), "run").repartition(*GROUP).sortWithinPartitions(*GROUP, "seq")
    schema = ", ".join(f"`{name}` {'bigint' if kind == 'int64' else kind}" for name, kind in _FOUND.items())
    return in_order.mapInArrow(_fold(window), schema)


def table(found: DataFrame, name: str) -> DataFrame:
    """One of `TABLES`, or `FIGURES`, of what `folded` has found."""
    return found.where(f.col("table") == name).select(*GROUP, *_columns(name))


def _columns(table: str) -> Collection[str]:
    """The columns of one of `TABLES`, or of `FIGURES`, behind those of the key."""
    return TABLES.get(table, (FIGURES, "problem"))


class _Group:
    """The fold of one group."""

    def __init__(self, key: Key, end_us: int, window: Window) -> None:
        self.key = key
        self._end_us = end_us
        self._now_us = 0
        self._fold = GroupFold(window)
        self._problem: str | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        if self._problem is not None:
            return
        try:
            self._fold.add_all([typed_row(row, read_row(row, self._now_us, typed=True))])
            self._now_us = row["time_us"]
        except InputError as mismatch:
            self._problem = str(mismatch)

    def found(self) -> Iterator[pyarrow.RecordBatch]:
        """The rows of tables that are complete since the last call."""
        for name, rows in self._fold.tables.take():
            yield self._batch(name, rows)

    def finish(self) -> Iterator[pyarrow.RecordBatch]:
        if self._problem is not None:
            yield self._batch(FIGURES, [(None, self._problem)])
            return
        figures = self._fold.finish(self._end_us)
        yield from self.found()
        yield self._batch(FIGURES, [(json.dumps(figures.to_json()), None)])

    def _batch(self, table: str, rows: Sequence[TableRow | tuple[str | None, ...]]) -> pyarrow.RecordBatch:
        """The rows of a table with the columns of all; those that it does not have are null."""
        import pyarrow

        constant = dict(zip((*GROUP, "table"), (*self.key, table), strict=True))
        columns = dict(zip(_columns(table), zip(*rows, strict=True), strict=True))
        arrays = []
        for name, kind in _FOUND.items():
            type_ = pyarrow.type_for_alias(kind)
            if name in constant:
                arrays.append(pyarrow.repeat(pyarrow.scalar(constant[name], type_), len(rows)))
            elif name in columns:
                arrays.append(pyarrow.array(columns[name], type_))
            else:
                arrays.append(pyarrow.nulls(len(rows), type_))
        return pyarrow.RecordBatch.from_arrays(arrays, [*_FOUND])


def _fold(
    window: Window,
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """The function with which a worker folds batches of rows that are sorted by run, group and seq."""

    def fold(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        group: _Group | None = None
        for batch in batches:
            for row in batch_rows(batch):
                key = row["run"], row["group"]
                if group is None or group.key != key:
                    if group is not None:
                        yield from group.finish()
                    group = _Group(key, row["end_us"], window)
                group.add(row)
            if group is not None:
                yield from group.found()
        if group is not None:
            yield from group.finish()

    return fold
