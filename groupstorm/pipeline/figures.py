"""Figures on Spark: Spark sorts the rows of every group, and the fold of `groupstorm.figures` reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

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
    rows: DataFrame, traces: Mapping[str, Path], window: Window, ends: Mapping[str, int]
) -> dict[Key, Figures]:
    """(run, group) -> figures; ``ends``: run -> where its trace ends.

    A worker holds one batch of rows at a time, whatever a group's size. Raises InputError naming the place of
    a row that does not fit the schema.
    """
    in_order = rows.repartition(*GROUP).sortWithinPartitions(*GROUP, "seq")
    found = in_order.mapInArrow(_fold(window.from_us, dict(ends)), _SCHEMA).collect()
    figures = {}
    for row in sorted(found, key=lambda row: (row["run"], row["group"])):
        if row["problem"] is not None:
            explain(traces[row["run"]])
            raise InputError(f"{traces[row['run']]}: {row['problem']}")
        figures[row["run"], row["group"]] = Figures(**json.loads(row["figures"]))
    return figures


def _fold(
    from_us: int, ends: Mapping[str, int]
) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """What a worker does with batches of rows that are sorted by run, group and seq."""

    def fold(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        names = ("run", "group", "figures", "problem")
        for found in _results(_rows(batches), from_us, ends):
            columns = [pyarrow.array([value], pyarrow.string()) for value in found]
            yield pyarrow.RecordBatch.from_arrays(columns, names=names)

    return fold


def _rows(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        names = batch.schema.names
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _results(
    rows: Iterator[dict[str, Any]], from_us: int, ends: Mapping[str, int]
) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Run, group, and the figures as JSON or the problem of a row."""
    key: Key | None = None
    accumulator, problem = FiguresAccumulator(from_us), None
    for row in rows:
        if key != (row["run"], row["group"]):
            if key is not None:
                yield *key, *_result(accumulator, problem, ends[key[0]])
            key = row["run"], row["group"]
            accumulator, problem = FiguresAccumulator(from_us), None
        if problem is None:
            try:
                accumulator.add_row(row)
            except InputError as mismatch:
                problem = str(mismatch)
    if key is not None:
        yield *key, *_result(accumulator, problem, ends[key[0]])


def _result(
    accumulator: FiguresAccumulator, problem: str | None, end_us: int
) -> tuple[str | None, str | None]:
    if problem is not None:
        return None, problem
    return json.dumps(accumulator.figures(end_us).to_json()), None
