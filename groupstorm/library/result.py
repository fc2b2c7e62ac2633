"""The common part of all results and of the arguments of the functions that give them.

Results print themselves, and become data frames. A wrong argument is an InputError that names it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from html import escape
from numbers import Integral
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from groupstorm.report.progress import RunsProgress, runs_progress
from groupstorm.storms.runs.several import SEEDS_MAX
from groupstorm.storms.scenario.files import MAX_SEED, ResolvedScenario, Scenario, load

WIDTH = 80
"""The width of a printed result."""


class Result(ABC):
    """The answer, in sentences, and a table of the figures that people ask for first."""

    #: The groups that count; none: all.
    _wanted: Sequence[str] = ()

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
        from groupstorm.report.page import Report
        from groupstorm.storms.runs.run_folder import write_text

        path = Path(file)
        with TemporaryDirectory(prefix="groupstorm-report-") as temporary:
            write_text(path, Report([self._page_source(Path(temporary))], self._wanted).html({}))
        return path

    def _page_source(self, temporary: Path) -> Path:
        """The folder or file that the report is made of."""
        return self.save(temporary / self.name)

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


#: The prefix of errors about ``settings``.
SETTINGS = "settings: "

Settings = Mapping[str, Any]


class Storm(NamedTuple):
    """A scenario as it was named and as it was read, and what is to be changed in it."""

    named: str
    scenario: Scenario
    changed: dict[str, Any]

    def resolve(self, variant: str | None, seed: int | None) -> ResolvedScenario:
        return self.scenario.resolve(variant, seed, self.changed, SETTINGS)


def read_storm(scenario: str | os.PathLike[str], settings: Settings | None) -> Storm:
    """Raises InputError."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(f"settings: {settings!r}: expected names with values: {{'members': 100}}")
    if not isinstance(scenario, str | os.PathLike):
        raise InputError(
            f"scenario: {type(scenario).__name__}: expected a preset's name or the path of a file; "
            "settings={...} has what differs from it"
        )
    named = os.fspath(scenario)
    return Storm(named, load(named), {str(name): _plain(value) for name, value in (settings or {}).items()})


def check_text(argument: str, value: object) -> None:
    """Raises InputError."""
    if value is not None and not isinstance(value, str):
        raise InputError(f"{argument}: {value!r}: expected a text")


def texts(argument: str, value: str | Iterable[str] | None) -> tuple[str, ...]:
    """One text, or several. Raises InputError."""
    several: Any = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    for one in several:
        check_text(argument, one)
    return () if value is None else several


def check_seed(seed: int | None) -> int | None:
    """Raises InputError."""
    number = _plain(seed)
    if number is not None and (type(number) is not int or not 0 <= number <= MAX_SEED):
        raise InputError(f"seed: {seed!r}: expected a whole number from 0 to {MAX_SEED}")
    return number


def check_seeds(seeds: int) -> int:
    """Raises InputError."""
    number = _plain(seeds)
    if type(number) is not int or not 1 <= number <= SEEDS_MAX:
        raise InputError(f"seeds: {seeds!r}: expected how many, 1 to {SEEDS_MAX}; seed= is the first of them")
    return number


def _plain(value: Any) -> Any:
    """A whole number of NumPy, as data frames have them, as Python's."""
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


@contextmanager
def reported(progress: bool | RunsProgress) -> Iterator[RunsProgress]:
    """The function that takes how many runs are done: the user's, one that shows them, one that does not."""
    if callable(progress):
        yield progress
    elif progress:
        with runs_progress() as shown:
            yield shown
    else:
        yield lambda done, of: None
