"""Rows -> rounds: each rebalance from its PreparingRebalance on, and how long its generation took."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP


def rebalance_rounds(rows: DataFrame) -> DataFrame:
    """One row per PreparingRebalance: why, which generation came of it, when, for how many members.

    ``stable_us`` is null if the generation never reached Stable; ``latency_us`` ends with the last first
    answer that a member got to its SyncGroup (see `groupstorm.figures.rounds.Rounds`).
    """
    in_order = Window.partitionBy(*GROUP).orderBy("seq")
    state = f.col("state")
    prepared, completing = state == "PreparingRebalance", state == "CompletingRebalance"
    changes = (
        rows.where(
            (f.col("event") == "group_state_changed")
            & state.isin("PreparingRebalance", "CompletingRebalance", "Stable")
        )
        .withColumn("round", f.count_if(prepared).over(in_order))
        .where("round > 0")
    )
    completed = f.when(completing, f.struct("seq", "time_us", "generation", "protocol", "count"))
    found = changes.groupBy(*GROUP, "round").agg(
        f.min("seq").alias("prepared_seq"),
        f.min("time_us").alias("prepared_us"),
        f.max(f.when(prepared, f.col("cause"))).alias("cause"),
        f.max_by(completed, f.when(completing, f.col("seq"))).alias("last"),
        f.min(f.when(state == "Stable", f.col("time_us"))).alias("stable_us"),
    )
    return found.join(_last_answers(rows, changes), [*GROUP, "round"], "left").select(
        *GROUP,
        "round",
        "prepared_seq",
        "prepared_us",
        "cause",
        f.col("last.generation").alias("generation"),
        f.col("last.seq").alias("completing_seq"),
        f.col("last.time_us").alias("completing_us"),
        f.col("last.protocol").alias("protocol"),
        f.col("last.count").alias("members"),
        "stable_us",
        "answered_us",
        f.when(f.col("stable_us").isNotNull(), f.col("answered_us") - f.col("prepared_us")).alias(
            "latency_us"
        ),
    )


def _last_answers(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """Per round, when the last member got its first answer; static members that came back are left out.

    Each answer looks up its generation among the few that there are: no sorting of a group's answers.
    """
    in_order = Window.partitionBy(*GROUP).orderBy("seq")
    generations = (
        changes.where("state != 'Stable'")
        .withColumn("until_seq", f.coalesce(f.lead("seq").over(in_order), f.lit(2**62)))
        .where("state = 'CompletingRebalance'")
        .select(*GROUP, "generation", "round", f.col("seq").alias("from_seq"), "until_seq")
    )
    answered = rows.where("event = 'sync_answered' and error is null").select(
        *GROUP, "generation", "member_id", "seq", "time_us"
    )
    first = (
        answered.join(f.broadcast(generations), [*GROUP, "generation"])
        .where("seq > from_seq and seq < until_seq")
        .groupBy(*GROUP, "round", "from_seq", "member_id")
        .agg(f.min("seq").alias("first_seq"), f.min("time_us").alias("first_us"))
    )
    replaced = rows.where("event = 'member_replaced'").select(
        *GROUP, "member_id", f.col("seq").alias("replaced_seq")
    )
    came_back = (
        [first[name] == replaced[name] for name in (*GROUP, "member_id")]
        + [replaced["replaced_seq"] > first["from_seq"], replaced["replaced_seq"] < first["first_seq"]]
    )  # fmt: skip
    return (
        first.join(replaced, came_back, "left_anti")
        .groupBy(*GROUP, "round")
        .agg(f.max("first_us").alias("answered_us"))
    )
