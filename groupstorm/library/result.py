"""The common part of all results: they print themselves, and become data frames."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from groupstorm.problems import InputError
from groupstorm.report.grid import Grid
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.visible import wrapped

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

WIDTH = 80
"""The width of a printed result."""


class Result(ABC):
    """The answer, in sentences, and a table of the figures that people ask for first."""

    @property
    @abstractmethod
    def answer(self) -> str:
        """The answer to the scenario's question, in sentences."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The scenario's name."""

    @abstractmethod
    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the files of the command of this name. Returns the folder."""

    def report(self, file: str | os.PathLike[str]) -> Path:
        """Write the page that `groupstorm report` makes: one HTML file. Returns it.

        Raises InputError, and OutputError if it cannot be written.
        """
        from groupstorm.report.page.page import Report
        from groupstorm.storms.runs.run_folder import write_text

        path = Path(file)
        with TemporaryDirectory(prefix="groupstorm-report-") as temporary:
            write_text(path, Report([self.save(Path(temporary) / self.name)]).html({}))
        return path

    @abstractmethod
    def _grid(self) -> Grid:
        """The table of figures."""

    def _paragraphs(self) -> list[str]:
        """The paragraphs below the table."""
        return [self.answer]

    def __str__(self) -> str:
        below = [line for paragraph in self._paragraphs() for line in wrapped(paragraph, WIDTH)]
        return "\n".join([*self._grid().text(WIDTH), "", *below])

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        below = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in self._paragraphs())
        return f"{self._grid().html()}{below}"


def as_pandas(table: pyarrow.Table) -> pandas.DataFrame:
    """Whole numbers keep their type if some are missing (Int64), maps become dictionaries.

    Raises InputError if pandas is not installed.
    """
    try:
        import pandas
    except ImportError as missing:
        raise InputError("to_pandas needs pandas: pip install 'groupstorm[pandas]'") from missing
    types = {import_pyarrow().int64(): pandas.Int64Dtype()}
    frame: Any = table.to_pandas(types_mapper=types.get, maps_as_pydicts="strict")
    return frame


def as_spark(table: pyarrow.Table, spark: SparkSession) -> DataFrame:
    """A DataFrame of ``spark``, a session of the user's."""
    return spark.createDataFrame(table)
