"""The runs of a sweep as one table, and on Spark: few tasks of many runs, each run kept in the sweep's folder
when it is done.

A task that Spark repeats, because its worker is lost, leaves out the runs that it finds there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.pipeline.results import figure_fields, figure_values
from groupstorm.pipeline.session import dealt_out, in_folder, result_of
from groupstorm.problems import ExpectedError, InputError, OutputError, writing
from groupstorm.storms.runs.run import broken_invariants
from groupstorm.storms.runs.sweep import Outcome, Sweep
from groupstorm.storms.runs.sweep_runs import Order, RunsFile, SweepStore, run_one
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.trace.writer import complete_or_absent

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

TABLE_FILE = "runs.parquet"

#: What stands in front of the settings and the figures. ``broken``: the invariants that did not hold.
FIRST_COLUMNS = ("point", "seed", "variant", "refused", "broken")


def write_runs_table(sweep: Sweep, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the table. A point whose settings are refused has one row, without a seed and figures.

    Raises InputError if pyarrow is not installed, OutputError if the file cannot be written.
    """
    table = runs_table(sweep, outcomes)
    from pyarrow import parquet

    with complete_or_absent(path) as unfinished, writing(path):
        parquet.write_table(table, unfinished, compression="zstd")


def runs_table(sweep: Sweep, outcomes: Sequence[Outcome]) -> pyarrow.Table:
    """The table, in the order of points and seeds. Raises InputError if pyarrow is not installed."""
    pyarrow = import_pyarrow()
    first: list[dict[str, Any]] = []
    settings: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    for outcome in outcomes:
        point = ", ".join(map("=".join, zip(sweep.names, outcome.point.labels, strict=True)))
        variant, of_point = _variant_and_settings(sweep, outcome)
        for seed, found in outcome.figures.items() or [(None, None)]:
            broken = [] if found is None else [*broken_invariants(found)]
            values = (point, seed, variant, outcome.refused, broken)
            first.append(dict(zip(FIRST_COLUMNS, values, strict=True)))
            settings.append(of_point)
            figures.append({} if found is None else figure_values(found))
    text = pyarrow.string()
    types = (text, pyarrow.int64(), text, text, pyarrow.list_(text))
    columns = {name: (first, type_) for name, type_ in zip(FIRST_COLUMNS, types, strict=True)}
    for name in dict.fromkeys(name for row in settings for name in row):
        columns[name] = _one_type(name, settings)
    columns |= {field.name: (figures, field.type) for field in figure_fields()}
    arrays = [
        pyarrow.array([row.get(name) for row in rows], type_) for name, (rows, type_) in columns.items()
    ]
    return pyarrow.table(arrays, names=[*columns])


def _variant_and_settings(sweep: Sweep, outcome: Outcome) -> tuple[str | None, dict[str, Any]]:
    """Every setting as a scenario's file has it; of a point that is refused there are none."""
    if outcome.refused is not None:
        return None, {}
    scenario = sweep.scenario_of(outcome.point)
    return scenario.variant, dict(scenario.settings.written())


def _one_type(name: str, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], pyarrow.DataType]:
    """The rows and the type of a setting: if its values are not of one simple type, they become text."""
    pyarrow = import_pyarrow()
    kinds = {type(row[name]) for row in rows if row.get(name) is not None}
    for kind, arrow in ((bool, pyarrow.bool_()), (int, pyarrow.int64()), (float, pyarrow.float64())):
        if kinds == {kind}:
            return rows, arrow
    as_text = [
        {name: value if isinstance(value := row.get(name), str | None) else json.dumps(value)} for row in rows
    ]
    return as_text, pyarrow.string()


#: There are more tasks if one had more runs than that: workers that come late get some, too.
RUNS_PER_TASK_MAX = 100

#: As often as Spark tries a task on a cluster.
TASK_TRIES = 4

#: How an error of ours in a task ends the worker's traceback.
_OURS = re.compile(r"groupstorm\.problems\.(InputError|OutputError): (.*)")


def repeating_tasks(master: str) -> str:
    """On the cores of this machine Spark gives up a task that fails once, unless the master says more."""
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TASK_TRIES}]", master)


def run_on_spark(
    spark: SparkSession, orders: Sequence[Order], store: SweepStore, progress: Callable[[int], None]
) -> None:
    """Do runs on Spark's workers. Raises InputError if they see other files than this process."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    context = spark.sparkContext
    parts = dealt_out(orders, context.defaultParallelism, RUNS_PER_TASK_MAX)
    work = partial(_run_batches, Path.cwd(), store.folder.absolute())
    job = context.parallelize(list(enumerate(parts)), len(parts)).mapPartitions(work)
    before, done = store.count(), 0

    def report() -> None:
        nonlocal done
        known, done = done, store.count() - before
        if done > known:
            progress(min(done, len(orders)))

    try:
        result_of(job.count, report)
    except (Py4JJavaError, PySparkException) as failure:
        raise task_problem(str(failure), store) from failure


def _run_batches(
    current: Path, folder: Path, numbered: Iterator[tuple[int, Sequence[Order]]]
) -> Iterator[int]:
    """In a task: do its runs, and yield how many those were.

    ``current``: the folder that names of files are relative to.
    """
    store = SweepStore(folder)
    with in_folder(current):
        for number, orders in numbered:
            yield run_batch(store, f"task-{number:05}", orders)


def run_batch(store: SweepStore, name: str, orders: Sequence[Order]) -> int:
    """Do the runs that no earlier try of the task has finished. Raises InputError, OutputError."""
    store.check_is_seen()
    finished = store.results(f"{name}-*.jsonl")
    missing = [order for order in orders if order.key not in finished]
    with RunsFile(store.runs, name) as file:
        for order in missing:
            file.add(order.key, run_one(order))
    return len(missing)


def task_problem(text: str, store: SweepStore) -> Exception:
    """The error of the task that Spark gave up."""
    ours = _OURS.search(text)
    if ours is not None:
        kind: type[ExpectedError] = InputError if ours[1] == InputError.__name__ else OutputError
        return kind(f"--master: a worker of Spark says: {ours[2].strip()}")
    return RuntimeError(f"Spark gave up a task of the sweep in {store.folder}: {text}")
