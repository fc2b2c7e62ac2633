"""`groupstorm.run`, and its result: the figures, the rows, and the tables that follow from them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from groupstorm.figures import Figures
from groupstorm.library.result import Result, Settings, as_pandas, check_seed, check_text, read_storm
from groupstorm.pipeline.results import arrow_figures, arrow_table
from groupstorm.pipeline.trace_fold import NOTHING_COUNTED, TraceContent, read_groups
from groupstorm.problems import InputError, writing
from groupstorm.report.grid import Grid
from groupstorm.report.progress import run_progress
from groupstorm.report.tables import figures_grid
from groupstorm.storms.runs.run import KeptRun, broken_invariants, run_in_memory
from groupstorm.storms.runs.run_folder import RUN_FILES, RunFolder
from groupstorm.storms.runs.several import compare_rows
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.files import DEFAULT_VARIANT, ResolvedScenario, load
from groupstorm.trace.parquet import RowBatch, arrow_schema, import_pyarrow
from groupstorm.trace.reader import Row, check_version, read_entries, trace_files
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.writer import TemporaryFolder
from groupstorm.verdicts.comparison import one_run_each

if TYPE_CHECKING:
    import pyarrow

ROWS_PER_CHUNK = 65_536
"""Rows of a file that become columns together."""


class Origin(Protocol):
    """A run's trace and files."""

    @property
    def name(self) -> str:
        """The name of a run without a scenario."""

    def entries(self) -> Iterator[tuple[Row, TraceEntry | None]]:
        """The rows, each with its typed event (None: of a later version)."""

    def arrow(self) -> pyarrow.Table:
        """The rows with all columns of their version of the schema."""

    def resolved(self, settings: Mapping[str, Any]) -> ResolvedScenario:
        """The scenario, to run it again. ``settings``: those that no file can hold. Raises InputError."""

    def save(self, folder: Path, trace_format: str) -> None:
        """Write the run's files into ``folder``. Raises InputError."""


class InMemory:
    """A run of this process."""

    def __init__(self, run: KeptRun) -> None:
        self._run = run
        self.name = run.scenario.name

    def entries(self) -> Iterator[tuple[Row, TraceEntry | None]]:
        yield from self._run.trace.rows()

    def arrow(self) -> pyarrow.Table:
        pyarrow, schema = import_pyarrow(), arrow_schema()
        batch = RowBatch()
        batch.add_all(self._run.trace.entries())
        return pyarrow.Table.from_batches([batch.as_record_batch(schema, 0)])

    def resolved(self, settings: Mapping[str, Any]) -> ResolvedScenario:
        return self._run.scenario

    def save(self, folder: Path, trace_format: str) -> None:
        self._run.save(folder, trace_format)


class OnDisk:
    """A run's folder, or a trace: a file or a folder of files."""

    def __init__(
        self,
        path: Path,
        scenario: ResolvedScenario | None = None,
        temporary: TemporaryFolder | None = None,
    ) -> None:
        """``scenario``: the run's, if it is known; else it is read again. ``temporary``: the folder that
        holds ``path`` and is removed with the last run in it."""
        self.path = path
        self._scenario = scenario
        self._temporary = temporary
        self.name = path.resolve().name

    def entries(self) -> Iterator[tuple[Row, TraceEntry | None]]:
        return read_entries(self.path)

    def arrow(self) -> pyarrow.Table:
        pyarrow = import_pyarrow()
        schema = arrow_schema(max(map(check_version, trace_files(self.path))))
        rows, chunks = (row for row, _ in self.entries()), []
        while chunk := [*islice(rows, ROWS_PER_CHUNK)]:
            chunks.append(pyarrow.Table.from_pylist(chunk, schema))
        return pyarrow.concat_tables(chunks) if chunks else schema.empty_table()

    def resolved(self, settings: Mapping[str, Any]) -> ResolvedScenario:
        if self._scenario is not None:
            return self._scenario
        file = self.path / "scenario.yaml"
        if not file.is_file():
            raise InputError(f"{self.path}: no scenario.yaml in it: not the folder of a run")
        return load(str(file)).resolve(None, None, settings, "settings: ")

    def save(self, folder: Path, trace_format: str) -> None:
        if not (self.path / "scenario.yaml").is_file():
            raise InputError(f"{self.path}: not the folder of a run: copy it as it is")
        if folder.resolve() == self.path.resolve():
            raise InputError(f"{folder}: the run's files are there already: expected another folder")
        names = [name for name in RUN_FILES if (self.path / name).is_file()]
        if f"trace.{trace_format}" not in names:
            found = ", ".join(name for name in names if name.startswith("trace")) or "no trace"
            raise InputError(f"trace_format: {trace_format!r}: {self.path} has {found}")
        with RunFolder(folder).complete_or_absent():
            for name in names:
                with writing(folder / name):
                    shutil.copyfile(self.path / name, folder / name)


if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

#: docs/trace.md describes rows, docs/figures.md figures, docs/analyze.md the others.
TableName = Literal["rows", "figures", "intervals", "handovers", "rounds", "members"]


class Rows(Iterable[dict[str, Any]]):
    """The rows of a trace as dictionaries, without nulls; they can be read any number of times."""

    def __init__(self, origin: Origin, groups: Sequence[str]) -> None:
        self._origin = origin
        self._groups = groups

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row, _ in self._origin.entries():
            if not self._groups or row["group"] in self._groups:
                yield dict(row)


class RunResult(Result):
    """One run: of `groupstorm.run`, one of a comparison, or one that was read.

    >>> import groupstorm
    >>> result = groupstorm.run("cold-start", settings={"members": 12})
    >>> [row["time_us"] for row in result.rows if row["event"] == "group_created"]
    [258052]
    >>> result.to_pandas("rounds")[["cause", "generation", "members"]]
                 cause  generation  members
    0   pending-member           1        1
    1   pending-member           2       10
    2   pending-member           3       12
    3  leader-rejoined           4       12
    """

    def __init__(
        self,
        origin: Origin,
        *,
        scenario: Mapping[str, Any] | None,
        figures: Figures | None,
        groups: Sequence[str] = (),
        assignor_failure: str | None = None,
    ) -> None:
        """`groupstorm.run`, `compare` and `read` make these. ``figures``: None if the rows are to say them.
        ``groups``: those that count; none: all."""
        self._origin = origin
        self._written = figures
        self._wanted = groups
        #: The scenario as scenario.yaml has it; None for the trace of an import or of `serve`.
        self.scenario = scenario
        #: Why rounds were without an assignment: the first failure of an assignor; None if none failed, and
        #: for a run that was read.
        self.assignor_failure = assignor_failure
        #: The rows of the trace, one dictionary per event (docs/trace.md).
        self.rows: Iterable[dict[str, Any]] = Rows(origin, groups)

    @property
    def name(self) -> str:
        """The scenario's name; without a scenario that of the trace's file or folder."""
        name = self._origin.name
        return name if self.scenario is None else str(self.scenario.get("name", name))

    @property
    def variant(self) -> str | None:
        """The variant of the scenario."""
        return None if self.scenario is None else str(self.scenario.get("variant", DEFAULT_VARIANT))

    @property
    def seed(self) -> int | None:
        """The seed; the same seed gives the same rows."""
        return None if self.scenario is None else int(self.scenario.get("seed", 0))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The ids of the groups that the trace has, or of those that `groupstorm.read` was asked for."""
        return tuple(self._content.figures)

    def check_groups(self) -> None:
        """Raise InputError if the trace lacks a group that was asked for."""
        for group in self._wanted:
            if group not in self._content.groups:
                there = ", ".join(self._content.groups)
                raise InputError(f"group: {group!r}: not in the trace; there are: {there}")

    @cached_property
    def figures(self) -> Figures:
        """All figures (docs/figures.md). Raises InputError if the trace has several groups."""
        if self._written is not None:
            return self._written
        if len(self.groups) != 1:
            raise InputError(
                f"{self.name}: the trace has {len(self.groups)} groups ({', '.join(self.groups)}): "
                "expected one: groupstorm.read(path, group=...)"
            )
        return self._content.figures[self.groups[0]]

    @property
    def answer(self) -> str:
        """The cost of the run, in sentences."""
        return self.figures.answer

    @property
    def violations(self) -> Mapping[str, str]:
        """The invariants that broke, and how; a run of our assignors and defaults has none."""
        return broken_invariants(self.figures)

    def to_arrow(self, table: TableName = "rows") -> pyarrow.Table:
        """One of the tables: rows, figures (one row), intervals (who owned a partition from when to when),
        handovers (times without an owner), rounds, members. Needs pyarrow; raises InputError."""
        if table not in get_args(TableName):
            raise InputError(f"table: {table!r} is not one of {', '.join(get_args(TableName))}")
        if table == "rows":
            return self._arrow_rows()
        if table == "figures":
            return arrow_figures([({}, self.figures)], {})
        of_groups = [
            arrow_table(table, found.rows(table), {"group": group})
            for group, found in self._content.tables.items()
        ]
        return import_pyarrow().concat_tables(of_groups)

    def to_pandas(self, table: TableName = "rows") -> pandas.DataFrame:
        """The table as a data frame; whole numbers are Int64. Needs pandas and pyarrow; raises InputError."""
        return as_pandas(self.to_arrow(table))

    def to_spark(self, spark: SparkSession, table: TableName = "rows") -> DataFrame:
        """The table as a DataFrame of your session."""
        return spark.createDataFrame(self.to_arrow(table))

    def save(self, folder: str | os.PathLike[str], trace_format: str = "jsonl") -> Path:
        """Write the files that `groupstorm run` writes, the same bytes but for measured.json (what the run
        cost the machine). ``trace_format``: jsonl or parquet; a run of a comparison, or one that was
        read, has that of its file.

        Returns the folder. Raises InputError, and OutputError if the files cannot be written.
        """
        path = Path(folder)
        self._origin.save(path, trace_format)
        return path

    def _page_source(self, temporary: Path) -> Path:
        """A trace without a scenario where it is: its name says what it is of."""
        if self.scenario is None and isinstance(self._origin, OnDisk):
            return self._origin.path
        return super()._page_source(temporary)

    def replay(self, settings: Mapping[str, Any] | None = None) -> int:
        """Run the scenario again and compare row by row; returns the number of rows.

        ``settings``: those that no file can hold (assignors that are code), for a run that was read.
        Raises CheckFailed naming the first row that differs, InputError for a trace without a scenario.
        """
        again = run_in_memory(self._origin.resolved(settings or {}))
        return compare_rows(self.rows, (row for row, _ in again.trace.rows()), self.name)

    def __repr__(self) -> str:
        if self.scenario is None:
            return f"<RunResult {self.name}: {', '.join(self.groups)}>"
        return f"<RunResult {self.name} ({self.variant}), seed {self.seed}>"

    def _arrow_rows(self) -> pyarrow.Table:
        found = self._origin.arrow()
        if not self._wanted:
            return found
        from pyarrow import array, compute

        return found.filter(compute.is_in(found["group"], value_set=array(self._wanted)))

    def _grid(self) -> Grid:
        if self.scenario is None:
            return figures_grid(self.name, one_run_each(self._content.figures))
        title = f"{self.name} ({self.variant}), seed {self.seed}"
        return figures_grid(title, {str(self.variant): [self.figures]})

    def _paragraphs(self) -> list[str]:
        if self.scenario is not None:
            return [self.answer]
        return [f"{group}: {figures.answer}" for group, figures in self._content.figures.items()]

    @cached_property
    def _content(self) -> TraceContent:
        """Groups, figures and tables, from one pass over the rows."""
        content = read_groups(self._origin.entries(), self._wanted)
        if not content.groups:
            raise InputError(f"{self.name}: the trace has no rows")
        is_there = not self._wanted or not {*self._wanted}.isdisjoint(content.groups)
        if is_there and not content.figures:
            raise InputError(f"{self.name}: {NOTHING_COUNTED}")
        return content


def run(
    scenario: str | os.PathLike[str],
    variant: str | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    *,
    progress: bool | Callable[[int, None], None] = False,
) -> RunResult:
    """Storm a group in virtual time, as `groupstorm run` does, without a folder.

    ``scenario``: a preset (`groupstorm list`) or a scenario file. ``variant``: the first if it is left out.
    ``seed``: the same seed gives the same rows; 0, or the file's. ``settings``: those to change, by Kafka's
    names: `groupstorm list --settings`. ``progress``: True for a line on standard error, or a function that
    takes the virtual seconds so far, and None: how many there will be is not known before the group settles.

    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> result = groupstorm.run("rolling-deploy", variant="static", seed=7, settings={"members": 20})
    >>> result.figures.unowned_max_seconds
    33.125288
    >>> print(result.answer.split("; ")[0])
    0 generations
    """
    seed = check_seed(seed)
    check_text("variant", variant)
    resolved = read_storm(scenario, settings).resolve(variant, seed)
    with _reported(resolved, progress) as report:
        kept = run_in_memory(resolved, report)
    return RunResult(
        InMemory(kept),
        scenario=resolved.written(),
        figures=kept.figures,
        assignor_failure=kept.assignor_failure,
    )


@contextmanager
def _reported(
    scenario: ResolvedScenario, progress: bool | Callable[[int, None], None]
) -> Iterator[Progress | None]:
    if callable(progress):
        yield lambda now_us, _phase: progress(now_us // 1_000_000, None)
    elif progress:
        with run_progress(f"{scenario.name} ({scenario.variant})") as shown:
            yield shown
    else:
        yield None
