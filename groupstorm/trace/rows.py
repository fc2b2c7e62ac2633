"""From a typed event to a row of the trace: a field of the event is the column of its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from groupstorm.trace.schema import COLUMNS, PROVENANCE_COLUMNS, Source

COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
#: Those of an imported trace: the same, and behind them what the rows say about themselves.
ALL_COLUMN_NAMES: tuple[str, ...] = (*COLUMN_NAMES, *(column.name for column in PROVENANCE_COLUMNS))


class TracedEvent(Protocol):
    """What can be traced: a named tuple whose fields are columns."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[Any]: ...


#: One event of a trace: when it happened (microseconds since the trace began), who saw it, and the event.
TraceEntry = tuple[int, Source, TracedEvent]


class TraceSink(Protocol):
    """Whatever takes the events of a run as they happen, in order."""

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        """Take one event that happened ``time_us`` microseconds after the trace began."""

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        """Take several, in their order."""

    def close(self) -> None:
        """Nothing more comes: make what was written complete."""


@cache
def event_name(event_type: type) -> str:
    """The name of an event type in a trace: MemberAdded -> member_added."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()


#: Where `values` finds the columns that every row has, a null, and behind them the event's own fields.
_COMMON = 4
_NULL = 4
_FIRST_FIELD = 5


class RowLayout(NamedTuple):
    """How events of one type become rows.

    ``fields``: those of the event; ``arrange`` puts (seq, time, source, name, None, *event) into the
    order of the columns.
    """

    name: str
    fields: tuple[str, ...]
    arrange: Callable[[tuple[Any, ...]], tuple[Any, ...]]


@cache
def layout(event_type: Any) -> RowLayout:
    """The layout of an event type. Raises ValueError for a field that is no column."""
    fields: tuple[str, ...] = event_type._fields
    names = COLUMN_NAMES if ALL_COLUMN_NAMES[-1] not in fields else ALL_COLUMN_NAMES
    unknown = [field for field in fields if field not in names[_COMMON:]]
    if unknown:
        raise ValueError(f"{event_type.__name__}: no column {', '.join(unknown)} in the trace's schema")
    places = list(range(_COMMON))
    for column in names[_COMMON:]:
        places.append(_FIRST_FIELD + fields.index(column) if column in fields else _NULL)
    return RowLayout(event_name(event_type), fields, itemgetter(*places))


def values(seq: int, time_us: int, source: Source, event: TracedEvent) -> tuple[Any, ...]:
    """All columns of one row, in the order of the schema; None if the event has no such field. An event with
    provenance (`groupstorm.imports.provenance`) has the columns of version 2."""
    known = layout(type(event))
    return known.arrange((seq, time_us, source, known.name, None, *event))


def as_mapping(row: Iterable[Any]) -> dict[str, Any]:
    """A row as a mapping, without its nulls."""
    return {name: value for name, value in zip(ALL_COLUMN_NAMES, row, strict=False) if value is not None}
