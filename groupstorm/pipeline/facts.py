"""Rows -> facts: one row for every partition that a member took or gave up (``kind`` own or end).

Rows of members say so; if a trace has the coordinator's rows alone, facts follow from its answers, by the
rules of `groupstorm.figures.coordinator_view`. Where owners pause, resume and change their rates has facts of
its own (``kind`` pause, resume or rates).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as TimeWindow
from pyspark.sql import functions as f

from groupstorm.figures.by_group import Window
from groupstorm.figures.coordinator_view import COOPERATIVE_MARK, COOPERATIVE_NAMES
from groupstorm.figures.record_model import THOUSAND
from groupstorm.figures.row_rules import MEMBERS_VIEW
from groupstorm.pipeline.results import ABSENCES, ENDS_ABSENCE, OWNERSHIP_KINDS, RATES_CHANGED

GROUP = ("run", "group")
PARTITION = (*GROUP, "partition")

#: Sorted and shuffled by: rows of one run differ in a number already, not only in the last of three texts.
KEY = "partition_key"

_COLUMNS = (
    *PARTITION,
    "seq",
    "time_us",
    "kind",
    "member",
    "generation",
    "position",
    "callback_us",
    "event",
    "cause",
)


#: What most traces do not have, and what costs a pass over the rows where they do.
_RARE = {
    "deletes_partitions": ("partitions_deleted",),
    "is_absent": tuple(sorted(ABSENCES.keys() - ENDS_ABSENCE)),
}


def runs(rows: DataFrame, window: Window, ends: DataFrame) -> DataFrame:
    """One row per run and group: its window, its rates, and whether ownership follows from rows of members.

    ``ends``: per run, where its trace ends (``end_us``).
    """
    first_member_row = f.min(f.when(f.col("source") == "member", f.col("seq")))
    first_added = f.min(f.when(f.col("event") == "member_added", f.col("seq")))
    by_order = f.coalesce(first_added.isNull() | (first_member_row < first_added), f.lit(False))
    # an imported trace says from whose rows ownership follows
    imported_view = f.max(f.when(f.col("event") == "group_imported", f.col("cause")))
    started = f.col("event") == "scenario_started"
    return (
        rows.groupBy(*GROUP)
        .agg(
            f.coalesce(imported_view == MEMBERS_VIEW, by_order).alias("has_member_rows"),
            # of all partitions and owners, until a row names one: records per 1,000 seconds
            *[
                (f.coalesce(f.max(f.when(started, f.col(rate))), f.lit(0)) * THOUSAND).alias(rate)
                for rate in ("record_rate", "process_rate")
            ],
            f.max("seq").alias("last_seq"),
            *[
                f.coalesce(f.bool_or(f.col("event").isin(*events)), f.lit(False)).alias(name)
                for name, events in _RARE.items()
            ],
        )
        .join(f.broadcast(ends), "run")
        .withColumn("window_us", f.lit(window.from_us).cast("bigint"))
    )


class Contents(NamedTuple):
    """What the traces have: what none of them has needs no pass over the rows."""

    members_view: bool
    coordinator_view: bool
    deleted_partitions: bool
    absent_groups: bool


def contents(runs: DataFrame) -> Contents:
    """What any of the runs has."""
    members_view = f.col("has_member_rows")
    found = runs.agg(
        *[f.bool_or(has) for has in (members_view, ~members_view, "deletes_partitions", "is_absent")]
    ).collect()
    return Contents(*map(bool, found[0]))


def absences(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Times in which a group did not exist or, by an import, had no members: until it was there again, or to
    the end. Those of one group do not overlap."""
    in_order = TimeWindow.partitionBy(*GROUP).orderBy("seq")
    until_now = in_order.rowsBetween(TimeWindow.unboundedPreceding, TimeWindow.currentRow)
    event = f.col("event")

    def is_not(what: str) -> Column:
        said = f.when(
            event.isin(*[name for name, about in ABSENCES.items() if about == what]),
            ~event.isin(*ENDS_ABSENCE),
        )
        return f.coalesce(f.last(said, ignorenulls=True).over(until_now), f.lit(False))

    return (
        rows.where(event.isin(*ABSENCES))
        .withColumns(
            {
                "until_us": f.lead("time_us").over(in_order),
                "is_absent": reduce(or_, map(is_not, sorted(set(ABSENCES.values())))),
            }
        )
        .where("is_absent")
        .join(f.broadcast(runs.select(*GROUP, "end_us")), list(GROUP))
        .select(
            *GROUP,
            f.col("time_us").alias("absent_from_us"),
            f.coalesce("until_us", "end_us").alias("absent_to_us"),
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


def facts(rows: DataFrame, runs: DataFrame, has: Contents) -> DataFrame:
    """The facts that count, of the kinds own and end: a member takes partitions that it does not own, and
    ends what it owns. Those of a partition stand together, sorted by member and seq."""
    found = []
    if has.coordinator_view:
        known = rows.join(f.broadcast(runs.where("not has_member_rows").select(*GROUP)), list(GROUP))
        found.append(_of_coordinator(known))
    if has.members_view or not found:
        known = rows
        if has.coordinator_view:
            known = rows.join(f.broadcast(runs.where("has_member_rows").select(*GROUP)), list(GROUP))
        found.append(_of_members(known, ("own", "end")).select(*_COLUMNS))
    changes = reduce(DataFrame.unionByName, found)
    if has.deleted_partitions:
        changes = changes.unionByName(_of_deletions(rows, changes), allowMissingColumns=True)
    return _that_count(changes.withColumn(KEY, f.xxhash64(*PARTITION)).repartition(KEY))


def _of_deletions(rows: DataFrame, found: DataFrame) -> DataFrame:
    """Whoever ever took a partition owns it no more after its deletion, at a position that is not known."""
    deleted = rows.where("event = 'partitions_deleted'").select(
        *GROUP, "seq", "time_us", "event", f.explode("partitions").alias("partition")
    )
    names = f.broadcast(deleted.select(*PARTITION).distinct())
    owners = found.where("kind = 'own'").join(names, list(PARTITION)).select(*PARTITION, "member").distinct()
    return deleted.join(owners, list(PARTITION)).withColumn("kind", f.lit("end"))


def line_facts(rows: DataFrame) -> DataFrame:
    """Where members pause, resume and change their rates: rows of members alone say so."""
    return _of_members(rows, ("pause", "resume", RATES_CHANGED)).select(
        *PARTITION, "seq", "time_us", "kind", "member", "position", "rate"
    )


def _of_members(rows: DataFrame, kinds: Sequence[str]) -> DataFrame:
    events = {event: kind for event, kind in OWNERSHIP_KINDS.items() if kind in kinds}
    kind = f.create_map(*[f.lit(word) for item in events.items() for word in item])
    unknown = f.array().cast("array<bigint>")
    positions, rates = f.coalesce("positions", unknown), f.coalesce("rates", unknown)
    named = rows.where(f.col("event").isin(*events)).select(
        *GROUP,
        "seq",
        "time_us",
        kind[f.col("event")].alias("kind"),
        "member",
        "generation",
        f.coalesce("duration_us", f.lit(0)).alias("callback_us"),
        "event",
        "cause",
        f.explode(f.arrays_zip("partitions", positions.alias("positions"), rates.alias("rates"))).alias(
            "one"
        ),
    )
    parts = {"partition": "partitions", "position": "positions", "rate": "rates"}
    return named.select("*", *[f.col(f"one.{part}").alias(name) for name, part in parts.items()])


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
    """Leave out the assignment of an owned partition, and the end of what the member does not own."""
    per_owner = TimeWindow.partitionBy(KEY, *PARTITION, "member").orderBy("seq")
    before = f.coalesce(f.lag("kind").over(per_owner), f.lit("end"))
    return found.withColumn("before", before).where("kind != before").drop("before")
