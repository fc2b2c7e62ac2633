"""`docs/trace.md`, made from the schema and the event types: a test holds the two together."""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.trace.rows import event_name
from groupstorm.trace.schema import COLUMNS, SCHEMA_VERSION


def columns_table() -> str:
    """The columns of a trace as a Markdown table."""
    rows = [f"| `{column.name}` | {column.type.value} | {column.meaning} |" for column in COLUMNS]
    return "\n".join(
        [f"Schema version {SCHEMA_VERSION}.", "", "| column | type | meaning |", "|---|---|---|", *rows]
    )


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
