"""`runs.parquet` of a sweep: a row per run with its point, its seed, every setting and every figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.figures import Figures
from groupstorm.pipeline.arrow_tables import figure_fields, figure_values
from groupstorm.problems import writing
from groupstorm.storms.runs.sweep import Outcome, Sweep
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.trace.writer import complete_or_absent

if TYPE_CHECKING:
    import pyarrow

TABLE_FILE = "runs.parquet"

#: What stands in front of the settings and the figures. ``broken``: the invariants that did not hold.
FIRST_COLUMNS = ("point", "seed", "variant", "refused", "broken")


def write_runs_table(sweep: Sweep, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the table. A point whose settings are refused has one row, without a seed and figures.

    Raises InputError if pyarrow is not installed, OutputError if the file cannot be written.
    """
    table = runs_table(sweep, outcomes)
    from pyarrow import parquet

    with complete_or_absent(path) as partial, writing(path):
        parquet.write_table(table, partial, compression="zstd")


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
            values = (point, seed, variant, outcome.refused, _broken(found))
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


def _broken(figures: Figures | None) -> list[str]:
    """The invariants that did not hold."""
    verdicts = {} if figures is None else figures.invariants or {}
    return [name for name, verdict in verdicts.items() if verdict != "held"]


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
