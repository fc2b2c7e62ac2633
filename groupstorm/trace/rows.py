"""From a typed event to a row of the trace: a field of the event is the column of its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from groupstorm.trace.schema import COLUMNS, PROVENANCE_COLUMNS, Source

COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
#: The columns of an imported trace: all of these, and behind them what the rows say about themselves.
ALL_COLUMN_NAMES: tuple[str, ...] = (*COLUMN_NAMES, *(column.name for column in PROVENANCE_COLUMNS))


class TracedEvent(Protocol):
    """An event that can be traced: a named tuple whose fields are columns."""

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


class RowLayout(NamedTuple):
    """The layout by which events of one type become rows.

    ``fields``: those of the event. ``columns``: those that its rows have, in the schema's order; ``arrange``
    puts (seq, time, source, name, *event) into that order.
    """

    name: str
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    arrange: Callable[[tuple[Any, ...]], tuple[Any, ...]]


#: Columns that every row has.
_COMMON = 4


@cache
def layout(event_type: Any) -> RowLayout:
    """The layout of an event type. Raises ValueError for a field that is no column."""
    fields: tuple[str, ...] = event_type._fields
    own = [name for name in ALL_COLUMN_NAMES[_COMMON:] if name in fields]
    if len(own) < len(fields):
        unknown = ", ".join(field for field in fields if field not in own)
        raise ValueError(f"{event_type.__name__}: no column {unknown} in the trace's schema")
    places = (*range(_COMMON), *(_COMMON + fields.index(name) for name in own))
    columns = (*ALL_COLUMN_NAMES[:_COMMON], *own)
    return RowLayout(event_name(event_type), fields, columns, itemgetter(*places))


def as_mapping(seq: int, time_us: int, source: Source, event: TracedEvent) -> dict[str, Any]:
    """One row, its columns in the order of the schema, without its nulls. An event with provenance
    (`groupstorm.imports.provenance`) has the columns of version 2."""
    known = layout(type(event))
    values = known.arrange((seq, time_us, source, known.name, *event))
    return {name: value for name, value in zip(known.columns, values, strict=True) if value is not None}
