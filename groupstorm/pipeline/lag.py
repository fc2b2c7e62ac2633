"""Steps -> the lag of all partitions together: its peak and its recovery.

The curve is that of `groupstorm.storms.figures.lag`, put together from the other side: every partition's
course is cut into straight pieces, the pieces of all partitions are summed by time, and running sums give
the value at each bend. Values are in millionths of a record; sums over partitions are decimals, since they
could outgrow 64 bits.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP, PARTITION
from groupstorm.storms.figures.totals import MICRO

_WIDE = "decimal(19,0)"


def lines(steps: DataFrame) -> DataFrame:
    """The steps that move a partition's frontier, with what they tell: ``furthest`` is the position known,
    or the end of the log when the partition was created.

    An owner that stood at position p at time t is on the line p * MICRO - process_rate * t, ``own_line``
    of the step at which it begins and ``left_line`` of the one at which it stops; ``sum_of_lines`` is over
    the owners at work after the step.
    """
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    change = f.col("processing_change")
    line = f.expr(f"position * {MICRO} - process_rate * time_us")
    at_creation = f.col("record_rate") * f.col("time_us")
    known = f.when(f.col("kind") == "exist", at_creation).otherwise(f.col("position") * MICRO)
    entered = f.coalesce("own_line", f.lit(0)) - f.coalesce("left_line", f.lit(0))
    return (
        steps.where("kind = 'exist' or processing_change != 0")
        .withColumn("own_line", f.when(change == 1, line))
        .withColumn("left_line", f.when(change == -1, f.lag("own_line").over(per_owner)))
        .withColumn("furthest", f.max(known).over(in_order))
        .withColumn("sum_of_lines", f.sum(entered).over(in_order))
        .select(
            *(
                *PARTITION,
                "seq",
                "rank",
                "time_us",
                "kind",
                "member",
                "processing",
                "own_line",
                "sum_of_lines",
            ),
            *("furthest", "record_rate", "process_rate", "end_us"),
        )
    )


def frontiers(lines: DataFrame) -> DataFrame:
    """Adds the ``line`` of whoever is furthest of the owners at work; null where nobody is."""
    processing = f.col("processing")
    line = f.when(processing == 1, f.col("sum_of_lines")).when(processing > 1, f.col("highest"))
    return lines.join(_highest_of_several(lines), [*PARTITION, "seq"], "left").withColumn("line", line)


def _highest_of_several(lines: DataFrame) -> DataFrame:
    """The highest line at each step after which two or more owners are at work: there are few."""
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    stretches = (
        lines.where("kind != 'exist'")
        .withColumn("stopped_seq", f.coalesce(f.lead("seq").over(per_owner), f.lit(2**62)))
        .where("own_line is not null")
        .select(
            *PARTITION, f.col("seq").alias("started_seq"), "stopped_seq", f.col("own_line").alias("a_line")
        )
    )
    return (
        lines.where("processing > 1")
        .select(*PARTITION, "seq")
        .join(stretches, list(PARTITION))
        .where("started_seq <= seq and seq < stopped_seq")
        .groupBy(*PARTITION, "seq")
        .agg(f.max("a_line").alias("highest"))
    )


def _lag_at(time: str, furthest: str, line: str) -> str:
    log_end = f"record_rate * {time}"
    owner = f"least({log_end}, {line} + process_rate * {time})"
    return f"({log_end} - if({line} is null, {furthest}, greatest({furthest}, {owner})))"


#: Where a piece may turn: at its ends, and at the whole microseconds around each crossing of its lines.
_CROSSINGS = (
    "line div nullif(record_rate - process_rate, 0)",
    "(furthest - line) div nullif(process_rate, 0)",
    "furthest div record_rate",
)
_AROUND = ", ".join(f"{crossing}, {crossing} + 1" for crossing in _CROSSINGS)
_KNOTS = f"""
    array_sort(array_distinct(
        filter(array(time_us, to_us, {_AROUND}), x -> x >= time_us and x <= to_us)))
"""
_SLOPES = f"""
    zip_with(slice(knots, 1, size(knots) - 1), slice(knots, 2, size(knots) - 1), (x, y) ->
        ({_lag_at("y", "furthest", "line")} - {_lag_at("x", "furthest", "line")}) div (y - x))
"""

#: A piece turns the curve where it begins, by its jump and its first slope; at each knot, from one slope to
#: the next; and where it ends, since the next piece says how it goes on.
_TURNS = """
    transform(sequence(1, size(knots)), place -> struct(
        knots[place - 1] as time_us,
        if(place = 1, jump, 0L) as jump,
        coalesce(get(slopes, place - 1), 0L) - coalesce(get(slopes, place - 2), 0L) as bend))
"""


def curve(frontiers: DataFrame) -> DataFrame:
    """The lag of each group over time: at ``time_us`` it jumps by ``jump`` to ``value``.

    From there it goes on with ``slope`` to ``end`` at ``until_us``, null at the end of the trace.
    """
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "rank")
    pieces = frontiers.withColumns(
        {
            "to_us": f.coalesce(f.lead("time_us").over(in_order), "end_us"),
            "old_furthest": f.lag("furthest").over(in_order),
            "old_line": f.lag("line").over(in_order),
        }
    )
    old_value = f.when(
        f.col("old_furthest").isNotNull(), f.expr(_lag_at("time_us", "old_furthest", "old_line"))
    )
    jump = f.expr(_lag_at("time_us", "furthest", "line")) - f.coalesce(old_value, f.lit(0))
    in_time = Window.partitionBy(*GROUP).orderBy("time_us")
    lasting = (f.col("until_us") - f.col("time_us")).cast(_WIDE)
    return (
        pieces.withColumn("jump", jump)
        .withColumn("knots", f.expr(_KNOTS))
        .withColumn("slopes", f.expr(_SLOPES))
        .select(*GROUP, f.explode(f.expr(_TURNS)).alias("turn"))
        .select(*GROUP, "turn.*")
        .groupBy(*GROUP, "time_us")
        .agg(_sum("jump"), _sum("bend"))
        .withColumn("slope", f.sum("bend").over(in_time).cast(_WIDE))
        .withColumn("until_us", f.lead("time_us").over(in_time))
        .withColumn("rise", f.coalesce(f.col("slope") * lasting, f.lit(0)).cast("decimal(38,0)"))
        .withColumn("end", (f.sum("jump").over(in_time) + f.sum("rise").over(in_time)).cast("decimal(38,0)"))
        .withColumn("value", (f.col("end") - f.col("rise")).cast("decimal(38,0)"))
    )


def _sum(name: str) -> Column:
    return f.sum(f.col(name).cast(_WIDE)).cast(_WIDE).alias(name)


def lag(curve: DataFrame, completion: DataFrame, marks: DataFrame) -> DataFrame:
    """Per group: the peak from the first complete assignment on, and the recovery from the marked change.

    ``marks``: per group ``marked_us``, null where there was no change to recover from.
    """
    before = f.col("value") - f.col("jump")
    peaks = (
        curve.join(f.broadcast(completion), list(GROUP))
        .where("time_us >= complete_us")
        .withColumn(
            "seen",
            f.when(f.col("time_us") > f.col("complete_us"), f.greatest("value", before)).otherwise(
                f.col("value")
            ),
        )
        .groupBy(*GROUP)
        .agg(f.max("seen").alias("lag_peak_micro"))
    )
    return peaks.join(_recovery(curve, marks), list(GROUP), "full")


def _recovery(curve: DataFrame, marks: DataFrame) -> DataFrame:
    marked = curve.join(f.broadcast(marks.where("marked_us is not null")), list(GROUP))
    at_mark = (f.col("time_us") < f.col("marked_us")) & (f.col("marked_us") <= f.col("until_us"))
    passed = (f.col("marked_us") - f.col("time_us")).cast(_WIDE)
    levels = marked.groupBy(*GROUP).agg(
        f.coalesce(f.max(f.when(at_mark, f.col("value") + f.col("slope") * passed)), f.lit(0))
        .cast("decimal(38,0)")
        .alias("level"),
        f.max_by("value", "time_us").alias("last_value"),
    )
    begins = f.greatest("time_us", "marked_us")
    started = f.when(f.col("time_us") >= f.col("marked_us"), f.col("value")).otherwise(f.col("level"))
    too_much = (f.col("started") - f.col("level")).cast(_WIDE)
    exact = f.expr("cast((too_much - slope - 1) div (-slope) as bigint)")
    low_from = f.when(f.col("end") > f.col("level"), f.col("until_us")).when(
        f.col("started") > f.col("level"), f.col("begins") + exact
    )
    late = (
        marked.join(levels, list(GROUP))
        .where("until_us > marked_us")
        .withColumn("begins", begins)
        .withColumn("started", started)
        .withColumn("too_much", too_much)
        .groupBy(*GROUP)
        .agg(f.max(low_from).alias("low_from_us"))
    )
    recovered = f.when(
        f.col("last_value") <= f.col("level"), f.coalesce("low_from_us", "marked_us") - f.col("marked_us")
    )
    return (
        levels.join(marks, list(GROUP))
        .join(late, list(GROUP), "left")
        .select(*GROUP, recovered.alias("lag_recovery_us"))
    )
