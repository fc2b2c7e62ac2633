"""All tables of a set of traces, made of each other, each when it is asked for."""

from __future__ import annotations

from functools import cached_property

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from groupstorm.figures.by_group import WHOLE, Window
from groupstorm.pipeline import facts as fact_rules
from groupstorm.pipeline import ownership
from groupstorm.pipeline.member_timelines import member_timelines
from groupstorm.pipeline.owner_intervals import owner_intervals
from groupstorm.pipeline.rebalance_rounds import rebalance_rounds


class TraceTables:
    """DataFrames keyed by ``run`` and ``group``: what follows from the rows of any number of traces.

    ``ends``: per run, where its trace ends (``end_us``); None: with its last row. What several tables are
    made of is computed once: the steps of partitions, which may be many, are kept in columns, in memory or
    on disk. Small tables are cut off from what they were made of, so that plans stay small.
    """

    def __init__(self, rows: DataFrame, ends: DataFrame | None = None, window: Window = WHOLE) -> None:
        self._rows = rows
        self._ends = last_rows(rows) if ends is None else ends
        self._window = window

    @cached_property
    def intervals(self) -> DataFrame:
        from_us = self._window.from_us
        found = owner_intervals(self._steps, self._rows, self._runs)
        return found.where(f"to_us > {from_us} or from_us >= {from_us}")

    @cached_property
    def handovers(self) -> DataFrame:
        completion = ownership.completion(self._steps).localCheckpoint()
        absences = fact_rules.absences(self._rows, self._runs) if self._has.absent_groups else None
        return ownership.handovers(self._steps, completion, self._all_rounds, self._runs, absences)

    @cached_property
    def rounds(self) -> DataFrame:
        return self._all_rounds.where(f"prepared_us >= {self._window.from_us}")

    @cached_property
    def members(self) -> DataFrame:
        return member_timelines(self._rows).where(f"time_us >= {self._window.from_us}")

    @cached_property
    def _runs(self) -> DataFrame:
        return fact_rules.runs(self._rows, self._window, self._ends).localCheckpoint()

    @cached_property
    def _has(self) -> fact_rules.Contents:
        return fact_rules.contents(self._runs)

    @cached_property
    def _steps(self) -> DataFrame:
        facts = fact_rules.facts(self._rows, self._runs, self._has)
        return ownership.steps(facts, self._rows).persist(StorageLevel.MEMORY_AND_DISK)

    @cached_property
    def _all_rounds(self) -> DataFrame:
        return rebalance_rounds(self._rows).localCheckpoint()


def last_rows(rows: DataFrame) -> DataFrame:
    """Per run, the time of its last row (``end_us``)."""
    return rows.groupBy("run").agg(f.max("time_us").alias("end_us"))
