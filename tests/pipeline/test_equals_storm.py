"""The figures that Spark computes equal those of the one-pass accumulator, to the last microsecond."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groupstorm.pipeline.read import find_traces
from groupstorm.storms import events as world_events
from groupstorm.storms.figures import Figures
from groupstorm.trace.schema import Source
from tests.figures.synthetic import trace
from tests.figures.synthetic_tasks import streams_trace
from tests.pipeline.traces import write_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATES = ((200_000, 700_000), (1_000_000, 700_000), (333_333, 1_000_000), (0, 100))


def spark_figures(spark: SparkSession, paths: Sequence[Path]) -> dict[tuple[str, str], Figures]:
    from groupstorm.pipeline.figures import figures_by_run, totals
    from groupstorm.pipeline.read import read_traces
    from groupstorm.pipeline.tables import trace_tables

    return figures_by_run(totals(trace_tables(read_traces(spark, find_traces(paths)))))


def test_random_traces(spark: SparkSession, tmp_path: Path) -> None:
    """Eager and cooperative groups, zombies, records, the coordinator's view; JSON lines and Parquet."""
    expected: dict[str, Figures] = {}
    for seed in range(80):
        rows = trace(seed, rates=RATES[seed % 4], member_rows=seed % 5 != 0)
        expected[f"{seed}"] = write_trace(rows, tmp_path / str(seed), ("jsonl", "parquet")[seed % 2])
    for seed in range(40):
        name = f"streams-{seed}"
        expected[name] = write_trace(streams_trace(seed), tmp_path / name, ("jsonl", "parquet")[seed % 2])
    for name, partitions in (("nothing", ()), ("un-owned", ("t-0",))):
        start = world_events.ScenarioStarted("g", "{}", partitions, 10, 10)
        rows = [(0, Source.WORLD, start), (5, Source.WORLD, world_events.ScenarioEnded("g"))]
        expected[name] = write_trace(rows, tmp_path / name)
    found = spark_figures(spark, [tmp_path])
    assert {run for run, _ in found} == expected.keys()
    for run, figures in expected.items():
        assert found[run, "g"].to_json() == figures.to_json(), run
    # equality of nulls and zeros would prove little
    names = ("task_downtime_seconds", "converged_after_seconds", "restored_bytes", "cross_rack_usd")
    for name in (
        *names,
        "lag_recovery_seconds",
        "dual_owner_seconds",
        "records_skipped",
        "moves_wasted",
        "moves",
    ):
        assert sum(bool(getattr(figures, name)) for figures in expected.values()) >= 5, name
