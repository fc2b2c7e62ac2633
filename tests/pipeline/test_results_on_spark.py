"""Results of `groupstorm.library` on Spark; they stand here since this room starts Spark once."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import groupstorm
from groupstorm.library.run_result import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {"members": 3, "partitions": 6}


def test_every_table_of_a_run(spark: SparkSession) -> None:
    result = groupstorm.run("cold-start", settings=SMALL)
    for name in get_args(TableName):
        found = [row.asDict() for row in result.to_spark(spark, name).collect()]
        wanted = result.to_arrow(name).to_pylist(maps_as_pydicts="strict")
        assert len(wanted) > 0
        assert found == wanted, name


def test_the_figures_of_comparisons_and_sweeps(spark: SparkSession) -> None:
    comparison = groupstorm.compare("cold-start", ["delay-3s", "no-delay"], seeds=1, settings=SMALL)
    rows = comparison.to_spark(spark).where("generations > 0").orderBy("variant").collect()
    assert [row["variant"] for row in rows] == ["delay-3s", "no-delay"]
    sweep = groupstorm.sweep("cold-start", {"members": [2, 3]}, seeds=2, settings={"partitions": 6})
    assert sweep.to_spark(spark).groupBy("members").count().orderBy("members").collect() == [(2, 2), (3, 2)]
