"""Steps -> owner intervals, and where the owners of open ones stand in their logs when the trace ends."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.figures.record_model import NANO
from groupstorm.pipeline.facts import GROUP, PARTITION, line_facts, logs
from groupstorm.pipeline.results import RATES_CHANGED

#: Up to so many open intervals go to every task, instead of all facts about lines to where intervals are.
_BROADCAST_ROWS_MAX = 500_000

_COLUMNS = (*PARTITION, "member", "generation", "from_seq", "from_us", "from_position")
_ENDED = ("to_seq", "to_us", "to_position", "ended_by", "cause")


def owner_intervals(steps: DataFrame, rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Owner intervals: from when to when, from which position to which, and what ended them.

    An interval that is open at the end of the trace has no ``to_seq`` and no ``ended_by``; its last position
    is computed by the model of records: along the owner's line, at most to the end of the log.
    """
    begun = steps.where("kind = 'own'").select(
        *PARTITION,
        "member",
        "generation",
        f.col("seq").alias("from_seq"),
        f.col("time_us").alias("from_us"),
        f.col("position").alias("from_position"),
        "to_seq",
        "to_us",
        "to_position",
        "ended_by",
        f.col("end_cause").alias("cause"),
    )
    closed = begun.where("to_seq is not null")
    return closed.unionByName(_open(begun.where("to_seq is null"), rows, runs))


def _open(begun: DataFrame, rows: DataFrame, runs: DataFrame) -> DataFrame:
    """The intervals that last until the trace ends, with the end and the position at the end."""
    lines = _lines(begun, rows, runs)
    log_end = _reached("coalesce(log_position, 0)", "coalesce(log_us, 0)", "coalesce(log_rate, record_rate)")
    owner = _reached("last.position", "last.time_us", "coalesce(rate, process_rate)")
    known, paused = f.col("last.position").isNotNull(), f.col("last.kind") == "pause"
    model = f.when(known, f.greatest(f.col("last.position"), f.least(log_end, owner)))
    names = ("end_us", "record_rate", "process_rate")
    return (
        lines.join(f.broadcast(runs.select(*GROUP, *names)), list(GROUP))
        .join(logs(rows), list(PARTITION), "left")
        .select(
            *_COLUMNS,
            f.lit(None).cast("bigint").alias("to_seq"),
            f.col("end_us").alias("to_us"),
            f.when(paused, f.col("last.position")).otherwise(model).alias("to_position"),
            *[f.lit(None).cast("string").alias(name) for name in ("ended_by", "cause")],
        )
    )


def _lines(begun: DataFrame, rows: DataFrame, runs: DataFrame) -> DataFrame:
    """The last line of each open interval: ``last`` (kind, time, position) and ``rate`` (null: the run's)."""
    owner = (*PARTITION, "member")
    few = begun.count() <= _BROADCAST_ROWS_MAX
    by_members = runs.where("has_member_rows").select(*GROUP)
    since = begun.select(*owner, "from_seq").join(f.broadcast(by_members), list(GROUP))
    later = line_facts(rows).join(f.broadcast(since) if few else since, list(owner)).where("seq > from_seq")
    first = begun.select(
        *_COLUMNS,
        f.col("from_seq").alias("seq"),
        f.col("from_us").alias("time_us"),
        f.col("from_position").alias("position"),
        f.lit("own").alias("kind"),
    )
    per_owner = Window.partitionBy(*owner).orderBy("seq")
    state = f.when(f.col("kind") != RATES_CHANGED, f.col("kind"))
    before = f.last(state, ignorenulls=True).over(per_owner.rowsBetween(Window.unboundedPreceding, -1))
    paused = f.coalesce(before, f.lit("own")) == "pause"
    is_resumed = f.col("kind") == "resume"
    rate_seq = f.when(f.col("kind") == RATES_CHANGED, f.col("seq"))
    return (
        first.unionByName(later.drop("from_seq"), allowMissingColumns=True)
        .withColumn("paused", paused)
        .where(is_resumed == f.col("paused"))
        .groupBy(*owner)
        .agg(
            *[f.max(name).alias(name) for name in _COLUMNS if name not in owner],
            f.max_by(f.struct("kind", "time_us", "position"), "seq").alias("last"),
            f.max_by("rate", rate_seq).alias("rate"),
        )
    )


def _reached(position: str, from_us: str, rate: str) -> Column:
    """Where a line is when the trace ends, in whole records; a rate times hours may exceed 64 bits."""
    grown = f"cast({rate} as decimal(19, 0)) * (end_us - {from_us})"
    return f.expr(f"{position} + ({grown}) div {NANO}")
