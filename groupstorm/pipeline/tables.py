"""All tables of a set of traces, made of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.pipeline import facts as fact_rules
from groupstorm.pipeline import ownership
from groupstorm.pipeline import rounds as round_rules
from groupstorm.pipeline.members import member_timelines


@dataclass(frozen=True, slots=True)
class TraceTables:
    """DataFrames keyed by ``run`` and ``group``."""

    intervals: DataFrame
    handovers: DataFrame
    rounds: DataFrame
    members: DataFrame


def trace_tables(rows: DataFrame, ends: Mapping[str, int], window: Window = WHOLE) -> TraceTables:
    """Everything that follows from the rows of any number of traces; ``ends``: run -> where its trace ends.

    What several tables are made of is computed once and cut off from what it was made of: otherwise
    the plan of the last table would hold those of all others, many times over.
    """
    runs = fact_rules.runs(rows, window, ends).localCheckpoint()
    facts = fact_rules.facts(rows, runs).localCheckpoint()
    presence = ownership.presence(rows, facts)
    steps = ownership.steps(facts, presence, runs).localCheckpoint()
    rounds = round_rules.rounds(rows).localCheckpoint()
    completion = ownership.completion(steps)
    absences = fact_rules.absences(rows, runs)
    in_window = window.from_us
    return TraceTables(
        intervals=ownership.intervals(steps, fact_rules.logs(rows)).where(
            f"to_us > {in_window} or from_us >= {in_window}"
        ),
        handovers=ownership.handovers(steps, completion, rounds, absences).localCheckpoint(),
        rounds=rounds.where(f"prepared_us >= {in_window}"),
        members=member_timelines(rows).where(f"time_us >= {in_window}"),
    )
