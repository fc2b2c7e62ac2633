"""`groupstorm analyze`: from paths to everything that it prints or writes, on one Spark session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.session import LOCAL, spark_session
from groupstorm.problems import InputError
from groupstorm.storms.figures import Figures
from groupstorm.trace.reader import trace_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupstorm.pipeline.tables import TraceTables

#: What Spark leaves in a folder of Parquet files that it has completed.
_COMPLETE_MARK = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class SlowHandover:
    """Gaps of one kind that one round closed, by their longest: ``partition`` is that one's.

    Gaps that needed no round (a static member came back) are together if they began at one instant.
    """

    run: str
    partition: str
    partitions: int
    from_us: int
    gap_us: int
    old_owner: str | None
    new_owner: str | None
    generations: int | None
    ended_by: str
    cause: str | None
    round_us: int | None
    rebalance_cause: str | None


@dataclass(frozen=True, slots=True)
class RoundsByCause:
    """How often one cause made a group rebalance, and what became of it."""

    run: str
    cause: str
    rounds: int
    stable: int
    members: int | None
    latency_avg_us: float | None
    latency_max_us: int | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a set of traces shows: figures by run, the slowest handovers first, rounds by cause.

    A run with several groups stands under run:group. ``confirmed`` names the runs whose `figures.json`
    says the same, ``disagreements`` says where another one does not.
    """

    figures: Mapping[str, Figures]
    handovers: Sequence[SlowHandover]
    rounds: Sequence[RoundsByCause]
    confirmed: Sequence[str]
    disagreements: Sequence[str]


def analyze(
    paths: Sequence[Path], out: Path | None = None, slowest: int = 5, master: str = LOCAL
) -> Analysis:
    """Compute all tables and figures of the traces at ``paths``; write the tables into ``out``, if given.

    ``slowest``: so many handovers of every run. ``master``: see `spark_session`. Raises InputError for what
    is no trace, where PySpark or Java is missing, or where ``out`` cannot be written.
    """
    traces = find_traces(paths)
    if out is not None:
        _check_out(out)
    trace_bytes = sum(file.stat().st_size for trace in traces.values() for file in trace_files(trace))
    with spark_session(trace_bytes, master) as spark:
        from groupstorm.pipeline.figures import figures_by_run, totals
        from groupstorm.pipeline.read import read_traces
        from groupstorm.pipeline.tables import trace_tables

        tables = trace_tables(read_traces(spark, traces))
        by_group = figures_by_run(totals(tables))
        groups = Counter(run for run, _ in by_group)
        names = {key: key[0] if groups[key[0]] == 1 else ":".join(key) for key in by_group}
        figures = {
            names[key]: by_group[key] for key in sorted(by_group, key=lambda key: [*traces].index(key[0]))
        }
        confirmed, disagreements = compare_with_files(figures, traces)
        analysis = Analysis(
            figures,
            [SlowHandover(*row) for row in _named(slowest_handovers(tables.handovers, slowest), names)],
            [RoundsByCause(*row) for row in _named(rounds_by_cause(tables.rounds), names)],
            confirmed,
            disagreements,
        )
        if out is not None:
            _write(spark, tables, figures, out)
    return analysis


def compare_with_files(
    figures: Mapping[str, Figures], traces: Mapping[str, Path]
) -> tuple[list[str], list[str]]:
    """Hold figures against the `figures.json` beside each trace, where there is one."""
    confirmed, disagreements = [], []
    for run, trace in traces.items():
        file = (trace if trace.is_dir() else trace.parent) / "figures.json"
        if run not in figures or not file.is_file():
            continue
        try:
            told = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as problem:
            raise InputError(f"{file}: not the figures of a run: {problem}") from problem
        if not isinstance(told, dict):
            raise InputError(f"{file}: not the figures of a run: expected a JSON object")
        computed = json.loads(json.dumps(figures[run].to_json()))
        different = [name for name in {**computed, **told} if computed.get(name) != told.get(name)]
        if different:
            disagreements += [
                f"{file}: {name}: {told.get(name)!r}, but the trace gives {computed.get(name)!r}"
                for name in different
            ]
        else:
            confirmed.append(run)
    return confirmed, disagreements


def slowest_handovers(handovers: DataFrame, per_group: int) -> DataFrame:
    """The longest gaps of each group, those of one kind that one round closed in one row."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    from groupstorm.pipeline.facts import GROUP

    worst = ("partition", "from_us", "old_owner", "new_owner", "generations", "rebalance_cause")
    round_us = f.when(f.coalesce("generations", f.lit(1)) > 0, f.col("prepared_us"))
    by_kind = handovers.withColumns(
        {"round_us": round_us, "alone_us": f.when(round_us.isNull(), f.col("from_us"))}
    )
    together = by_kind.groupBy(*GROUP, "round_us", "alone_us", "ended_by", "cause").agg(
        f.count("*").alias("partitions"),
        f.max("gap_us").alias("gap_us"),
        *[f.max_by(name, f.struct("gap_us", "partition")).alias(name) for name in worst],
    )
    order = Window.partitionBy(*GROUP).orderBy(f.desc("gap_us"), "from_us", "partition")
    return (
        together.withColumn("place", f.row_number().over(order))
        .where(f.col("place") <= per_group)
        .orderBy(*GROUP, "place")
        .select(
            *(
                *GROUP,
                "partition",
                "partitions",
                "from_us",
                "gap_us",
                "old_owner",
                "new_owner",
                "generations",
            ),
            *("ended_by", "cause", "round_us", "rebalance_cause"),
        )
    )


def rounds_by_cause(rounds: DataFrame) -> DataFrame:
    """Rounds summed up by what caused them, the most frequent cause first."""
    from pyspark.sql import functions as f

    from groupstorm.pipeline.facts import GROUP

    return (
        rounds.groupBy(*GROUP, "cause")
        .agg(
            f.count("*").alias("rounds"),
            f.count("stable_us").alias("stable"),
            f.max("members").alias("members"),
            f.avg("latency_us").alias("latency_avg_us"),
            f.max("latency_us").alias("latency_max_us"),
        )
        .orderBy(*GROUP, f.desc("rounds"), "cause")
    )


def _named(table: DataFrame, names: Mapping[tuple[str, str], str]) -> list[list[Any]]:
    """The rows of a small table; run and group become the name that figures go by."""
    return [[names[row["run"], row["group"]], *row[2:]] for row in table.collect()]


def _check_out(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{out}: cannot be written: {problem.strerror}") from problem
    for name in ("figures", "handovers", "intervals", "rounds", "members"):
        table = out / name
        if table.exists() and not (table / _COMPLETE_MARK).exists():
            raise InputError(f"{table}: is there and is no table of an earlier analysis: name another --out")


def _write(spark: SparkSession, tables: TraceTables, figures: Mapping[str, Figures], out: Path) -> None:
    """One folder of Parquet files per table; those of an earlier analysis are replaced."""
    rows = [{"run": run, **one.to_json()} for run, one in figures.items()]
    written = {
        "figures": spark.createDataFrame(rows, figures_schema()),
        "handovers": tables.handovers,
        "intervals": tables.intervals,
        "rounds": tables.rounds,
        "members": tables.members,
    }
    for name, table in written.items():
        table.coalesce(1).write.mode("overwrite").parquet(str(out / name))


def figures_schema() -> str:
    """The table of figures as Spark's DDL, made from the types of `Figures`."""
    types = {"int": "bigint", "float": "double", "str": "string"}
    columns = ["run string"]
    for name, annotation in Figures.__annotations__.items():
        plain = annotation.removesuffix(" | None")
        if plain.startswith("Mapping[str, "):
            columns.append(
                f"{name} map<string, {types[plain.removeprefix('Mapping[str, ').removesuffix(']')]}>"
            )
        else:
            columns.append(f"{name} {types[plain]}")
    return ", ".join(columns)
