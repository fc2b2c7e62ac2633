"""`groupstorm.compare`, and its result: the runs of each variant, and the difference between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.figures import Figures
from groupstorm.library.result import (
    Result,
    Settings,
    as_pandas,
    check_seed,
    check_seeds,
    check_text,
    read_storm,
    reported,
    texts,
)
from groupstorm.library.run_result import OnDisk, RunResult, TableName
from groupstorm.pipeline.results import arrow_figures
from groupstorm.report.comparisons import comparison_content
from groupstorm.report.grid import Grid
from groupstorm.report.progress import RunsProgress
from groupstorm.report.tables import figures_grid, seeds_named, spreads
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.run_folder import write_json
from groupstorm.storms.runs.several import (
    COMPARISON_FILE,
    SEEDS_DEFAULT,
    check_variants,
    folder_of,
    forget_other_runs,
    orders_of,
    run_variants,
    weights_of,
)
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.trace.writer import TemporaryFolder
from groupstorm.verdicts.measures import Spread

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


class Comparison(Result):
    """The variants of a scenario side by side: of `groupstorm.compare`, or read.

    >>> import groupstorm
    >>> few = {"members": 6, "partitions": 12}
    >>> comparison = groupstorm.compare("rolling-deploy", ["eager", "static"], seeds=2, settings=few)
    >>> comparison.spread["eager"]["unowned_partition_seconds"]
    Spread(least=21.783438, median=23.574102, most=25.364766)
    >>> comparison.to_pandas()[["variant", "seed", "generations"]]
      variant  seed  generations
    0   eager     0           12
    1   eager     1           12
    2  static     0            0
    3  static     1            0
    """

    def __init__(
        self, runs: Mapping[str, Sequence[RunResult]], answer: str, content: Mapping[str, Any] | None
    ) -> None:
        """`groupstorm.compare` and `read` make these. ``content``: that of comparison.json; None for the
        seeds of one variant (`groupstorm run --seeds`), which have no such file."""
        self._answer = answer
        self._content = content
        #: Variant -> its runs, one of each seed.
        self.runs: Mapping[str, Sequence[RunResult]] = runs

    @property
    def answer(self) -> str:
        """The difference between the variants, and the one to take."""
        return self._answer

    @property
    def name(self) -> str:
        """The scenario's name."""
        return next(iter(self.runs.values()))[0].name

    @property
    def figures(self) -> Mapping[str, Figures]:
        """Variant -> the figures of its first seed; `spread` and `to_pandas` have those of all seeds."""
        return {variant: runs[0].figures for variant, runs in self.runs.items()}

    @property
    def spread(self) -> Mapping[str, Mapping[str, Spread]]:
        """Variant -> figure -> least, median and most over the seeds, for figures that are numbers."""
        return {variant: spreads([run.figures for run in runs]) for variant, runs in self.runs.items()}

    def to_arrow(self, table: TableName = "figures") -> pyarrow.Table:
        """A table of all runs, behind the columns variant and seed. figures has one row per run;
        `RunResult.to_arrow` says what the others are. Needs pyarrow; raises InputError."""
        if table == "figures":
            rows = (
                ({"variant": variant, "seed": run.seed}, run.figures) for variant, run in self._every_run()
            )
            return arrow_figures(rows, {"variant": "string", "seed": "int64"})
        pyarrow = import_pyarrow()
        tables = []
        for variant, run in self._every_run():
            found = run.to_arrow(table).replace_schema_metadata(None)
            of_run = {"variant": (variant, pyarrow.string()), "seed": (run.seed, pyarrow.int64())}
            for place, (name, (value, kind)) in enumerate(of_run.items()):
                column = pyarrow.repeat(pyarrow.scalar(value, kind), found.num_rows)
                found = found.add_column(place, name, column)
            tables.append(found)
        return pyarrow.concat_tables(tables)

    def to_pandas(self, table: TableName = "figures") -> pandas.DataFrame:
        """The table as a data frame; whole numbers are Int64. Needs pandas and pyarrow; raises InputError."""
        return as_pandas(self.to_arrow(table))

    def to_spark(self, spark: SparkSession, table: TableName = "figures") -> DataFrame:
        """The table as a DataFrame of your session."""
        return spark.createDataFrame(self.to_arrow(table))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the files that `groupstorm compare` writes. Returns the folder.

        Raises InputError, and OutputError if the files cannot be written.
        """
        path = Path(folder)
        forget_other_runs(path, self.runs, {run.seed or 0 for _, run in self._every_run()})
        several = max(map(len, self.runs.values()))
        for variant, run in self._every_run():
            below = Path() if self._content is None else Path(variant)
            run.save(folder_of(path, below, run.seed or 0, several))
        if self._content is not None:
            write_json(path / COMPARISON_FILE, self._content)
        return path

    def __repr__(self) -> str:
        return f"<Comparison {self.name}: {', '.join(self.runs)}; {self._seeds()}>"

    def _every_run(self) -> Iterator[tuple[str, RunResult]]:
        for variant, runs in self.runs.items():
            for run in runs:
                yield variant, run

    def _seeds(self) -> str:
        return seeds_named([run.seed or 0 for run in next(iter(self.runs.values()))])

    def _grid(self) -> Grid:
        figures = {variant: [run.figures for run in runs] for variant, runs in self.runs.items()}
        return figures_grid(f"{self.name}, {self._seeds()}", figures)


def compare(
    scenario: str | os.PathLike[str],
    variants: Sequence[str] | None = None,
    seeds: int = SEEDS_DEFAULT,
    settings: Settings | None = None,
    *,
    seed: int | None = None,
    rank: str | None = None,
    progress: bool | RunsProgress = False,
) -> Comparison:
    """Run the variants of a scenario on all cores, as `groupstorm compare` does.

    ``variants``: all if they are left out. ``seeds``: so many of each variant, from ``seed`` on. ``rank``:
    what the best variant costs least of, as --rank takes it. ``progress``: True for a bar on standard error,
    or a function that takes how many runs are done, and how many there are. For ``scenario`` and ``settings``
    see `groupstorm.run`.

    The traces are in a temporary folder, which goes with the last of the runs.
    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> comparison = groupstorm.compare("rolling-deploy", seeds=1, settings={"members": 6, "partitions": 12})
    >>> list(comparison.runs)
    ['eager', 'cooperative', 'static', 'consumer']
    >>> {variant: figures.generations for variant, figures in comparison.figures.items()}
    {'eager': 12, 'cooperative': 18, 'static': 0, 'consumer': 12}
    """
    seed, seeds = check_seed(seed), check_seeds(seeds)
    check_text("rank", rank)
    storm = read_storm(scenario, settings)
    weights = weights_of(storm.scenario, rank, "rank")
    chosen = check_variants(storm.named, texts("variants", variants))
    first_seed, *_ = (storm.resolve(variant, seed).seed for variant in chosen)
    temporary = TemporaryFolder("groupstorm-compare-")
    numbers = range(first_seed, first_seed + seeds)
    orders = orders_of(storm.named, chosen, numbers, storm.changed, temporary.path)
    done = count(1)
    with reported(progress) as report:
        runs = run_variants(orders, lambda _: report(next(done), len(orders)))
    content = comparison_content(storm.scenario.name, runs, weights)
    results = {variant: [_result(run, temporary) for run in each] for variant, each in runs.items()}
    return Comparison(results, str(content["answer"]), content)


def _result(run: Run, temporary: TemporaryFolder) -> RunResult:
    return RunResult(
        OnDisk(run.folder, run.scenario, temporary),
        scenario=run.scenario.written(),
        figures=run.figures,
        assignor_failure=run.assignor_failure,
    )
