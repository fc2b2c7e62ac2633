"""Rows -> settled points -> moves: what changed hands between points, and how evenly it ended up.

When a group is settled is decided run by run by the one class that knows it, over the few rows that it
reads, in a grouped map; who owns what then, and all sums, are Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP, PARTITION
from groupstorm.storms.figures.accumulator import FiguresAccumulator
from groupstorm.storms.figures.rows import read_row
from groupstorm.storms.figures.settling import SettledPoint

if TYPE_CHECKING:
    import pandas

#: The rows from which settled points follow.
_EVENTS = (
    "group_state_changed",
    "member_added",
    "member_replaced",
    "member_removed",
    "join_answered",
    "sync_answered",
    "member_started",
    "rejoin_requested",
    "partitions_assigned",
    "partitions_revoked",
    "member_crashed",
    "member_closed",
    "member_failed",
    "scenario_started",
    "partitions_created",
)

#: What those rows need of their columns; the partitions of members' rows stay behind, they are Spark's.
_COLUMNS = (
    "seq",
    "time_us",
    "source",
    "event",
    "member",
    "member_id",
    "previous_member_id",
    "instance",
    "generation",
    "previous_state",
    "state",
    "cause",
    "error",
    "protocol",
    "count",
    "duration_us",
    "topics",
)

_POINTS_SCHEMA = (
    "run string, `group` string, point int, time_us bigint, changes bigint, rounds bigint, "
    "live array<string>, subscriptions array<string>, marked_us bigint"
)


def settled_points(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """One row per settled point: when, who was live then, and what `SettledPoint` counts since the last.

    ``subscriptions`` go with ``live``: topics with commas between them, null where unknown. ``marked_us`` is
    the same on all rows of a group: the first change after its first point, null without one.
    """
    answered = f.col("event") == "sync_answered"
    needed = rows.where(f.col("event").isin(*_EVENTS)).join(
        f.broadcast(runs.select(*GROUP, "members_told")), list(GROUP)
    )
    # only the coordinator's own story needs to know what a SyncGroup was answered with
    partitions = f.when(answered & ~f.col("members_told"), f.col("partitions")).alias("partitions")
    found = needed.select(*GROUP, *_COLUMNS, partitions).groupBy(*GROUP)
    return found.applyInPandas(_points_of, _POINTS_SCHEMA)


def _points_of(key: tuple[Any, ...], rows: pandas.DataFrame) -> pandas.DataFrame:
    """The settled points of one group, from its rows in any order."""
    import pandas

    points: list[tuple[int, SettledPoint]] = []
    accumulator = FiguresAccumulator(on_settled=lambda time_us, point: points.append((time_us, point)))
    for row in _in_order(rows, key[1]):
        accumulator.add(*read_row(row))
    accumulator.totals()
    found = [
        (
            *key,
            number,
            time_us,
            point.changes,
            point.rounds,
            list(point.live),
            [None if topics is None else ",".join(sorted(topics)) for topics in point.live.values()],
            accumulator.first_change_us,
        )
        for number, (time_us, point) in enumerate(points)
    ]
    columns = [
        "run", "group", "point", "time_us", "changes", "rounds", "live", "subscriptions", "marked_us",
    ]  # fmt: skip
    frame = pandas.DataFrame(found, columns=columns)
    return frame.astype({"marked_us": "Int64"})


def _in_order(rows: pandas.DataFrame, group: str) -> Iterator[dict[str, Any]]:
    """Rows as a trace has them: whole numbers, lists, no nulls."""
    import pandas

    numbers = ("seq", "time_us", "generation", "count", "duration_us")
    ordered = rows.sort_values("seq")
    for values in ordered.itertuples(index=False, name=None):
        # what a scenario_started has besides its time plays no part here
        row: dict[str, Any] = {"group": group, "detail": "", "record_rate": 0, "process_rate": 0}
        for name, value in zip(ordered.columns, values, strict=True):
            if name in ("topics", "partitions"):
                if value is not None:
                    row[name] = list(value)
            elif not pandas.isna(value):
                row[name] = int(value) if name in numbers else value
        yield row


def moves(points: DataFrame, owners: DataFrame, presence: DataFrame) -> DataFrame:
    """Per group with a settled point: moves, their lower bound, imbalance and idle members.

    ``moves_lower_bound`` is null where subscriptions differ at a point that closes a pair.
    """
    loads = owners.groupBy(*GROUP, "point", "member").agg(f.count("*").alias("load"))
    live = points.select(
        *GROUP, "point", f.explode(f.arrays_zip("live", "subscriptions")).alias("pair")
    ).select(*GROUP, "point", f.col("pair.live").alias("member"), f.col("pair.subscriptions").alias("topics"))
    moved = _moved(owners)
    bound = _lower_bounds(points, live, loads, presence)
    spread = _spread(live, loads)
    return (
        points.groupBy(*GROUP)
        .agg(
            f.sum("changes").alias("changes"),
            f.sum("rounds").alias("rounds"),
            f.first("marked_us").alias("marked_us"),
        )
        .join(moved, list(GROUP), "left")
        .join(bound, list(GROUP), "left")
        .join(spread, list(GROUP), "left")
        .withColumns(
            {
                name: f.coalesce(name, f.lit(0))
                for name in ("moves", "imbalance_max", "idle_members_max", "lower_bounds", "pairs_unequal")
            }
        )
        .withColumn("moves_lower_bound", f.when(f.col("pairs_unequal") == 0, f.col("lower_bounds")))
    )


def owner_maps(points: DataFrame, intervals: DataFrame) -> DataFrame:
    """Who owns each partition at each point: of two owners the one that was assigned last.

    An interval holds at the points in [from, to); which these are is counted once per time.
    """
    before = _points_before(points, intervals).localCheckpoint()
    first = before.select(*GROUP, f.col("at_us").alias("from_us"), f.col("points").alias("first"))
    behind = before.select(*GROUP, f.col("at_us").alias("to_us"), f.col("points").alias("behind"))
    until = f.when(f.col("to_seq").isNull(), f.col("all_points")).otherwise(f.col("behind"))
    total = points.groupBy(*GROUP).agg(f.count("*").alias("all_points"))
    return (
        intervals.join(first, [*GROUP, "from_us"])
        .join(behind, [*GROUP, "to_us"])
        .join(f.broadcast(total), list(GROUP))
        .withColumn("until", until)
        .where("until > first")
        .select(
            *PARTITION, "member", "from_seq", f.explode(f.expr("sequence(first, until - 1)")).alias("point")
        )
        .groupBy(*PARTITION, "point")
        .agg(f.max_by("member", "from_seq").alias("member"))
    )


def _points_before(points: DataFrame, intervals: DataFrame) -> DataFrame:
    """For every time at which an interval begins or ends: how many points lie before it."""
    times = [intervals.select(*GROUP, f.col(name).alias("at_us")) for name in ("from_us", "to_us")]
    wanted = times[0].unionByName(times[1]).distinct().withColumn("point", f.lit(0))
    marks = points.select(*GROUP, f.col("time_us").alias("at_us"), f.lit(1).alias("point"))
    in_order = Window.partitionBy(*GROUP).orderBy("at_us", "point")
    return (
        wanted.unionByName(marks)
        .withColumn("points", f.sum("point").over(in_order))
        .where("point = 0")
        .drop("point")
    )


def _moved(owners: DataFrame) -> DataFrame:
    by_point = Window.partitionBy(*PARTITION).orderBy("point")
    before = {"old_point": f.lag("point").over(by_point), "old_member": f.lag("member").over(by_point)}
    moved = (f.col("old_point") == f.col("point") - 1) & (f.col("old_member") != f.col("member"))
    return owners.withColumns(before).groupBy(*GROUP).agg(f.count_if(moved).alias("moves"))


def _lower_bounds(points: DataFrame, live: DataFrame, loads: DataFrame, presence: DataFrame) -> DataFrame:
    """The rule of `groupstorm.storms.figures.moves.moves_needed`, summed over pairs of points."""
    at_point = points.where("point > 0").select(*GROUP, "point", "time_us", f.size("live").alias("n"))
    created = presence.groupBy(*GROUP, "exist_us").agg(f.count("*").alias("created"))
    existing = (
        at_point.join(f.broadcast(created), list(GROUP))
        .where("exist_us <= time_us and n > 0")
        .groupBy(*GROUP, "point", "n")
        .agg(f.sum("created").alias("p"))
    )
    before = loads.withColumn("point", f.col("point") + 1)
    owned = before.groupBy(*GROUP, "point").agg(f.sum("load").alias("k"))
    least = f.expr("p div n")
    kept = (
        live.join(existing, [*GROUP, "point"])
        .join(before, [*GROUP, "point", "member"], "left")
        .withColumn("load", f.coalesce("load", f.lit(0)))
        .groupBy(*GROUP, "point", "p", "n")
        .agg(
            f.sum(f.least(f.col("load"), least)).alias("kept"),
            f.count_if(f.col("load") > least).alias("more"),
            (f.count_distinct("topics") > 1).alias("unequal"),
        )
    )
    bound = f.coalesce("k", f.lit(0)) - f.col("kept") - f.least(f.col("more"), f.col("p") % f.col("n"))
    return (
        kept.join(owned, [*GROUP, "point"], "left")
        .groupBy(*GROUP)
        .agg(f.sum(bound).alias("lower_bounds"), f.count_if("unequal").alias("pairs_unequal"))
    )


def _spread(live: DataFrame, loads: DataFrame) -> DataFrame:
    loaded = live.join(loads, [*GROUP, "point", "member"], "left").withColumn(
        "load", f.coalesce("load", f.lit(0))
    )
    alike = loaded.groupBy(*GROUP, "point", "topics").agg(
        (f.max("load") - f.min("load")).alias("imbalance"), f.count_if(f.col("load") == 0).alias("idle")
    )
    per_point = alike.groupBy(*GROUP, "point").agg(
        f.max("imbalance").alias("imbalance"), f.sum("idle").alias("idle")
    )
    return per_point.groupBy(*GROUP).agg(
        f.max("imbalance").alias("imbalance_max"), f.max("idle").alias("idle_members_max")
    )
