"""Rows -> what became of a Kafka Streams application's tasks: the columns of `TaskTotals` for each group."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from groupstorm.pipeline.facts import GROUP
from groupstorm.storms.figures.tasks import ACTIVE, NOTHING, PROBING, STABLE

TASK = (*GROUP, "task")
_RUNNING, _SUSPENDED = "task_running", "task_suspended"
_NUMBER = "decimal(38,0)"


def task_totals(rows: DataFrame, runs: DataFrame, marks: DataFrame) -> DataFrame:
    """``marks``: per group the first change after it had settled once (``marked_us``)."""
    group = list(GROUP)
    created = (
        rows.where("event = 'tasks_created'").select(*GROUP, f.explode("tasks").alias("task")).distinct()
    ).localCheckpoint()
    sizes = created.groupBy(*GROUP).agg(f.count("*").alias("tasks"))
    steps = _steps(rows, created).localCheckpoint()
    complete = _completion(steps, sizes).localCheckpoint()
    joined = sizes.join(runs.select(*GROUP, "end_us"), group).join(marks, group, "left")
    for table in (complete, _follow_ups(rows), _placed(rows), *_imbalances(rows, created, steps)):
        joined = joined.join(f.broadcast(table), group, "left")
    for table in (_downtime(steps, complete, runs), _restored(rows, complete)):
        joined = joined.join(f.broadcast(table), group, "left")
    was_complete = f.col("complete_seq").isNotNull()
    from_complete = {
        name: f.when(was_complete, f.coalesce(name, f.lit(0)))
        for name in (
            "task_down_us",
            "task_down_max_us",
            "task_down_p50_us",
            "restored_bytes",
            "standby_restored_bytes",
            "tasks_from_scratch",
        )
    }
    stable = (f.col("placed_cause") == STABLE) & (f.col("placed_us") >= f.col("marked_us"))
    of_tasks = joined.withColumns(
        {
            **from_complete,
            "probing_rebalances": f.coalesce("probing_rebalances", f.lit(0)),
            "converged_us": f.when(stable, f.col("placed_us") - f.col("marked_us")),
        }
    )
    names = (*from_complete, "probing_rebalances", "converged_us", "task_imbalance", "subtopology_imbalance")
    return of_tasks.select(*GROUP, *names).join(_traffic(rows), group, "full")


def _steps(rows: DataFrame, created: DataFrame) -> DataFrame:
    """Begins and ends of running that count, with how many threads run the task after each."""
    per_thread = Window.partitionBy(*TASK, "member").orderBy("seq")
    per_task = Window.partitionBy(*TASK).orderBy("seq")
    told = (
        rows.where(f.col("event").isin(_RUNNING, _SUSPENDED))
        .select(*TASK, "seq", "time_us", "event", "member", "process")
        .join(f.broadcast(created), list(TASK), "left_semi")
    )
    before = f.coalesce(f.lag("event").over(per_thread), f.lit(_SUSPENDED))
    change = f.when(f.col("event") == _RUNNING, 1).otherwise(-1)
    return (
        told.withColumn("before", before)
        .where("event != before")
        .withColumn("threads", f.sum(change).over(per_task))
    )


def _completion(steps: DataFrame, sizes: DataFrame) -> DataFrame:
    """When all tasks ran for the first time."""
    up = (
        f.when((f.col("event") == _RUNNING) & (f.col("threads") == 1), 1)
        .when((f.col("event") == _SUSPENDED) & (f.col("threads") == 0), -1)
        .otherwise(0)
    )
    so_far = f.sum("up").over(Window.partitionBy(*GROUP).orderBy("seq"))
    return (
        steps.withColumn("up", up)
        .withColumn("running", so_far)
        .join(f.broadcast(sizes), list(GROUP))
        .where("running = tasks")
        .groupBy(*GROUP)
        .agg(f.min("seq").alias("complete_seq"))
    )


def _downtime(steps: DataFrame, complete: DataFrame, runs: DataFrame) -> DataFrame:
    """Gaps in which no thread runs a task, and their median by nearest rank."""
    group = list(GROUP)
    turns = steps.where(
        ((f.col("event") == _RUNNING) & (f.col("threads") == 1)) | (f.col("threads") == 0)
    ).withColumn("until_us", f.lead("time_us").over(Window.partitionBy(*TASK).orderBy("seq")))
    gaps = (
        turns.join(f.broadcast(complete), group)
        .join(f.broadcast(runs.select(*GROUP, "end_us")), group)
        .where("threads = 0 and seq > complete_seq")
        .withColumn("gap_us", f.coalesce("until_us", "end_us") - f.col("time_us"))
        .where("gap_us > 0")
        .withColumns(
            {
                "rank": f.row_number().over(Window.partitionBy(*GROUP).orderBy("gap_us")),
                "gaps": f.count("*").over(Window.partitionBy(*GROUP)),
            }
        )
    )
    median = f.max(f.when(f.col("rank") == f.expr("(gaps * 50 + 99) div 100"), f.col("gap_us")))
    return gaps.groupBy(*GROUP).agg(
        f.sum("gap_us").alias("task_down_us"),
        f.max("gap_us").alias("task_down_max_us"),
        median.alias("task_down_p50_us"),
    )


def _restored(rows: DataFrame, complete: DataFrame) -> DataFrame:
    """What was read to restore or to catch up, from the first complete state on."""
    event, cause = f.col("event"), f.col("cause")
    closed = event == "task_closed"
    active = (event == "task_restored") | (closed & (cause == ACTIVE))
    standby = (event == "standby_caught_up") | (closed & (cause != ACTIVE))
    scratch = (event == "task_restoring") & (cause == NOTHING) & (f.col("lag") > 0)
    found = rows.where(
        event.isin("task_restored", "task_closed", "standby_caught_up", "task_restoring")
    ).join(f.broadcast(complete), list(GROUP))
    read = f.col("bytes").cast(_NUMBER)
    return (
        found.where("seq > complete_seq")
        .groupBy(*GROUP)
        .agg(
            f.sum(f.when(active, read)).alias("restored_bytes"),
            f.sum(f.when(standby, read)).alias("standby_restored_bytes"),
            f.sum(scratch.cast("int")).alias("tasks_from_scratch"),
        )
    )


def _follow_ups(rows: DataFrame) -> DataFrame:
    due = rows.where((f.col("event") == "follow_up_due") & f.col("cause").isin(*PROBING))
    return due.groupBy(*GROUP).agg(f.count("*").alias("probing_rebalances"))


def _placed(rows: DataFrame) -> DataFrame:
    """The last assignment."""
    return (
        rows.where("event = 'tasks_placed'")
        .groupBy(*GROUP)
        .agg(
            f.max_by("time_us", "seq").alias("placed_us"),
            f.max_by("cause", "seq").alias("placed_cause"),
        )
    )


def _imbalances(rows: DataFrame, created: DataFrame, steps: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Between the instances that are there at the end, by what runs then: of all tasks, of a sub-topology."""
    live = (
        rows.where(f.col("event").isin("instance_started", "instance_gone"))
        .groupBy(*GROUP, "process")
        .agg(f.max_by("event", "seq").alias("last"))
        .where("last = 'instance_started'")
        .select(*GROUP, "process")
    )
    last = f.max_by(f.struct("event", "process"), "seq")
    open_runs = (
        steps.groupBy(*TASK, "member")
        .agg(last.alias("last"), f.max("seq").alias("seq"))
        .where(f.col("last.event") == _RUNNING)
        .groupBy(*TASK)
        .agg(f.max_by("last.process", "seq").alias("process"))
    )
    subtopology = f.regexp_replace("task", "_[^_]*$", "").alias("subtopology")
    running = open_runs.select(*GROUP, subtopology, "process")
    held = running.groupBy(*GROUP, "subtopology", "process").agg(f.count("*").alias("held"))
    subtopologies = created.select(*GROUP, subtopology).distinct()
    places = live.join(subtopologies, list(GROUP))
    counts = places.join(held, [*GROUP, "subtopology", "process"], "left").fillna(0, ["held"])
    spread = f.max("held") - f.min("held")
    by_group = counts.groupBy(*GROUP, "subtopology").agg(spread.alias("spread"))
    in_all = counts.groupBy(*GROUP, "process").agg(f.sum("held").alias("held"))
    return (
        in_all.groupBy(*GROUP).agg(spread.alias("task_imbalance")),
        by_group.groupBy(*GROUP).agg(f.max("spread").alias("subtopology_imbalance")),
    )


def _traffic(rows: DataFrame) -> DataFrame:
    crossing = f.col("cross_rack_bytes").cast(_NUMBER)
    return (
        rows.where("event = 'traffic_counted'")
        .groupBy(*GROUP)
        .agg(
            f.sum(crossing).alias("cross_rack_bytes"),
            f.sum(f.expr("cast(cross_rack_bytes as decimal(20,0)) * cast(price as decimal(18,0))")).alias(
                "cross_rack_price"
            ),
        )
    )
