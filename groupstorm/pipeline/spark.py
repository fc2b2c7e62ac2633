"""The Spark engine: any number of traces of any size, on this machine's cores or on a cluster's workers.

A task reads the files of one trace itself, and writes the files of its tables: traces are in order as they
are, and to sort and to hand their rows around costs several times what it costs to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from groupstorm.pipeline.results import EngineResult, Request
from groupstorm.pipeline.session import dealt_out, in_folder, result_of
from groupstorm.pipeline.trace_fold import Part, analyze_traces, put_together
from groupstorm.problems import ExpectedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def analyze_on_spark(spark: SparkSession, request: Request, folder: Path | None = None) -> EngineResult:
    """Analyze all traces, and write their tables below ``folder``. Raises as `analyze_traces` does.

    If there are fewer traces than cores, the groups of each are shared out among several tasks.
    """
    context = spark.sparkContext
    cores = context.defaultParallelism
    count = max(1, cores // len(request.traces))
    parts = [Part(run, trace, n, count) for run, trace in request.traces.items() for n in range(count)]
    tasks = [*enumerate(dealt_out(parts, cores))]
    work = partial(_work, Path.cwd(), request, None if folder is None else folder.absolute())
    job = context.parallelize(tasks, len(tasks)).mapPartitions(work)
    found = result_of(job.collect)
    problems = [one for one in found if isinstance(one, ExpectedError)]
    if problems and context.master.startswith("local["):
        raise problems[0]
    if problems:  # other machines may have other files in these places
        raise type(problems[0])(f"--master: a worker of Spark says: {problems[0]}")
    return put_together(found)


def _work(
    current: Path, request: Request, folder: Path | None, tasks: Iterator[tuple[int, Sequence[Part]]]
) -> Iterator[EngineResult | ExpectedError]:
    """In a worker: do its tasks. What is wrong with a trace stays wrong: it is returned, since Spark would
    repeat a task that raises it. ``current``: the folder that the names of traces are relative to."""
    with in_folder(current):
        for number, parts in tasks:
            try:
                yield analyze_traces(request, parts, folder, number)
            except ExpectedError as problem:
                yield problem
