"""Functions from DataFrame to DataFrame: from the rows of traces to each table, for any number of runs.

``rows`` have the columns of a trace and ``run`` (`read_traces`). A run ends with its last row. Tables are
keyed by ``run`` and ``group``; `docs/analyze.md` says what their columns mean. One Python task reads the rows
of a group, in their order.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.pipeline.fold import FIGURES, GROUP, folded
from groupstorm.pipeline.results import TABLES, figures_schema
from groupstorm.pipeline.tables import last_rows


def intervals(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per time in which a member owned a partition without a break."""
    return _table(rows, window, "intervals")


def handovers(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per gap between two owners of a partition, with its phases and the round that closed it."""
    return _table(rows, window, "handovers")


def rounds(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per rebalance: its cause, its generation, and when each phase of it was over."""
    return _table(rows, window, "rounds")


def members(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per event of a member, and until when the member stayed so."""
    return _table(rows, window, "members")


def figures(rows: DataFrame, window: Window = WHOLE) -> DataFrame:
    """One row per run and group with the figures of a storm (`docs/figures.md`); null: not known.

    The job fails if a row does not fit the schema.
    """
    found = folded(rows, last_rows(rows), window)
    read = f.from_json(FIGURES, figures_schema()).alias("found")
    checked = f.when(f.col("problem").isNull(), read).otherwise(f.raise_error(f.col("problem")))
    return found.select(*GROUP, checked.alias("found")).select(*GROUP, "found.*")


def _table(rows: DataFrame, window: Window, name: str) -> DataFrame:
    found = folded(rows, last_rows(rows), window)
    return found.where(f.col("table") == name).select(*GROUP, *TABLES[name])
