"""Each table as a function from DataFrame to DataFrame, and the example of the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import groupstorm.pipeline
from groupstorm.figures.accumulator import Window
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import TABLES, Request
from groupstorm.trace.reader import read_rows
from tests.figures.synthetic import trace
from tests.pipeline.both_engines import in_some_order, locally
from tests.pipeline.traces import write_trace
from tests.processes import run_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "analyze.md"
WINDOW = Window(150, None)


def test_a_name_that_is_not_exported_is_no_attribute() -> None:
    assert not hasattr(groupstorm.pipeline, "lunch")
    assert callable(groupstorm.pipeline.find_traces)


def test_each_function_gives_a_table_of_two_runs(spark: SparkSession, tmp_path: Path) -> None:
    for seed in (1, 5):  # of seed 5 only the coordinator's rows
        write_trace(trace(seed, rates=(1_000_000, 700_000), member_rows=seed == 1), tmp_path / str(seed))
    result, tables = locally(Request(find_traces([tmp_path]), window=WINDOW))
    rows = groupstorm.pipeline.read_traces(spark, find_traces([tmp_path])).rows
    for name in TABLES:
        table = getattr(groupstorm.pipeline, name)(rows, WINDOW)
        assert table.columns == ["run", "group", *TABLES[name]]
        assert in_some_order([tuple(row) for row in table.collect()]) == in_some_order(tables[name]), name
    figures = {(row["run"], row["group"]): row for row in groupstorm.pipeline.figures(rows, WINDOW).collect()}
    assert {key: row.asDict() for key, row in figures.items()} == {
        (run, group): {"run": run, "group": group, **one.to_json()}
        for (run, group), one in result.figures.items()
    }


def test_figures_name_a_row_that_does_not_fit_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(trace(1), tmp_path / "run")
    last = [*read_rows(tmp_path / "run")][-1]["seq"]
    with (tmp_path / "run" / "trace.jsonl").open("a") as file:
        file.write(
            f'{{"seq":{last + 1},"time_us":999999999,"source":"world","event":"group_deleted","group":"g"}}\n'
        )
    rows = groupstorm.pipeline.read_traces(spark, find_traces([tmp_path])).rows
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="cause: None: expected a text"):
        groupstorm.pipeline.figures(rows).collect()


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    write_trace(trace(1), tmp_path / "runs" / "rolling-deploy-0")
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    done = run_process(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "max(gap_us)" in done.stdout
    assert "|rolling-deploy-0|" in done.stdout.replace(" ", "")
