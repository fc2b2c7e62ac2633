"""From a typed event to a row of the trace: a field of the event is the column of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, Protocol

from groupstorm.trace.schema import COLUMNS, Source

COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
_FIRST_EVENT_COLUMN = 4  # behind seq, time_us, source, event


class TracedEvent(Protocol):
    """What can be traced: a named tuple whose fields are columns."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class TraceSink(Protocol):
    """Whatever takes the events of a run as they happen, in order."""

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        """Take one event that happened ``time_us`` microseconds after the trace began."""

    def close(self) -> None:
        """Nothing more comes: make what was written complete."""


@cache
def event_name(event_type: type) -> str:
    """The name of an event type in a trace: MemberAdded -> member_added."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()


class RowLayout(NamedTuple):
    """Where the fields of one event type go: (column index, field index), in column order."""

    name: str
    places: tuple[tuple[int, int], ...]


@cache
def layout(event_type: type, fields: tuple[str, ...]) -> RowLayout:
    """The layout of an event type. Raises ValueError for a field that is no column."""
    unknown = [field for field in fields if field not in COLUMN_NAMES[_FIRST_EVENT_COLUMN:]]
    if unknown:
        raise ValueError(f"{event_type.__name__}: no column {', '.join(unknown)} in the trace's schema")
    places = sorted((COLUMN_NAMES.index(field), index) for index, field in enumerate(fields))
    return RowLayout(event_name(event_type), tuple(places))


def values(seq: int, time_us: int, source: Source, event: TracedEvent) -> list[Any]:
    """All columns of one row, in the order of the schema; None where the event has no such field."""
    name, places = layout(type(event), event._fields)
    row: list[Any] = [None] * len(COLUMN_NAMES)
    row[0:4] = seq, time_us, source.value, name
    for column, field in places:
        row[column] = event[field]
    return row


def as_mapping(row: Iterable[Any]) -> dict[str, Any]:
    """A row as a mapping, without its nulls."""
    return {name: value for name, value in zip(COLUMN_NAMES, row, strict=True) if value is not None}
