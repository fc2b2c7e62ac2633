"""Owner intervals -> records: processed, processed again, skipped."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP, PARTITION


def records(intervals: DataFrame) -> DataFrame:
    """Per group: sums over partitions of what their intervals' position ranges cover.

    A range brings what lies beyond the furthest end of all ranges that start before it.
    """
    by_start = Window.partitionBy(*PARTITION).orderBy("from_position", "until")
    whole = Window.partitionBy(*PARTITION)
    furthest_before = f.max("until").over(by_start.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.greatest("from_position", furthest_before)  # nulls are left out
    ranges = (
        intervals.withColumn("until", f.greatest("from_position", "to_position"))
        .withColumn("first_position", f.min_by("from_position", "from_seq").over(whole))
        .withColumn("begins", begins)
        .withColumn("fresh", f.greatest(f.lit(0), f.col("until") - f.col("begins")))
        .withColumn("counted", f.greatest(f.lit(0), f.col("until") - f.greatest("begins", "first_position")))
    )
    partitions = ranges.groupBy(*PARTITION).agg(
        f.sum(f.col("until") - f.col("from_position")).alias("processed"),
        f.sum("fresh").alias("covered"),
        f.sum("counted").alias("counted"),
        f.greatest(f.max("to_position"), f.first("first_position")).alias("furthest"),
        f.first("first_position").alias("first_position"),
    )
    return partitions.groupBy(*GROUP).agg(
        f.sum("processed").alias("records_processed"),
        f.sum(f.col("processed") - f.col("covered")).alias("records_duplicated"),
        f.sum(f.col("furthest") - f.col("first_position") - f.col("counted")).alias("records_skipped"),
    )
