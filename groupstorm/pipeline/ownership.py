"""Facts -> steps of each partition, owner intervals, and handovers with the gap between two owners."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP, PARTITION
from groupstorm.storms.figures.totals import MICRO


def presence(rows: DataFrame, facts: DataFrame) -> DataFrame:
    """One row per partition: from when on it exists; at the latest from its first owner on."""
    created = rows.where(f.col("event").isin("scenario_started", "partitions_created")).select(
        *GROUP, "seq", "time_us", f.explode("partitions").alias("partition")
    )
    owned = facts.where("kind = 'own'").select(*GROUP, "seq", "time_us", "partition")
    return (
        created.unionByName(owned)
        .groupBy(*PARTITION)
        .agg(f.min("seq").alias("exist_seq"), f.min_by("time_us", "seq").alias("exist_us"))
    )


def steps(facts: DataFrame, presence: DataFrame, runs: DataFrame) -> DataFrame:
    """Everything that happens to each partition, in order: who owns and who processes it from then on.

    Adds to the facts a row of kind ``exist`` per partition, ``owners`` and ``processing`` (how many after
    the row), ``until_us`` (when the next row comes, or the trace ends) and the run's columns.
    """
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    per_partition = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    told = facts.withColumn("was_paused", f.coalesce(f.lag("kind").over(per_owner) == "pause", f.lit(False)))
    exist = presence.select(
        *PARTITION,
        f.col("exist_seq").alias("seq"),
        f.col("exist_us").alias("time_us"),
        f.lit("exist").alias("kind"),
    )
    kind = f.col("kind")
    owner_change = f.when(kind == "own", 1).when(kind == "end", -1).otherwise(0)
    stopping = (kind == "pause") | ((kind == "end") & ~f.col("was_paused"))
    processing_change = f.when(kind.isin("own", "resume"), 1).when(stopping, -1).otherwise(0)
    return (
        told.unionByName(exist, allowMissingColumns=True)
        .withColumn("rank", f.when(kind == "exist", 0).otherwise(1))
        .withColumn("processing_change", processing_change)
        .withColumn("owners", f.sum(owner_change).over(per_partition))
        .withColumn("processing", f.sum("processing_change").over(per_partition))
        .join(f.broadcast(runs), list(GROUP))
        .withColumn("until_us", f.coalesce(f.lead("time_us").over(per_partition), "end_us"))
    )


def completion(steps: DataFrame) -> DataFrame:
    """One row per group that ever was complete: when every partition had an owner for the first time."""
    by_row = (
        steps.withColumn(
            "missing",
            f.when(f.col("kind") == "exist", 1)
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


def intervals(steps: DataFrame) -> DataFrame:
    """Owner intervals: from when to when, from which position to which, and what ended them.

    What is open at the end of the trace has no ``to_seq`` and no ``ended_by``; its position is the model's.
    """
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    number = f.sum((f.col("kind") == "own").cast("int")).over(per_owner)
    last = f.max_by(f.struct("kind", "seq", "time_us", "position", "generation", "event", "cause"), "seq")
    model = f.greatest(
        f.col("last.position"),
        f.least(
            f.expr(f"(record_rate * end_us) div {MICRO}"),
            f.col("last.position") + f.expr(f"(process_rate * (end_us - last.time_us)) div {MICRO}"),
        ),
    )
    closed, paused = f.col("last.kind") == "end", f.col("last.kind") == "pause"
    return (
        steps.where("kind != 'exist'")
        .withColumn("number", number)
        .groupBy(*PARTITION, "member", "number", "end_us", "record_rate", "process_rate")
        .agg(
            f.min("seq").alias("from_seq"),
            f.min("time_us").alias("from_us"),
            f.min_by("position", "seq").alias("from_position"),
            f.min_by("generation", "seq").alias("generation"),
            last.alias("last"),
        )
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


def handovers(steps: DataFrame, completion: DataFrame, rounds: DataFrame) -> DataFrame:
    """Gaps between two owners, from the first complete assignment on: who, how long, why.

    ``ended_by`` is the event that ended the old owner's interval (partitions_created: there was none) and
    ``cause`` its cause; ``generations`` how many went by from the old owner's to the new one's; ``paused_us``
    what counts as paused of ``gap_us``; ``prepared_us`` and ``rebalance_cause`` belong to the round that
    closed the gap.
    """
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    ends = steps.where("kind in ('own', 'end', 'exist')")
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
        .where("owners = 0")
        .join(f.broadcast(completion), list(GROUP))
        .where("seq > complete_seq")
        .withColumn("to_us", f.coalesce("to_us", "end_us"))
        .withColumn("gap_us", f.col("to_us") - f.col("time_us"))
        .where("gap_us > 0")
        .withColumn("paused_us", _paused())
    )
    return _with_round(gaps, rounds).select(
        *PARTITION,
        f.col("time_us").alias("from_us"),
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


def _paused() -> Column:
    """What counts as paused of a gap: all of it if it was for nothing, else the two callbacks."""
    gap = f.col("gap_us")
    revoking = f.least(gap, f.coalesce("callback_us", f.lit(0)))
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


def times(steps: DataFrame, completion: DataFrame) -> DataFrame:
    """Per group: time with two owners, time with paused owners only, time with nobody processing."""
    known = steps.join(f.broadcast(completion), list(GROUP), "left")
    lasting = f.col("until_us") - f.col("time_us")
    counted = f.greatest(f.lit(0), f.col("until_us") - f.greatest("time_us", "complete_us"))
    per_partition = known.groupBy(*GROUP).agg(
        f.sum(f.when(f.col("processing") > 1, lasting).otherwise(0)).alias("dual_us"),
        f.sum(
            f.when(
                (f.col("owners") > 0) & (f.col("processing") == 0) & f.col("complete_us").isNotNull(), counted
            ).otherwise(0)
        ).alias("standing_us"),
    )
    in_order = Window.partitionBy(*GROUP).orderBy("seq")
    together = (
        known.groupBy(*GROUP, "seq", "complete_us", "end_us")
        .agg(f.sum("processing_change").alias("change"), f.first("time_us").alias("time_us"))
        .withColumn("processing", f.sum("change").over(in_order))
        .withColumn("until_us", f.coalesce(f.lead("time_us").over(in_order), "end_us"))
        .where("processing = 0 and complete_us is not null")
        .groupBy(*GROUP)
        .agg(f.sum(counted).alias("nobody_us"))
    )
    return per_partition.join(together, list(GROUP), "left")


def returned(steps: DataFrame) -> DataFrame:
    """Per group: partitions that a member gave up and was the next to be assigned."""
    backwards = (
        Window.partitionBy(*PARTITION).orderBy(f.desc("seq")).rowsBetween(Window.unboundedPreceding, -1)
    )
    next_owner = f.last(f.when(f.col("kind") == "own", f.col("member")), ignorenulls=True).over(backwards)
    again = (f.col("kind") == "end") & f.col("given_up") & (f.col("member") == f.col("next_owner"))
    return (
        steps.where("kind in ('own', 'end')")
        .withColumn("next_owner", next_owner)
        .groupBy(*GROUP)
        .agg(f.count_if(again).alias("revoked_and_returned"))
    )
