"""The site's page of columns and events, made from the schema and the event types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupstorm.trace.events import coordinator, imported, member, scenario, share, streams
from groupstorm.trace.rows import event_name
from groupstorm.trace.schema import COLUMNS, IMPORTED_VERSION, PROVENANCE_COLUMNS, SCHEMA_VERSION, Column

#: Event types by what they are about.
EVENTS: Mapping[str, Iterable[type]] = {
    "of the coordinator": coordinator.Event.__args__,
    "of members": member.Event.__args__,
    "of the threads of a Kafka Streams application": streams.Event.__args__,
    "of a share group": share.Event.__args__,
    "of the scenario": scenario.Event.__args__,
    "of imported traces": imported.Event.__args__,
}


def _table(heading: str, columns: Iterable[Column]) -> str:
    rows = [f"| `{column.name}` | {column.type.value} | {column.meaning} |" for column in columns]
    return "\n".join([heading, "", "| column | type | meaning |", "|---|---|---|", *rows])


def events_page() -> str:
    """The site's page of columns and events: what each means, and which columns an event has."""
    told = "The columns of a [trace](trace.md), then its events, each with its columns beside the first five."
    behind = f"Schema version {IMPORTED_VERSION} has them all, and behind them:"
    columns = [
        "## Columns",
        "",
        _table(f"Schema version {SCHEMA_VERSION}.", COLUMNS),
        "",
        _table(behind, PROVENANCE_COLUMNS),
        "",
    ]
    sections = [f"## Events {source}\n\n{_events_table(types)}\n" for source, types in EVENTS.items()]
    return "\n".join(["# Columns and events of a trace", "", told, "", *columns, *sections])


def _events_table(event_types: Iterable[type]) -> str:
    """Event types as a Markdown table: name, what it says, its columns."""
    rows = ["| event | what happened | columns |", "|---|---|---|"]
    for event_type in event_types:
        fields: tuple[str, ...] = event_type._fields  # type: ignore[attr-defined]  # a named tuple's
        summary = " ".join((event_type.__doc__ or "").split())
        if summary.startswith(f"{event_type.__name__}("):
            summary = ""  # a named tuple without a docstring of its own
        columns = ", ".join(f"`{field}`" for field in fields if field != "group")
        rows.append(f"| `{event_name(event_type)}` | {summary.replace('|', '/')} | {columns} |")
    return "\n".join(rows)
