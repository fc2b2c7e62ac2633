"""Figures on Spark: Spark sorts the rows of every group, and the fold of `groupstorm.figures` reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.by_group import Window
from groupstorm.pipeline.facts import GROUP
from groupstorm.pipeline.read import explain
from groupstorm.pipeline.results import Key
from groupstorm.problems import InputError

if TYPE_CHECKING:
    import pyarrow

_SCHEMA = "run string, `group` string, figures string, problem string"


def figures_by_run(
    rows: DataFrame, ends: DataFrame, traces: Mapping[str, Path], window: Window
) -> dict[Key, Figures]:
    """(run, group) -> figures; ``ends``: per run, where its trace ends.

    Raises InputError naming the place of a row that does not fit the schema.
    """
    figures = {}
    for row in sorted(folded(rows, ends, window).collect(), key=lambda row: (row["run"], row["group"])):
        if row["problem"] is not None:
            explain(traces[row["run"]])
            raise InputError(f"{traces[row['run']]}: {row['problem']}")
        figures[row["run"], row["group"]] = Figures(**json.loads(row["figures"]))
    return figures


def folded(rows: DataFrame, ends: DataFrame, window: Window) -> DataFrame:
    """One row per run and group: its figures as JSON, or the problem of a row that does not fit the schema.

    A worker holds one batch of rows at a time, whatever a group's size.
    """
    in_order = rows.join(f.broadcast(ends), "run").repartition(*GROUP).sortWithinPartitions(*GROUP, "seq")
    return in_order.mapInArrow(_fold(window.from_us), _SCHEMA)


def _fold(from_us: int) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """What a worker does with batches of rows that are sorted by run, group and seq."""

    def fold(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        names = ("run", "group", "figures", "problem")
        for found in _results(_rows(batches), from_us):
            columns = [pyarrow.array([value], pyarrow.string()) for value in found]
            yield pyarrow.RecordBatch.from_arrays(columns, names=names)

    return fold


def _rows(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        columns = [*zip(batch.schema.names, batch.columns, strict=True)]
        used = {name: column.to_pylist() for name, column in columns if column.null_count < len(column)}
        for values in zip(*used.values(), strict=True):
            yield {name: value for name, value in zip(used, values, strict=True) if value is not None}


def _results(
    rows: Iterator[dict[str, Any]], from_us: int
) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Run, group, and the figures as JSON or the problem of a row."""
    key: Key | None = None
    end_us = 0
    accumulator, problem = FiguresAccumulator(from_us), None
    for row in rows:
        if key != (row["run"], row["group"]):
            if key is not None:
                yield *key, *_result(accumulator, problem, end_us)
            key, end_us = (row["run"], row["group"]), row["end_us"]
            accumulator, problem = FiguresAccumulator(from_us), None
        if problem is None:
            try:
                accumulator.add_row(row)
            except InputError as mismatch:
                problem = str(mismatch)
    if key is not None:
        yield *key, *_result(accumulator, problem, end_us)


def _result(
    accumulator: FiguresAccumulator, problem: str | None, end_us: int
) -> tuple[str | None, str | None]:
    if problem is not None:
        return None, problem
    return json.dumps(accumulator.figures(end_us).to_json()), None
