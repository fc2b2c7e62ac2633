"""The tables of an analysis as folders of Parquet files: one file of each task in each folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from groupstorm.figures import Figures
from groupstorm.pipeline.results import TABLES, TableRow, arrow_figures, arrow_table
from groupstorm.problems import writing
from groupstorm.trace.parquet import import_pyarrow

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

#: The file that Spark leaves in a folder of Parquet files that it has completed; so do we.
COMPLETE_MARK = "_SUCCESS"

#: The first columns of every table but the figures.
_NO_KEYS = {"run": "", "group": ""}

#: Rows of a table that are written together. As columns a million takes some tens of MB.
_ROWS_PER_WRITE = 250_000


class TableFiles:
    """The files of one task, in a folder for each table below ``folder`` (None: nothing is written).

    A context manager, which completes the files. Raises InputError if pyarrow is not installed, OutputError
    if a file cannot be written. A task that is repeated writes its files anew.
    """

    def __init__(self, folder: Path | None, number: int) -> None:
        self.are_written = folder is not None
        self._files = {name: folder / name / f"part-{number:05}.parquet" for name in TABLES} if folder else {}
        self._writers: dict[str, ParquetWriter] = {}
        self._waiting: dict[str, list[pyarrow.Table]] = {name: [] for name in TABLES}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if not self.are_written:
            return self
        import_pyarrow()
        from pyarrow.parquet import ParquetWriter

        with ExitStack() as opened:
            for name, file in self._files.items():
                with writing(file):
                    file.parent.mkdir(exist_ok=True)
                    writer = ParquetWriter(file, arrow_table(name, [], _NO_KEYS).schema, compression="zstd")
                self._writers[name] = opened.enter_context(writer)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, place: TracebackType | None
    ) -> None:
        with self._open:
            if problem is None:
                for name in self._writers:
                    self._write(name)

    def add(self, table: str, keys: Mapping[str, str], rows: list[TableRow]) -> None:
        """Take rows of a table; ``keys``: their run and group."""
        if not self.are_written:
            return
        waiting = self._waiting[table]
        waiting.append(arrow_table(table, rows, keys))
        if sum(one.num_rows for one in waiting) >= _ROWS_PER_WRITE:
            self._write(table)

    def _write(self, table: str) -> None:
        pyarrow = import_pyarrow()
        waiting = self._waiting[table]
        if waiting:
            with writing(self._files[table]):
                self._writers[table].write_table(pyarrow.concat_tables(waiting))
            waiting.clear()


def complete_tables(figures: Mapping[str, Figures], folder: Path) -> None:
    """Write the table of figures, and mark all tables as complete. Raises OutputError."""
    import_pyarrow()
    from pyarrow import parquet

    table = arrow_figures((({"run": run}, one) for run, one in figures.items()), {"run": "string"})
    with writing(folder):
        (folder / "figures").mkdir()
        parquet.write_table(table, folder / "figures" / "part-00000.parquet", compression="zstd")
        for name in ("figures", *TABLES):
            (folder / name / COMPLETE_MARK).touch()
