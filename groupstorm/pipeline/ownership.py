"""Facts -> steps of each partition, and handovers with the gap between two owners."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP, KEY, PARTITION

#: Rows of a trace that share a place in the table that finds the round of a row.
_SEQS_PER_PLACE = 1024


def steps(facts: DataFrame, rows: DataFrame) -> DataFrame:
    """Everything that happens to the owners of each partition, in order.

    Adds to the facts: when the partition begins to exist (kind ``exist``) and is deleted (kind ``gone``);
    ``owners`` (how many after the row), ``is_new`` (its first owner makes it exist) and, of the rows of kind
    ``own``, the end of the interval that they begin.
    """
    per_owner = Window.partitionBy(KEY, *PARTITION, "member").orderBy("seq")
    ending = {
        name: f.when(f.col("kind") == "own", f.lead(column).over(per_owner))
        for name, column in {
            "to_seq": "seq",
            "to_us": "time_us",
            "to_position": "position",
            "ended_by": "event",
            "end_cause": "cause",
        }.items()
    }
    kind = f.col("kind")
    per_partition = Window.partitionBy(KEY, *PARTITION).orderBy("seq", "rank")
    owner_change = f.when(kind == "own", 1).when(kind == "end", -1).otherwise(0)
    existing = f.when(kind.isin("own", "exist"), True).when(kind == "gone", False)
    so_far = per_partition.rowsBetween(Window.unboundedPreceding, -1)
    return (
        facts.withColumns(ending)
        .unionByName(_stated(rows).repartition(KEY), allowMissingColumns=True)
        .withColumn("rank", f.when(kind == "exist", 0).when(kind == "gone", 2).otherwise(1))
        .withColumns(
            {
                "owners": f.sum(owner_change).over(per_partition),
                "exists": f.coalesce(f.last(existing, ignorenulls=True).over(so_far), f.lit(False)),
            }
        )
        .where((kind.isin("own", "end")) | ((kind == "gone") == f.col("exists")))
        .withColumn("is_new", (kind == "own") & ~f.col("exists"))
        .drop("exists")
    )


def _stated(rows: DataFrame) -> DataFrame:
    """When rows say that partitions exist, and that they are gone."""
    named = rows.where(f.col("event").isin("scenario_started", "partitions_created", "partitions_deleted"))
    kind = f.when(f.col("event") == "partitions_deleted", "gone").otherwise("exist")
    return named.select(
        *GROUP, "seq", "time_us", kind.alias("kind"), f.explode("partitions").alias("partition")
    ).withColumn(KEY, f.xxhash64(*PARTITION))


def completion(steps: DataFrame) -> DataFrame:
    """One row per group that ever was complete: when every partition had an owner for the first time."""
    by_row = (
        steps.withColumn(
            "missing",
            f.when(f.col("kind") == "exist", 1)
            .when(f.col("kind") == "gone", -1)
            .when(f.col("is_new"), 0)
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


def handovers(
    steps: DataFrame, completion: DataFrame, rounds: DataFrame, runs: DataFrame, absences: DataFrame | None
) -> DataFrame:
    """Gaps between two owners, from the first complete assignment on: who, how long, why.

    A gap that began before the window is cut there; time in which the group did not exist is no part of it.

    ``ended_by`` is the event that ended the old owner's interval (partitions_created: there was none) and
    ``cause`` its cause; ``generations`` how many went by from the old owner's to the new one's; ``paused_us``
    what counts as paused of ``gap_us``; ``prepared_us`` and ``rebalance_cause`` belong to the round that
    closed the gap.
    """
    in_order = Window.partitionBy(KEY, *PARTITION).orderBy("seq", "rank")
    following = {
        name: f.lead(column).over(in_order)
        for name, column in {
            "close_seq": "seq",
            "close_us": "time_us",
            "new_owner": "member",
            "new_generation": "generation",
            "new_callback_us": "callback_us",
        }.items()
    }
    gaps = (
        steps.drop("to_seq", "to_us", "to_position", "ended_by", "end_cause")
        .withColumns(following)
        .where("owners = 0 and kind != 'gone'")
        .join(f.broadcast(completion.join(runs, list(GROUP))), list(GROUP))
        .where("seq > complete_seq")
        .withColumn("to_us", f.coalesce("close_us", "end_us"))
        .withColumn("from_us", f.greatest("time_us", "window_us"))
        .where("to_us > from_us")
    )
    existing = _without_absences(gaps, absences).where("gap_us > 0").withColumn("paused_us", _paused())
    return _with_round(existing, rounds, runs).select(
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


def _without_absences(gaps: DataFrame, absences: DataFrame | None) -> DataFrame:
    """Add ``gap_us``, the part of each gap that counts. ``absences``: None if no group was ever deleted."""
    if absences is None:
        return gaps.withColumn("gap_us", f.col("to_us") - f.col("from_us"))
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


def _with_round(gaps: DataFrame, rounds: DataFrame, runs: DataFrame) -> DataFrame:
    """Add the last round that was prepared before the gap was closed, or before the trace ended.

    Each closing row looks up the rounds of its place in the trace: a join of each gap with all rounds before
    it would grow with the square of a storm, and sorting gaps and rounds together is for one task alone.
    """
    last_seq = f.col("last_seq") + 1
    in_order = Window.partitionBy(*GROUP).orderBy("prepared_seq")
    places = (
        rounds.join(runs.select(*GROUP, "last_seq"), list(GROUP))
        .withColumn("until_seq", f.coalesce(f.lead("prepared_seq").over(in_order), last_seq))
        .select(
            *GROUP,
            f.explode(f.sequence(_place("prepared_seq"), _place("until_seq"))).alias("place"),
            "prepared_seq",
            "until_seq",
            "prepared_us",
            f.col("cause").alias("rebalance_cause"),
        )
    )
    keyed = gaps.withColumn("close_seq", f.coalesce("close_seq", last_seq)).withColumn(
        "place", _place("close_seq")
    )
    one, other = keyed.alias("gap"), f.broadcast(places.alias("round"))
    same = [f.col(f"gap.{name}") == f.col(f"round.{name}") for name in (*GROUP, "place")]
    within = (f.col("close_seq") > f.col("prepared_seq")) & (f.col("close_seq") <= f.col("until_seq"))
    return one.join(other, [*same, within], "left").select(
        "gap.*", "round.prepared_us", "round.rebalance_cause"
    )


def _place(seq: str) -> Column:
    return f.floor(f.col(seq) / _SEQS_PER_PLACE)
