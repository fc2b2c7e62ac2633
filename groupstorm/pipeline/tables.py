"""All tables of a set of traces, and their figures, from one pass over the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.figures import Figures
from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.pipeline.fold import FIGURES, GROUP, folded
from groupstorm.pipeline.read import explain
from groupstorm.pipeline.results import TABLES, Key
from groupstorm.problems import InputError


class TraceTables:
    """DataFrames keyed by ``run`` and ``group``: what follows from the rows of any number of traces.

    ``ends``: per run, where its trace ends (``end_us``); None: with its last row. What the pass has found is
    kept in columns, in memory or on disk.
    """

    def __init__(self, rows: DataFrame, ends: DataFrame | None = None, window: Window = WHOLE) -> None:
        self._rows = rows
        self._ends = last_rows(rows) if ends is None else ends
        self._window = window

    @property
    def intervals(self) -> DataFrame:
        return self._table("intervals")

    @property
    def handovers(self) -> DataFrame:
        return self._table("handovers")

    @property
    def rounds(self) -> DataFrame:
        return self._table("rounds")

    @property
    def members(self) -> DataFrame:
        return self._table("members")

    def figures(self, traces: Mapping[str, Path]) -> dict[Key, Figures]:
        """(run, group) -> figures, in their order. Raises InputError naming the place of a row that does not
        fit the schema."""
        figures = {}
        for row in sorted(self._table(FIGURES).collect(), key=lambda row: (row["run"], row["group"])):
            if row["problem"] is not None:
                explain(traces[row["run"]])
                raise InputError(f"{traces[row['run']]}: {row['problem']}")
            figures[row["run"], row["group"]] = Figures(**json.loads(row[FIGURES]))
        return figures

    def _table(self, name: str) -> DataFrame:
        columns = TABLES.get(name, (FIGURES, "problem"))
        return self._found.where(f.col("table") == name).select(*GROUP, *columns)

    @cached_property
    def _found(self) -> DataFrame:
        return folded(self._rows, self._ends, self._window).persist(StorageLevel.MEMORY_AND_DISK)


def last_rows(rows: DataFrame) -> DataFrame:
    """Per run, the time of its last row (``end_us``)."""
    return rows.groupBy("run").agg(f.max("time_us").alias("end_us"))
