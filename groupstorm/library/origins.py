"""Where the rows of a run are: kept in this process, or in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from groupstorm.problems import InputError, writing
from groupstorm.storms.runs.run import KeptRun
from groupstorm.storms.runs.run_folder import RUN_FILES, RunFolder
from groupstorm.storms.scenario.files import ResolvedScenario, load
from groupstorm.trace.kept_trace import TemporaryFolder
from groupstorm.trace.parquet import arrow_schema, import_pyarrow
from groupstorm.trace.reader import Row, check_version, read_entries, trace_files
from groupstorm.trace.row_batch import RowBatch
from groupstorm.trace.rows import TraceEntry

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
