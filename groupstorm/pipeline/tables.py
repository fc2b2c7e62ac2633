"""All tables of a set of traces, made of each other."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.pipeline import facts as fact_rules
from groupstorm.pipeline import lag as lag_rules
from groupstorm.pipeline import ownership, settling
from groupstorm.pipeline import records as record_rules
from groupstorm.pipeline import rounds as round_rules
from groupstorm.pipeline import tasks as task_rules
from groupstorm.pipeline.facts import GROUP
from groupstorm.pipeline.members import member_timelines


@dataclass(frozen=True, slots=True)
class TraceTables:
    """DataFrames keyed by ``run`` and ``group``; the first five are for people, the others per-group sums."""

    intervals: DataFrame
    handovers: DataFrame
    rounds: DataFrame
    members: DataFrame
    runs: DataFrame
    rows: DataFrame
    completion: DataFrame
    times: DataFrame
    returned: DataFrame
    latencies: DataFrame
    moves: DataFrame
    records: DataFrame
    lag: DataFrame
    last_changes: DataFrame
    tasks: DataFrame


def trace_tables(rows: DataFrame) -> TraceTables:
    """Everything that follows from the rows of any number of traces.

    What several tables are made of is computed once and cut off from what it was made of: otherwise
    the plan of the last table would hold those of all others, many times over.
    """
    runs = fact_rules.runs(rows).localCheckpoint()
    facts = fact_rules.facts(rows, runs).localCheckpoint()
    presence = ownership.presence(rows, facts).localCheckpoint()
    steps = ownership.steps(facts, presence, runs).localCheckpoint()
    completion = ownership.completion(steps).localCheckpoint()
    intervals = ownership.intervals(steps).localCheckpoint()
    rounds = round_rules.rounds(rows).localCheckpoint()
    points = settling.settled_points(rows, runs).localCheckpoint()
    owners = settling.owner_maps(points, intervals).localCheckpoint()
    recorded = steps.where("record_rate > 0 and members_told")
    frontiers = lag_rules.frontiers(lag_rules.lines(recorded).localCheckpoint())
    curve = lag_rules.curve(frontiers).localCheckpoint()
    marks = points.groupBy(*GROUP).agg(f.max("marked_us").alias("marked_us"))
    return TraceTables(
        intervals=intervals,
        handovers=ownership.handovers(steps, completion, rounds).localCheckpoint(),
        rounds=rounds,
        members=member_timelines(rows),
        runs=runs,
        rows=rows,
        completion=completion,
        times=ownership.times(steps, completion),
        returned=ownership.returned(steps),
        latencies=round_rules.latencies(rounds),
        moves=settling.moves(points, owners, presence),
        records=record_rules.records(intervals),
        lag=lag_rules.lag(curve, completion, marks),
        last_changes=_last_changes(facts),
        tasks=task_rules.task_totals(rows, runs, marks),
    )


def _last_changes(facts: DataFrame) -> DataFrame:
    """Per group: when a partition was last taken or given up."""
    changes = facts.where("kind in ('own', 'end')")
    return changes.groupBy(*GROUP).agg(f.max("time_us").alias("last_change_us"))
