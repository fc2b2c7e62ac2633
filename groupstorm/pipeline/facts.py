"""Rows -> facts: one row for every partition that a member took, gave up, paused or resumed, or whose rate of
processing it changed.

``kind`` is own, end, pause, resume or rates. Rows of members say so; if a trace has the coordinator's rows
alone, facts follow from its answers, by the rules of `groupstorm.figures.coordinator_view`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import Window as TimeWindow
from pyspark.sql import functions as f

from groupstorm.figures.by_group import Window
from groupstorm.figures.coordinator_view import COOPERATIVE_MARK, COOPERATIVE_NAMES
from groupstorm.figures.record_model import THOUSAND
from groupstorm.pipeline.results import OWNERSHIP_KINDS, RATES_CHANGED

GROUP = ("run", "group")
PARTITION = (*GROUP, "partition")

_COLUMNS = (
    *PARTITION,
    "seq",
    "time_us",
    "kind",
    "member",
    "generation",
    "position",
    "rate",
    "callback_us",
    "event",
    "cause",
)


def runs(rows: DataFrame, window: Window, ends: Mapping[str, int]) -> DataFrame:
    """One row per run and group: its window, its rates, and whether it has rows of members.

    ``ends``: run -> where its trace ends.
    """
    first_member_row = f.min(f.when(f.col("source") == "member", f.col("seq")))
    first_added = f.min(f.when(f.col("event") == "member_added", f.col("seq")))
    started = f.col("event") == "scenario_started"
    end_us = f.create_map(*[f.lit(word) for item in ends.items() for word in item])
    return (
        rows.groupBy(*GROUP)
        .agg(
            f.coalesce(first_added.isNull() | (first_member_row < first_added), f.lit(False)).alias(
                "has_member_rows"
            ),
            # of all partitions and owners, until a row names one: records per 1,000 seconds
            *[
                (f.coalesce(f.max(f.when(started, f.col(rate))), f.lit(0)) * THOUSAND).alias(rate)
                for rate in ("record_rate", "process_rate")
            ],
        )
        .withColumn("end_us", end_us[f.col("run")].cast("bigint"))
        .withColumn("window_us", f.lit(window.from_us).cast("bigint"))
    )


def absences(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Times in which a group did not exist: from a ``group_deleted`` to the next creation, or to the end."""
    in_order = TimeWindow.partitionBy(*GROUP).orderBy("seq")
    return (
        rows.where(f.col("event").isin("group_created", "group_deleted"))
        .withColumn("created_us", f.lead("time_us").over(in_order))
        .where("event = 'group_deleted'")
        .join(f.broadcast(runs.select(*GROUP, "end_us")), list(GROUP))
        .select(
            *GROUP,
            f.col("time_us").alias("absent_from_us"),
            f.coalesce("created_us", "end_us").alias("absent_to_us"),
        )
        .where("absent_to_us > absent_from_us")
    )


def logs(rows: DataFrame) -> DataFrame:
    """The last line of every log that a row has changed: ``log_position`` at ``log_us``, ``log_rate``.

    All three are null if its partition was deleted since.
    """
    nulls = f.array().cast("array<bigint>")
    named = f.posexplode(f.arrays_zip("partitions", "positions", "rates")).alias("place", "log")
    return (
        rows.where(f.col("event").isin("record_rates_changed", "partitions_deleted"))
        .withColumns({name: f.coalesce(name, nulls) for name in ("positions", "rates")})
        .withColumn("time_us", f.when(f.col("event") == "record_rates_changed", f.col("time_us")))
        .select(*GROUP, "seq", "time_us", named)
        .withColumn("at", f.struct("seq", "place"))
        .groupBy(*GROUP, f.col("log.partitions").alias("partition"))
        .agg(
            f.max_by("log.positions", "at").alias("log_position"),
            f.max_by("time_us", "at").alias("log_us"),
            f.max_by("log.rates", "at").alias("log_rate"),
        )
    )


def facts(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """The facts that count: a member takes partitions that it does not own; it ends, pauses and resumes its
    own, and changes the rate of those that it processes."""
    known = rows.join(f.broadcast(runs.select(*GROUP, "has_member_rows")), list(GROUP))
    by_members = _of_members(known.where("has_member_rows"))
    found = by_members.unionByName(_of_coordinator(known.where("not has_member_rows")))
    return _that_count(found.unionByName(_of_deletions(rows, found), allowMissingColumns=True))


def _of_deletions(rows: DataFrame, found: DataFrame) -> DataFrame:
    """Whoever ever took a partition owns it no more after its deletion, at a position that is not known."""
    owners = found.where("kind = 'own'").select(*PARTITION, "member").distinct()
    deleted = rows.where("event = 'partitions_deleted'").select(
        *GROUP, "seq", "time_us", "event", f.explode("partitions").alias("partition")
    )
    return deleted.join(owners, list(PARTITION)).withColumn("kind", f.lit("end"))


def _of_members(rows: DataFrame) -> DataFrame:
    kind = f.create_map(*[f.lit(word) for item in OWNERSHIP_KINDS.items() for word in item])
    rates = f.coalesce("rates", f.array().cast("array<bigint>"))
    named = rows.where(f.col("event").isin(*OWNERSHIP_KINDS)).select(
        *GROUP,
        "seq",
        "time_us",
        kind[f.col("event")].alias("kind"),
        "member",
        "generation",
        f.coalesce("duration_us", f.lit(0)).alias("callback_us"),
        "event",
        "cause",
        f.explode(f.arrays_zip("partitions", "positions", rates.alias("rates"))).alias("one"),
    )
    parts = {"partition": "partitions", "position": "positions", "rate": "rates"}
    return named.select("*", *[f.col(f"one.{part}").alias(name) for name, part in parts.items()]).select(
        *_COLUMNS
    )


def _of_coordinator(rows: DataFrame) -> DataFrame:
    """Each row lists the partitions that a member owns after it; facts are the differences between rows."""
    nothing = f.array().cast("array<string>")
    held = _held(rows)
    per_member = TimeWindow.partitionBy(*GROUP, "member").orderBy("seq")
    changes = held.withColumn("before", f.coalesce(f.lag("held").over(per_member), nothing))
    sides = {"end": f.array_except("before", "held"), "own": f.array_except("held", "before")}
    found = [
        changes.withColumn("kind", f.lit(kind))
        .withColumn("partition", f.explode(partitions))
        .withColumn("position", f.lit(None).cast("long"))
        .withColumn("rate", f.lit(None).cast("long"))
        .withColumn("callback_us", f.lit(0).cast("long"))
        .select(*_COLUMNS)
        for kind, partitions in sides.items()
    ]
    return found[0].unionByName(found[1])


def _held(rows: DataFrame) -> DataFrame:
    """The rows that set what a member holds, with ``held``."""
    in_order = TimeWindow.partitionBy(*GROUP).orderBy("seq")
    chosen = f.when(f.col("state") == "CompletingRebalance", f.coalesce("protocol", f.lit("")))
    protocol = f.coalesce(f.last(chosen, ignorenulls=True).over(in_order), f.lit(""))
    cooperative = protocol.contains(COOPERATIVE_MARK) | protocol.isin(*COOPERATIVE_NAMES)
    event, fine = f.col("event"), f.col("error").isNull()
    synced = (event == "sync_answered") & fine
    reconciled = event == "member_reconciled"
    joining = (event == "join_parked") | ((event == "join_answered") & fine)
    gone = event.isin("member_removed", "member_replaced")
    instances = (
        rows.where(event.isin("member_added", "member_replaced") & f.col("instance").isNotNull())
        .select(*GROUP, "member_id", f.col("instance").alias("known_instance"))
        .distinct()
    )
    nothing = f.array().cast("array<string>")
    has, gives_up = f.coalesce("partitions", nothing), f.coalesce("revoking", nothing)
    return (
        rows.withColumn("cooperative", cooperative)
        .where(synced | reconciled | gone | (joining & ~f.col("cooperative")))
        .join(instances, [*GROUP, "member_id"], "left")
        .withColumn("member", f.coalesce("known_instance", "member_id"))
        .withColumn(
            "held",
            f.when(synced, has).when(reconciled, f.array_union(has, gives_up)).otherwise(nothing),
        )
    )


def _that_count(found: DataFrame) -> DataFrame:
    """Leave out the assignment of an owned partition, and whatever does not suit the owner's state."""
    per_owner = TimeWindow.partitionBy(*PARTITION, "member").orderBy("seq")
    owning = f.when(f.col("kind").isin("own", "end"), f.col("kind"))
    before = f.coalesce(
        f.last(owning, ignorenulls=True).over(per_owner.rowsBetween(TimeWindow.unboundedPreceding, -1)),
        f.lit("end"),
    )
    owned = found.withColumn("before", before).where(
        f.when(f.col("kind") == "own", f.col("before") == "end").otherwise(f.col("before") == "own")
    )
    state = f.when(f.col("kind") != RATES_CHANGED, f.col("kind"))
    last = f.last(state, ignorenulls=True).over(per_owner.rowsBetween(TimeWindow.unboundedPreceding, -1))
    paused = f.coalesce(last, f.lit("end")) == "pause"
    return (
        owned.withColumn("paused", paused)
        .where(~f.col("kind").isin("pause", RATES_CHANGED) | ~f.col("paused"))
        .where((f.col("kind") != "resume") | f.col("paused"))
        .drop("paused")
    )
