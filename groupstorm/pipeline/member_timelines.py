"""Rows -> member timelines: what happened to each member, and until when it stayed so."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP
from groupstorm.pipeline.results import MEMBER_EVENTS


def member_timelines(rows: DataFrame) -> DataFrame:
    """One row per event of a member, in its order: ``until_us`` is its next event's time, null for the last.

    ``partitions`` is how many the event names, null if the event never names any.
    """
    in_order = Window.partitionBy(*GROUP, "member").orderBy("seq")
    return rows.where(f.col("event").isin(*MEMBER_EVENTS)).select(
        *GROUP,
        "member",
        "seq",
        "time_us",
        f.lead("time_us").over(in_order).alias("until_us"),
        "event",
        "cause",
        "error",
        "generation",
        f.when(f.col("partitions").isNotNull(), f.size("partitions")).alias("partitions"),
        "duration_us",
    )
