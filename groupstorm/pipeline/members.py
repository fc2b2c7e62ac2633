"""Rows -> member timelines: what happened to each member, and until when it stayed so."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP

#: Events that change what a member is or has; answers and parked requests are the coordinator's side of it.
_EVENTS = (
    "member_started",
    "rejoin_requested",
    "member_added",
    "member_replaced",
    "member_removed",
    "sync_answered",
    "partitions_revoked",
    "partitions_lost",
    "partitions_assigned",
    "member_paused",
    "member_resumed",
    "partitions_paused",
    "partitions_resumed",
    "member_crashed",
    "member_closed",
    "member_failed",
)


def member_timelines(rows: DataFrame) -> DataFrame:
    """One row per event of a member, in its order: ``until_us`` is its next event's time, null for the last.

    ``partitions`` is how many the event names, null where it names none by nature.
    """
    in_order = Window.partitionBy(*GROUP, "member").orderBy("seq")
    return rows.where(f.col("event").isin(*_EVENTS)).select(
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
