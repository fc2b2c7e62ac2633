"""Tables -> one row of totals per group, and from it the figures."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP
from groupstorm.storms.figures import Figures
from groupstorm.storms.figures.tasks import TaskTotals
from groupstorm.storms.figures.totals import Totals

if TYPE_CHECKING:
    from groupstorm.pipeline.tables import TraceTables

_ZERO_WITHOUT_ROWS = (
    "generations",
    "latencies",
    "latency_sum_us",
    "revoked_and_returned",
    "changes",
    "rounds",
)
_FROM_COMPLETE = (
    "unowned_us",
    "unowned_max_us",
    "unowned_p50_us",
    "unowned_p95_us",
    "nobody_us",
    "paused_us",
)
_TOLD_BY_MEMBERS = (
    "paused_us",
    "dual_us",
    "moves_lower_bound",
    "imbalance_max",
    "lag_peak_micro",
    "lag_recovery_us",
    "records_processed",
    "records_duplicated",
    "records_skipped",
)
_TOTALS = tuple(
    field.name for field in fields(Totals) if field.name not in ("requests", "invariants", "tasks")
)
_OF_TASKS = TaskTotals._fields


def gaps(handovers: DataFrame) -> DataFrame:
    """Per group: sum, longest and nearest-rank percentiles of its gaps."""
    ranked = handovers.withColumns(
        {
            "rank": f.row_number().over(Window.partitionBy(*GROUP).orderBy("gap_us")),
            "gaps": f.count("*").over(Window.partitionBy(*GROUP)),
        }
    )
    at = {
        percent: f.max(f.when(f.col("rank") == f.expr(f"(gaps * {percent} + 99) div 100"), f.col("gap_us")))
        for percent in (50, 95)
    }
    return ranked.groupBy(*GROUP).agg(
        f.sum("gap_us").alias("unowned_us"),
        f.max("gap_us").alias("unowned_max_us"),
        at[50].alias("unowned_p50_us"),
        at[95].alias("unowned_p95_us"),
        f.sum("paused_us").alias("gaps_paused_us"),
    )


def counted(rows: DataFrame) -> DataFrame:
    """Per group: what the run summed up at its end, requests by API and answer, and invariants."""
    request, invariant = f.col("event") == "requests_counted", f.col("event") == "invariant_checked"
    return (
        rows.where(request | invariant)
        .groupBy(*GROUP)
        .agg(
            f.collect_list(f.when(request, f.struct("api", "error", "count"))).alias("requests"),
            f.collect_list(f.when(invariant, f.struct("seq", "cause", "detail"))).alias("invariants"),
        )
    )


def totals(tables: TraceTables) -> DataFrame:
    """One row per run and group with the columns of `Totals`; null where there is nothing to sum over."""
    group = list(GROUP)
    joined = tables.runs
    for table in (
        tables.completion,
        gaps(tables.handovers),
        tables.times,
        tables.returned,
        tables.latencies,
        tables.moves,
        tables.records,
        tables.lag,
        tables.last_changes,
        counted(tables.rows),
        tables.tasks,
    ):
        joined = joined.join(f.broadcast(table), group, "left")
    known = joined.withColumn(
        "paused_us", f.coalesce("gaps_paused_us", f.lit(0)) + f.coalesce("standing_us", f.lit(0))
    ).withColumn("settled_after_us", f.col("last_change_us") - f.col("first_us"))
    recorded = f.coalesce(f.col("record_rate") > 0, f.lit(False))
    records = {
        name: f.when(recorded, f.coalesce(name, f.lit(0))) for name in _TOTALS if name.startswith("records_")
    }
    zeros = {name: f.coalesce(name, f.lit(0)) for name in (*_ZERO_WITHOUT_ROWS, "dual_us")}
    complete = {
        name: f.when(f.col("complete_us").isNotNull(), f.coalesce(name, f.lit(0))) for name in _FROM_COMPLETE
    }
    told = {name: f.when(f.col("members_told"), f.col(name)) for name in _TOLD_BY_MEMBERS}
    return (
        known.withColumns(records | zeros)
        .withColumns(complete)
        .withColumns(told)
        .select(*GROUP, *[_whole(name) for name in (*_TOTALS, *_OF_TASKS)], "requests", "invariants")
    )


def _whole(name: str) -> f.Column:
    """Decimals hold whole numbers here; they go to the driver as text, which has no limit."""
    return f.col(name).cast("string").alias(name)


def figures_by_run(totals: DataFrame) -> dict[tuple[str, str], Figures]:
    """(run, group) -> figures, in the order of their names."""
    found = {}
    for row in totals.orderBy(*GROUP).collect():
        numbers: dict[str, Any] = {name: None if row[name] is None else int(row[name]) for name in _TOTALS}
        requests = tuple((one["api"], one["error"], one["count"]) for one in row["requests"] or ())
        verdicts = sorted(row["invariants"] or (), key=lambda one: one["seq"])
        invariants = {one["cause"]: one["detail"] for one in verdicts}
        tasks = TaskTotals(*(None if row[name] is None else int(row[name]) for name in _OF_TASKS))
        found[row["run"], row["group"]] = Totals(
            **numbers, requests=requests, invariants=invariants, tasks=tasks
        ).figures()
    return found
