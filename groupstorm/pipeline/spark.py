"""The Spark engine: any number of traces of any size, on this machine's cores or on a cluster's workers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.figures import Figures
from groupstorm.pipeline.dataframes import FIGURES, GROUP, folded, table
from groupstorm.pipeline.read import explain, read_traces
from groupstorm.pipeline.results import TABLES, EngineResult, Key, Request, figures_schema
from groupstorm.problems import InputError, OutputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What Spark's errors of writing end in, and the system's reason.
_IO_ERROR = re.compile(r"java\.io\.IOException: ([^\n]+)")


def analyze_on_spark(spark: SparkSession, request: Request) -> tuple[EngineResult, Mapping[str, DataFrame]]:
    """Compute figures and the tables, by name, from one pass over the rows.

    Raises InputError naming the place of a line that is not a row.
    """
    traces = read_traces(spark, request.traces)
    rows = traces.rows
    if request.groups:
        rows = rows.where(f.col("group").isin(*request.groups))
    window = request.window
    if window.to_us is not None:
        rows = rows.where(f.col("time_us") <= window.to_us)
    last_us = [(run, window.end(last_us)) for run, last_us in traces.last_us.items()]
    ends = spark.createDataFrame(last_us, "run string, end_us bigint").localCheckpoint()
    found = folded(rows, window, ends).persist(StorageLevel.MEMORY_AND_DISK)
    figures = _figures(found, request.traces)
    tables = {name: table(found, name) for name in TABLES}
    handovers = [tuple(row) for row in slowest_handovers(tables["handovers"], request.slowest).collect()]
    rounds = [tuple(row) for row in rounds_by_cause(tables["rounds"]).collect()]
    return EngineResult(traces.groups, figures, handovers, rounds), tables


def _figures(found: DataFrame, traces: Mapping[str, Path]) -> dict[Key, Figures]:
    """(run, group) -> figures, in their order. Raises InputError naming the place of a row that does not fit
    the schema."""
    figures = {}
    for row in sorted(table(found, FIGURES).collect(), key=lambda row: (row["run"], row["group"])):
        if row["problem"] is not None:
            explain(traces[row["run"]])
            raise InputError(f"{traces[row['run']]}: {row['problem']}")
        figures[row["run"], row["group"]] = Figures(**json.loads(row[FIGURES]))
    return figures


def slowest_handovers(handovers: DataFrame, per_group: int) -> DataFrame:
    """The longest gaps of each group, those of one kind that one round closed in one row."""
    worst = ("partition", "from_us", "old_owner", "new_owner", "generations", "rebalance_cause")
    round_us = f.when(f.coalesce("generations", f.lit(1)) > 0, f.col("prepared_us"))
    by_kind = handovers.withColumns(
        {"round_us": round_us, "alone_us": f.when(round_us.isNull(), f.col("from_us"))}
    )
    longest = f.struct("gap_us", "partition", "from_us")
    together = by_kind.groupBy(*GROUP, "round_us", "alone_us", "ended_by", "cause").agg(
        f.count("*").alias("partitions"),
        f.max("gap_us").alias("gap_us"),
        *[f.max_by(name, longest).alias(name) for name in worst],
    )
    order = Window.partitionBy(*GROUP).orderBy(f.desc("gap_us"), "from_us", "partition")
    numbers = ("partition", "partitions", "from_us", "gap_us", "old_owner", "new_owner", "generations")
    return (
        together.withColumn("place", f.row_number().over(order))
        .where(f.col("place") <= per_group)
        .orderBy(*GROUP, "place")
        .select(*GROUP, *numbers, "ended_by", "cause", "round_us", "rebalance_cause")
    )


def rounds_by_cause(rounds: DataFrame) -> DataFrame:
    """Rounds summed up by what caused them, the most frequent cause first."""
    return (
        rounds.groupBy(*GROUP, "cause")
        .agg(
            f.count("*").alias("rounds"),
            f.count("stable_us").alias("stable"),
            f.max("members").alias("members"),
            f.avg("latency_us").alias("latency_avg_us"),
            f.max("latency_us").alias("latency_max_us"),
        )
        .orderBy(*GROUP, f.desc("rounds"), "cause")
    )


def write_tables(
    spark: SparkSession, tables: Mapping[str, DataFrame], figures: Mapping[str, Figures], out: Path
) -> None:
    """One folder of Parquet files per table in ``out``. Raises OutputError."""
    rows = [{"run": run, **one.to_json()} for run, one in figures.items()]
    of_runs = spark.createDataFrame(rows, f"run string, {figures_schema()}").coalesce(1)
    for name, written in {"figures": of_runs, **tables}.items():
        try:
            written.write.mode("overwrite").parquet(str(out / name))
        except Py4JJavaError as problem:
            reason = _IO_ERROR.search(str(problem))
            if reason is None:
                raise
            raise OutputError(f"{out / name}: cannot be written: {reason[1]}") from problem
