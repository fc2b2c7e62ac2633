"""Rows -> facts: one row for every partition that a member took, gave up, paused or resumed.

``kind`` is own, end, pause or resume. Members tell these themselves; where a trace has the coordinator's
rows alone, they follow from its answers, by the rules of `groupstorm.storms.figures.coordinator_view`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.storms.figures.accumulator import CLOSE
from groupstorm.storms.figures.coordinator_view import COOPERATIVE_MARK, COOPERATIVE_NAMES

GROUP = ("run", "group")
PARTITION = (*GROUP, "partition")

#: What a member's row means for the partitions that it names.
KINDS = {
    "partitions_assigned": "own",
    "partitions_revoked": "end",
    "partitions_lost": "end",
    "member_crashed": "end",
    "member_paused": "pause",
    "member_resumed": "resume",
    "partitions_paused": "pause",
    "partitions_resumed": "resume",
}

_COLUMNS = (
    *PARTITION,
    "seq",
    "time_us",
    "kind",
    "member",
    "generation",
    "position",
    "callback_us",
    "given_up",
    "event",
    "cause",
)


def runs(rows: DataFrame) -> DataFrame:
    """One row per run and group: when it begins and ends, its rates, and who tells its story."""
    ends = rows.groupBy("run").agg(f.max("time_us").alias("end_us"))
    first_member_row = f.min(f.when(f.col("source") == "member", f.col("seq")))
    first_added = f.min(f.when(f.col("event") == "member_added", f.col("seq")))
    started = f.col("event") == "scenario_started"
    groups = rows.groupBy(*GROUP).agg(
        f.min_by("time_us", "seq").alias("first_us"),
        f.coalesce(first_added.isNull() | (first_member_row < first_added), f.lit(False)).alias(
            "members_told"
        ),
        f.max(f.when(started, f.col("record_rate"))).alias("record_rate"),
        f.max(f.when(started, f.col("process_rate"))).alias("process_rate"),
        f.sum((f.col("state") == "Stable").cast("long")).alias("generations"),
    )
    return groups.join(ends, "run")


def facts(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """All facts that count: a member takes what it does not own, ends, pauses and resumes what it does."""
    told = rows.join(f.broadcast(runs.select(*GROUP, "members_told")), list(GROUP))
    by_members = _told_by_members(told.where("members_told"))
    return _that_count(by_members.unionByName(_told_by_coordinator(told.where("not members_told"))))


def _told_by_members(rows: DataFrame) -> DataFrame:
    kind = f.create_map(*[f.lit(word) for item in KINDS.items() for word in item])
    named = rows.where(f.col("event").isin(*KINDS)).select(
        *GROUP,
        "seq",
        "time_us",
        kind[f.col("event")].alias("kind"),
        "member",
        "generation",
        f.coalesce("duration_us", f.lit(0)).alias("callback_us"),
        ((f.col("event") == "partitions_revoked") & (f.col("cause") != CLOSE)).alias("given_up"),
        "event",
        "cause",
        f.posexplode(f.arrays_zip("partitions", "positions")).alias("place", "pair"),
    )
    partition = f.col("pair.partitions").alias("partition")
    return named.select("*", partition, f.col("pair.positions").alias("position")).select(*_COLUMNS)


def _told_by_coordinator(rows: DataFrame) -> DataFrame:
    """What each row leaves a member with is known from the row alone; facts are the differences."""
    nothing = f.array().cast("array<string>")
    held = _held(rows)
    per_member = Window.partitionBy(*GROUP, "member").orderBy("seq")
    changes = held.withColumn("before", f.coalesce(f.lag("held").over(per_member), nothing))
    sides = {"end": f.array_except("before", "held"), "own": f.array_except("held", "before")}
    found = [
        changes.withColumn("kind", f.lit(kind))
        .withColumn("partition", f.explode(partitions))
        .withColumn("position", f.lit(None).cast("long"))
        .withColumn("callback_us", f.lit(0).cast("long"))
        .select(*_COLUMNS)
        for kind, partitions in sides.items()
    ]
    return found[0].unionByName(found[1])


def _held(rows: DataFrame) -> DataFrame:
    """The rows that set what a member holds, with ``held``."""
    in_order = Window.partitionBy(*GROUP).orderBy("seq")
    chosen = f.when(f.col("state") == "CompletingRebalance", f.coalesce("protocol", f.lit("")))
    protocol = f.coalesce(f.last(chosen, ignorenulls=True).over(in_order), f.lit(""))
    cooperative = protocol.contains(COOPERATIVE_MARK) | protocol.isin(*COOPERATIVE_NAMES)
    event, fine = f.col("event"), f.col("error").isNull()
    synced = (event == "sync_answered") & fine
    joining = (event == "join_parked") | ((event == "join_answered") & fine)
    gone = event.isin("member_removed", "member_replaced")
    instances = (
        rows.where(event.isin("member_added", "member_replaced") & f.col("instance").isNotNull())
        .select(*GROUP, "member_id", f.col("instance").alias("known_instance"))
        .distinct()
    )
    nothing = f.array().cast("array<string>")
    return (
        rows.withColumn("cooperative", cooperative)
        .where(synced | gone | (joining & ~f.col("cooperative")))
        .join(instances, [*GROUP, "member_id"], "left")
        .withColumn("member", f.coalesce("known_instance", "member_id"))
        .withColumn("held", f.when(synced, f.coalesce("partitions", nothing)).otherwise(nothing))
        .withColumn("given_up", ~gone)
    )


def _that_count(found: DataFrame) -> DataFrame:
    """Leave out a second assignment of what is owned, and what happens to what is not."""
    per_owner = Window.partitionBy(*PARTITION, "member").orderBy("seq")
    owning = f.when(f.col("kind").isin("own", "end"), f.col("kind"))
    before = f.coalesce(
        f.last(owning, ignorenulls=True).over(per_owner.rowsBetween(Window.unboundedPreceding, -1)),
        f.lit("end"),
    )
    owned = found.withColumn("before", before).where(
        f.when(f.col("kind") == "own", f.col("before") == "end").otherwise(f.col("before") == "own")
    )
    last = f.coalesce(f.lag("kind").over(per_owner), f.lit("end"))
    return (
        owned.withColumn("before", last)
        .where((f.col("kind") != "pause") | (f.col("before") != "pause"))
        .where((f.col("kind") != "resume") | (f.col("before") == "pause"))
        .drop("before")
    )
