"""Both engines on one request: their results, and every row of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from groupstorm.pipeline.results import TABLES, EngineResult, Request
from groupstorm.pipeline.trace_fold import Part, analyze_traces, read_groups
from groupstorm.trace.reader import read_entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tables = Mapping[str, list[tuple[Any, ...]]]


def on_spark(spark: SparkSession, request: Request) -> tuple[EngineResult, Tables]:
    """The rows of the tables are those of the files that the tasks have written."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs groupstorm[parquet]")
    from groupstorm.pipeline.spark import analyze_on_spark

    with TemporaryDirectory() as folder:
        result = analyze_on_spark(spark, request, Path(folder))
        rows = {
            name: [tuple(row.values()) for row in parquet.read_table(Path(folder, name)).to_pylist()]
            for name in TABLES
        }
    return result, rows


def locally(request: Request) -> tuple[EngineResult, Tables]:
    """The rows of the tables are those of memory, in their order."""
    result = analyze_traces(request, [Part(run, trace) for run, trace in request.traces.items()])
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    for run, trace in request.traces.items():
        content = read_groups(read_entries(trace), request.groups, request.window)
        for group, tables in content.tables.items():
            for name in TABLES:
                rows[name] += [(run, group, *row) for row in tables.rows(name)]
    return result, rows


def in_some_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def assert_the_engines_agree(spark: SparkSession, request: Request) -> None:
    """Groups, figures, every row of every table, and summaries are the same."""
    local, local_tables = locally(request)
    distributed, spark_tables = on_spark(spark, request)
    assert distributed.groups == local.groups
    assert {key: one.to_json() for key, one in distributed.figures.items()} == {
        key: one.to_json() for key, one in local.figures.items()
    }
    for name in TABLES:
        on_spark_alone, local_alone = Counter(spark_tables[name]), Counter(local_tables[name])
        on_spark_alone.subtract(local_tables[name])
        local_alone.subtract(spark_tables[name])
        assert (in_some_order(+on_spark_alone), in_some_order(+local_alone)) == ([], []), name
    assert distributed.handovers == local.handovers
    assert distributed.rounds == local.rounds
