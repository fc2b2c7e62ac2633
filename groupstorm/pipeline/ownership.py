"""Facts -> steps of each partition, owner intervals, and handovers with the gap between two owners."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.figures.record_model import NANO
from groupstorm.pipeline.facts import GROUP, PARTITION
from groupstorm.pipeline.results import RATES_CHANGED


def presence(rows: DataFrame, facts: DataFrame) -> DataFrame:
    """When each partition begins to exist (kind ``exist``) and is deleted (kind ``gone``).

    It exists at the latest with its first owner.
    """
    named = rows.where(f.col("event").isin("scenario_started", "partitions_created", "partitions_deleted"))
    kind = f.when(f.col("event") == "partitions_deleted", "gone").otherwise("exist")
    stated = named.select(
        *GROUP, "seq", "time_us", kind.alias("kind"), f.explode("partitions").alias("partition")
    )
    owned = facts.where("kind = 'own'").select(
        *GROUP, "seq", "time_us", f.lit("exist").alias("kind"), "partition"
    )
    so_far = Window.partitionBy(*PARTITION).orderBy("seq")
    before = f.coalesce(f.lag("kind").over(so_far), f.lit("gone"))
    return (
        stated.unionByName(owned.select(*stated.columns))
        .withColumn("before", before)
        .where("kind != before")
        .select(*PARTITION, "seq", "time_us", "kind")
    )


def steps(facts: DataFrame, presence: DataFrame, runs: DataFrame) -> DataFrame:
    """Everything that happens to each partition, in order.

    Adds to the facts the rows of ``presence``, ``owners`` (how many after the row) and the run's columns.
    """
    per_partition = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    kind = f.col("kind")
    owner_change = f.when(kind == "own", 1).when(kind == "end", -1).otherwise(0)
    return (
        facts.unionByName(presence, allowMissingColumns=True)
        .withColumn("rank", f.when(kind == "exist", 0).when(kind == "gone", 2).otherwise(1))
        .withColumn("owners", f.sum(owner_change).over(per_partition))
        .join(f.broadcast(runs), list(GROUP))
    )


def completion(steps: DataFrame) -> DataFrame:
    """One row per group that ever was complete: when every partition had an owner for the first time."""
    by_row = (
        steps.withColumn(
            "missing",
            f.when(f.col("kind") == "exist", 1)
            .when(f.col("kind") == "gone", -1)
            .when((f.col("kind") == "own") & (f.col("owners") == 1), -1)
            .when((f.col("kind") == "end") & (f.col("owners") == 0), 1)
            .otherwise(0),
        )
        .groupBy(*GROUP, "seq")
        .agg(f.sum("missing").alias("missing"), f.first("time_us").alias("time_us"))
    )
    so_far = f.sum("missing").over(Window.partitionBy(*GROUP).orderBy("seq"))
    return (
        by_row.withColumn("missing", so_far)
        .where("missing = 0")
        .groupBy(*GROUP)
        .agg(f.min("seq").alias("complete_seq"), f.min("time_us").alias("complete_us"))
    )


def intervals(steps: DataFrame, logs: DataFrame) -> DataFrame:
    """Owner intervals: from when to when, from which position to which, and what ended them.

    An interval that is open at the end of the trace has no ``to_seq`` and no ``ended_by``; its last position
    is computed by the model of records: along the owner's line, at most to the end of the log.
    """
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    number = f.sum((f.col("kind") == "own").cast("int")).over(per_owner)
    last = f.max_by(f.struct("kind", "seq", "time_us", "position", "generation", "event", "cause"), "seq")
    rate_seq = f.when(f.col("kind") == RATES_CHANGED, f.col("seq"))
    log_end = _reached("coalesce(log_position, 0)", "coalesce(log_us, 0)", "coalesce(log_rate, record_rate)")
    owner = _reached("last.position", "last.time_us", "coalesce(rate, process_rate)")
    known = f.col("last.position").isNotNull()
    model = f.when(known, f.greatest(f.col("last.position"), f.least(log_end, owner)))
    closed, paused = f.col("last.kind") == "end", f.col("last.kind") == "pause"
    return (
        steps.where("kind not in ('exist', 'gone')")
        .withColumn("number", number)
        .groupBy(*PARTITION, "member", "number", "end_us", "record_rate", "process_rate")
        .agg(
            f.min("seq").alias("from_seq"),
            f.min("time_us").alias("from_us"),
            f.min_by("position", "seq").alias("from_position"),
            f.min_by("generation", "seq").alias("generation"),
            last.alias("last"),
            f.max_by("rate", rate_seq).alias("rate"),
        )
        .join(logs, list(PARTITION), "left")
        .select(
            *PARTITION,
            "member",
            "generation",
            "from_seq",
            "from_us",
            "from_position",
            f.when(closed, f.col("last.seq")).alias("to_seq"),
            f.when(closed, f.col("last.time_us")).otherwise(f.col("end_us")).alias("to_us"),
            f.when(closed | paused, f.col("last.position")).otherwise(model).alias("to_position"),
            f.when(closed, f.col("last.event")).alias("ended_by"),
            f.when(closed, f.col("last.cause")).alias("cause"),
        )
    )


def _reached(position: str, from_us: str, rate: str) -> Column:
    """Where a line is when the trace ends, in whole records; a rate times hours may exceed 64 bits."""
    grown = f"cast({rate} as decimal(19, 0)) * (end_us - {from_us})"
    return f.expr(f"{position} + ({grown}) div {NANO}")


def handovers(steps: DataFrame, completion: DataFrame, rounds: DataFrame, absences: DataFrame) -> DataFrame:
    """Gaps between two owners, from the first complete assignment on: who, how long, why.

    A gap that began before the window is cut there; time in which the group did not exist is no part of it.

    ``ended_by`` is the event that ended the old owner's interval (partitions_created: there was none) and
    ``cause`` its cause; ``generations`` how many went by from the old owner's to the new one's; ``paused_us``
    what counts as paused of ``gap_us``; ``prepared_us`` and ``rebalance_cause`` belong to the round that
    closed the gap.
    """
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    ends = steps.where("kind in ('own', 'end', 'exist', 'gone')")
    following = {
        name: f.lead(column).over(in_order)
        for name, column in {
            "to_seq": "seq",
            "to_us": "time_us",
            "new_owner": "member",
            "new_generation": "generation",
            "new_callback_us": "callback_us",
        }.items()
    }
    gaps = (
        ends.withColumns(following)
        .where("owners = 0 and kind != 'gone'")
        .join(f.broadcast(completion), list(GROUP))
        .where("seq > complete_seq")
        .withColumn("to_us", f.coalesce("to_us", "end_us"))
        .withColumn("from_us", f.greatest("time_us", "window_us"))
        .where("to_us > from_us")
    )
    existing = _without_absences(gaps, absences).where("gap_us > 0").withColumn("paused_us", _paused())
    return _with_round(existing, rounds).select(
        *PARTITION,
        "from_us",
        "to_us",
        "gap_us",
        "paused_us",
        f.col("member").alias("old_owner"),
        "new_owner",
        f.col("generation").alias("old_generation"),
        "new_generation",
        (f.col("new_generation") - f.col("generation")).alias("generations"),
        f.coalesce("event", f.lit("partitions_created")).alias("ended_by"),
        "cause",
        "prepared_us",
        "rebalance_cause",
    )


def _without_absences(gaps: DataFrame, absences: DataFrame) -> DataFrame:
    """Add ``gap_us``, the part of each gap that counts."""
    gone = f.greatest(f.lit(0), f.least("to_us", "absent_to_us") - f.greatest("from_us", "absent_from_us"))
    lost = (
        gaps.join(f.broadcast(absences), list(GROUP))
        .groupBy(*PARTITION, "seq", "rank")
        .agg(f.sum(gone).alias("absent_us"))
    )
    return gaps.join(lost, [*PARTITION, "seq", "rank"], "left").withColumn(
        "gap_us", f.col("to_us") - f.col("from_us") - f.coalesce("absent_us", f.lit(0))
    )


def _paused() -> Column:
    """What counts as paused of a gap: all of it if it was for nothing, else the two callbacks."""
    gap = f.col("gap_us")
    before_window = f.col("from_us") - f.col("time_us")
    revoking = f.least(gap, f.greatest(f.lit(0), f.coalesce("callback_us", f.lit(0)) - before_window))
    taking = f.least(gap - revoking, f.coalesce("new_callback_us", f.lit(0)))
    return f.when(f.col("member") == f.col("new_owner"), gap).otherwise(revoking + taking)


def _with_round(gaps: DataFrame, rounds: DataFrame) -> DataFrame:
    """Add the last round that was prepared before the gap was closed, or before the trace ended.

    The closing rows and the rounds are sorted together, and each closing row looks back: a join of each
    gap with all rounds before it would grow with the square of a storm.
    """
    keyed = gaps.withColumn("close_seq", f.coalesce("to_seq", f.lit(2**62)))
    closings = keyed.select(*GROUP, f.col("close_seq").alias("at_seq")).distinct()
    prepared = rounds.select(*GROUP, f.col("prepared_seq").alias("at_seq"), "prepared_us", "cause")
    in_order = Window.partitionBy(*GROUP).orderBy("at_seq")
    latest = f.last(
        f.when(f.col("prepared_us").isNotNull(), f.struct("prepared_us", "cause")), ignorenulls=True
    )
    found = (
        closings.unionByName(prepared, allowMissingColumns=True)
        .withColumn("round", latest.over(in_order))
        .where("prepared_us is null")
        .select(
            *GROUP,
            f.col("at_seq").alias("close_seq"),
            f.col("round.prepared_us").alias("prepared_us"),
            f.col("round.cause").alias("rebalance_cause"),
        )
    )
    return keyed.join(found, [*GROUP, "close_seq"], "left")
