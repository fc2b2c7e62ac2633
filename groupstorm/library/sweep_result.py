"""`groupstorm.sweep`, and its result: the figures of every run, and the knee."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from groupstorm.pipeline.results import arrow_figures
from groupstorm.problems import InputError
from groupstorm.report.grid import Grid
from groupstorm.report.progress import RunsProgress
from groupstorm.report.sweeps import SWEEP_FILE, check_figure, sweep_content, sweep_grid
from groupstorm.storms.runs.run_folder import as_folder, write_json
from groupstorm.storms.runs.several import SEEDS_DEFAULT, figures_of, weights_of
from groupstorm.storms.runs.sweep import Axis, Outcome, Point, Sweep, axis_of, values_of
from groupstorm.storms.runs.sweep_runs import run_sweep
from groupstorm.verdicts.requirements import parse

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


class Knee(NamedTuple):
    """Where a curve bends, or from where on it meets the goals.

    ``others``: the values of the sweep's other settings, as text. ``value``: None if there is no knee.
    """

    setting: str
    others: str
    value: Any


class SweepResult(Result):
    """Every combination of some settings: of `groupstorm.sweep`, or read.

    >>> import groupstorm
    >>> over = {"variant": ["eager", "static"], "session.timeout.ms": "20s..60s:40s"}
    >>> result = groupstorm.sweep("rolling-deploy", over, seeds=1, settings={"members": 6, "partitions": 12})
    >>> result.to_pandas()[["variant", "session.timeout.ms", "generations"]]
      variant  session.timeout.ms  generations
    0   eager               20000           12
    1   eager               60000           12
    2  static               20000            6
    3  static               60000            0
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        """`groupstorm.sweep` and `read` make these. ``content``: that of sweep.json."""
        self._content = content
        axes = []
        for name, labels in content["over"].items():
            axes.append(Axis(name, tuple(labels), tuple(values_of(name, labels, SWEEP_FILE))))
        seeds = content["seeds"]
        self._sweep = Sweep(
            content["preset"], content["variant"], tuple(axes), seeds[0], len(seeds), content["set"]
        )
        self._outcomes = [
            _outcome(point, written)
            for point, written in zip(self._sweep.points(), content["points"], strict=True)
        ]

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self._content["preset"])

    @property
    def answer(self) -> str:
        """Where the knee is, and which values to take."""
        return str(self._content["answer"])

    @property
    def knees(self) -> Sequence[Knee]:
        """The knee over the first setting with numbers, for each combination of the others."""
        return [
            Knee(one["setting"], one["others"], self._value(one["setting"], one["value"]))
            for one in self._content["knees"]
        ]

    @property
    def knee(self) -> Any:
        """The value at the first of `knees`: with goals the smallest from which on they are met. None if
        there is no knee."""
        return self.knees[0].value if self.knees else None

    @property
    def refused(self) -> Sequence[tuple[Mapping[str, Any], str]]:
        """The combinations that the scenario refuses, each with the reason."""
        return [(one.point.settings, one.refused) for one in self._outcomes if one.refused is not None]

    @property
    def figures(self) -> Sequence[tuple[Mapping[str, Any], int, Figures]]:
        """The settings, the seed and the figures of every run."""
        return [*self._runs()]

    def to_arrow(self) -> pyarrow.Table:
        """A row per run: the settings as they were set, the seed, every figure. A setting whose values are
        not all numbers is a column of texts. Needs pyarrow; raises InputError."""
        kinds = {axis.name: _kind(axis) for axis in self._sweep.axes}
        rows = []
        for outcome in self._outcomes:
            labels = dict(zip(self._sweep.names, outcome.point.labels, strict=True))
            head = {
                name: labels[name] if kind == "string" else outcome.point.settings[name]
                for name, kind in kinds.items()
            }
            rows += [({**head, "seed": seed}, figures) for seed, figures in outcome.figures.items()]
        return arrow_figures(rows, {**kinds, "seed": "int64"})

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame; whole numbers are Int64. Needs pandas and pyarrow; raises InputError."""
        return as_pandas(self.to_arrow())

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The table as a DataFrame of your session."""
        return spark.createDataFrame(self.to_arrow())

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the sweep.json that `groupstorm sweep` writes. Returns the folder.

        Raises InputError, and OutputError if the file cannot be written.
        """
        path = as_folder(Path(folder))
        write_json(path / SWEEP_FILE, self._content)
        return path

    def __repr__(self) -> str:
        over = ", ".join(f"{axis.name}={','.join(axis.labels)}" for axis in self._sweep.axes)
        return f"<SweepResult {self.name}: {over}>"

    def _runs(self) -> Iterator[tuple[Mapping[str, Any], int, Figures]]:
        for outcome in self._outcomes:
            for seed, figures in outcome.figures.items():
                yield outcome.point.settings, seed, figures

    def _value(self, setting: str, label: str | None) -> Any:
        (axis,) = (axis for axis in self._sweep.axes if axis.name == setting)
        return None if label is None else axis.values[axis.labels.index(label)]

    def _grid(self) -> Grid:
        goals = [parse(text, SWEEP_FILE) for text in self._content["goals"]]
        return sweep_grid(self._sweep, self._outcomes, goals, everything=False)


def _outcome(point: Point, written: Mapping[str, Any]) -> Outcome:
    if "refused" in written:
        return Outcome(point, {}, written["refused"])
    return Outcome(point, {run["seed"]: figures_of(run["figures"]) for run in written["runs"]})


def _kind(axis: Axis) -> str:
    """The type of the axis's column."""
    types = {type(value) for value in axis.values}
    if types == {int}:
        return "int64"
    if types <= {int, float}:
        return "double"
    return "bool" if types == {bool} else "string"


def sweep(
    scenario: str | os.PathLike[str],
    over: Mapping[str, Iterable[Any]],
    seeds: int = SEEDS_DEFAULT,
    goal: str | Sequence[str] | None = None,
    *,
    variant: str | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
    figure: str | None = None,
    rank: str | None = None,
    progress: bool | RunsProgress = False,
) -> SweepResult:
    """Run a scenario with every combination of some settings on all cores, as `groupstorm sweep` does.

    ``over``: setting -> its values, or a text as --over takes it: "20s..80s:20s". "variant" stands for the
    scenario's variants. ``seeds``: so many of each combination, from ``seed`` on. ``goal``: what has to be
    met, such as "unowned_max_seconds<30 for 99%". ``figure``: whose knee to look for without a goal.
    ``rank``: what the best combination costs least of. For the others see `groupstorm.compare`.

    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.

    >>> import groupstorm
    >>> result = groupstorm.sweep(
    ...     "rolling-deploy",
    ...     over={"session.timeout.ms": [20_000, 40_000, 60_000]},
    ...     seeds=2,
    ...     goal="generations==0",
    ...     variant="static",
    ...     settings={"members": 6, "partitions": 12},
    ... )
    >>> result.knee
    60000
    """
    seed, seeds = check_seed(seed), check_seeds(seeds)
    check_text("rank", rank)
    check_text("variant", variant)
    storm = read_storm(scenario, settings)
    goals = [parse(text, "goal") for text in texts("goal", goal)]
    check_figure(figure, "figure")
    weights = weights_of(storm.scenario, rank, "rank")
    if not over or not isinstance(over, Mapping):
        raise InputError(f"over: {over!r}: expected settings with values: {{'members': [20, 60]}}")
    axes = tuple(axis_of(str(name), values, storm.scenario) for name, values in over.items())
    first_seed = seed if seed is not None else storm.scenario.seed or 0
    wanted = Sweep(storm.named, variant, axes, first_seed, seeds, storm.changed)
    with reported(progress) as report:
        outcomes = run_sweep(wanted, report, "over", "settings:")
    return SweepResult(sweep_content(storm.scenario, wanted, outcomes, goals, figure, weights))
