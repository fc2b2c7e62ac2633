"""Rows -> rounds: each rebalance from its PreparingRebalance on, and how long its generation took."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP


def rounds(rows: DataFrame) -> DataFrame:
    """One row per PreparingRebalance: why, which generation came of it, when, for how many members.

    ``stable_us`` is null if the generation never reached Stable; ``latency_us`` ends with the last first
    answer that a member got to its SyncGroup (see `groupstorm.figures.rounds.Rounds`).
    """
    in_order = Window.partitionBy(*GROUP).orderBy("seq")
    changed = f.col("event") == "group_state_changed"
    prepared = changed & (f.col("state") == "PreparingRebalance")
    numbered = (
        rows.where(changed | f.col("event").isin("sync_answered", "member_replaced"))
        .withColumn("round", f.count_if(prepared).over(in_order))
        .where("round > 0")
    )
    completing = changed & (f.col("state") == "CompletingRebalance")
    stable = changed & (f.col("state") == "Stable")
    found = numbered.groupBy(*GROUP, "round").agg(
        f.min("seq").alias("prepared_seq"),
        f.min("time_us").alias("prepared_us"),
        f.max(f.when(prepared, f.col("cause"))).alias("cause"),
        f.max(f.when(completing, f.col("generation"))).alias("generation"),
        f.min(f.when(completing, f.col("seq"))).alias("completing_seq"),
        f.min(f.when(completing, f.col("time_us"))).alias("completing_us"),
        f.max(f.when(completing, f.col("protocol"))).alias("protocol"),
        f.max(f.when(completing, f.col("count"))).alias("members"),
        f.min(f.when(stable, f.col("time_us"))).alias("stable_us"),
    )
    answers = _last_answers(numbered, found)
    return found.join(answers, [*GROUP, "round"], "left").withColumn(
        "latency_us", f.when(f.col("stable_us").isNotNull(), f.col("answered_us") - f.col("prepared_us"))
    )


def _last_answers(numbered: DataFrame, found: DataFrame) -> DataFrame:
    """Per round, when the last member got its first answer; static members that came back are left out."""
    later = numbered.join(
        found.select(*GROUP, "round", "completing_seq", f.col("generation").alias("of_generation")),
        [*GROUP, "round"],
    ).where("seq > completing_seq")
    answered = (f.col("event") == "sync_answered") & f.col("error").isNull()
    in_this = answered & (f.col("generation") == f.col("of_generation"))
    per_member = later.groupBy(*GROUP, "round", "member_id").agg(
        f.min_by(f.when(in_this, f.col("time_us")), f.when(in_this, f.col("seq"))).alias("answered_us"),
        f.min(f.when(in_this, f.col("seq"))).alias("answered_seq"),
        f.min(f.when(f.col("event") == "member_replaced", f.col("seq"))).alias("replaced_seq"),
    )
    return (
        per_member.where("replaced_seq is null or answered_seq < replaced_seq")
        .groupBy(*GROUP, "round")
        .agg(f.max("answered_us").alias("answered_us"))
    )
