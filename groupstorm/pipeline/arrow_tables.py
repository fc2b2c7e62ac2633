"""The tables of an analysis as tables of Arrow. Functions raise InputError if pyarrow is not installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from groupstorm.figures import Figures
from groupstorm.pipeline.results import TABLES, figure_columns
from groupstorm.trace.parquet import import_pyarrow

if TYPE_CHECKING:
    import pyarrow

#: The columns in front of those that a table has, with their types.
Keys = Mapping[str, str]


def arrow_table(name: str, rows: Iterable[Mapping[str, Any]], keys: Keys) -> pyarrow.Table:
    """One of `TABLES`; ``rows`` have the ``keys``, too."""
    pyarrow = import_pyarrow()
    return pyarrow.Table.from_pylist([*rows], _schema({**keys, **TABLES[name]}))


def arrow_figures(rows: Iterable[tuple[Mapping[str, Any], Figures]], keys: Keys) -> pyarrow.Table:
    """A row per run: the values of ``keys``, and every figure."""
    pyarrow = import_pyarrow()
    schema = pyarrow.schema([*_schema(keys), *figure_fields()])
    return pyarrow.Table.from_pylist([{**head, **figure_values(figures)} for head, figures in rows], schema)


def figure_fields() -> list[pyarrow.Field]:
    """A field for each figure."""
    pyarrow = import_pyarrow()
    types = {"int": pyarrow.int64(), "float": pyarrow.float64(), "str": pyarrow.string()}
    return [
        pyarrow.field(name, pyarrow.map_(pyarrow.string(), types[kind]) if is_map else types[kind])
        for name, kind, is_map in figure_columns()
    ]


def figure_values(figures: Figures) -> dict[str, Any]:
    """The values that such fields take: maps as pairs."""
    return {name: [*v.items()] if isinstance(v, Mapping) else v for name, v in figures.to_json().items()}


def _schema(columns: Mapping[str, str]) -> pyarrow.Schema:
    pyarrow = import_pyarrow()
    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
