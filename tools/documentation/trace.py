"""The tables of docs/trace.md that are made from the schema and the event types."""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.trace.rows import event_name
from groupstorm.trace.schema import COLUMNS, IMPORTED_VERSION, PROVENANCE_COLUMNS, SCHEMA_VERSION, Column


def columns_table() -> str:
    """The columns of every trace as a Markdown table."""
    return _table(f"Schema version {SCHEMA_VERSION}.", COLUMNS)


def provenance_table() -> str:
    """The columns that imported traces have besides."""
    return _table(f"Schema version {IMPORTED_VERSION} has them all, and behind them:", PROVENANCE_COLUMNS)


def _table(heading: str, columns: Iterable[Column]) -> str:
    rows = [f"| `{column.name}` | {column.type.value} | {column.meaning} |" for column in columns]
    return "\n".join([heading, "", "| column | type | meaning |", "|---|---|---|", *rows])


def events_table(event_types: Iterable[type]) -> str:
    """Event types as a Markdown table: name, what it says, its columns."""
    rows = ["| event | what happened | columns |", "|---|---|---|"]
    for event_type in event_types:
        fields: tuple[str, ...] = event_type._fields  # type: ignore[attr-defined]  # a named tuple's
        summary = " ".join((event_type.__doc__ or "").split())
        if summary.startswith(f"{event_type.__name__}("):
            summary = ""  # a named tuple without a docstring of its own
        columns = ", ".join(f"`{field}`" for field in fields)
        rows.append(f"| `{event_name(event_type)}` | {summary.replace('|', '/')} | {columns} |")
    return "\n".join(rows)
