"""A comparison of both engines on one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from groupstorm.pipeline.local import analyze_locally
from groupstorm.pipeline.local_tables import all_rows
from groupstorm.pipeline.results import TABLES, EngineResult, Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tables = Mapping[str, list[tuple[Any, ...]]]


def on_spark(spark: SparkSession, request: Request) -> tuple[EngineResult, Tables]:
    from groupstorm.pipeline.spark import analyze_on_spark

    result, tables = analyze_on_spark(spark, request)
    rows = {
        name: [tuple(row) for row in tables[name].select("run", "group", *columns).collect()]
        for name, columns in TABLES.items()
    }
    return result, rows


def locally(request: Request) -> tuple[EngineResult, Tables]:
    result, tables = analyze_locally(request)
    rows = {
        name: [tuple(row[column] for column in ("run", "group", *columns)) for row in all_rows(tables, name)]
        for name, columns in TABLES.items()
    }
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
    assert [tuple(row) for row in distributed.handovers] == [tuple(row) for row in local.handovers]
    assert [tuple(row) for row in distributed.rounds] == [tuple(row) for row in local.rounds]
