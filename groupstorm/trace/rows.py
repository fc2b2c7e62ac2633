"""From a typed event to a row of the trace: a field of the event is the column of its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple, Protocol, get_args, get_type_hints

from groupstorm.problems import InputError
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events import streams as streams_events
from groupstorm.trace.schema import COLUMNS, PROVENANCE_COLUMNS, ColumnType, Source

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


_SOURCES = {source.value: source for source in Source}
_INT64 = range(-(2**63), 2**63)


class RowMismatch(InputError):
    """A row that does not fit the schema."""


class _Type(NamedTuple):
    """The rule by which a column's values are recognized."""

    wording: str
    fits: Callable[[Any], bool]
    is_list: bool


_TYPES: Mapping[ColumnType, _Type] = {
    ColumnType.INT: _Type("a whole number", lambda value: type(value) is int and value in _INT64, False),
    ColumnType.TEXT: _Type("a text", lambda value: isinstance(value, str), False),
    ColumnType.TEXTS: _Type(
        "a list of texts",
        lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
        True,
    ),
    ColumnType.INTS: _Type(
        "a list of whole numbers",
        lambda value: isinstance(value, list | tuple) and all(type(one) is int for one in value),
        True,
    ),
}
_COLUMN_TYPES = {column.name: _TYPES[column.type] for column in (*COLUMNS, *PROVENANCE_COLUMNS)}


#: Columns that a row of an imported trace may lack, because no log tells them (and lists, which are empty
#: then).
_UNKNOWN_IF_IMPORTED = frozenset({"generation", "duration_us"})


class _Field(NamedTuple):
    name: str
    is_list: bool
    optional: bool


@cache
def event_types() -> Mapping[str, type]:
    """Every event type by its name in a trace."""
    unions = (
        coordinator_events.Event,
        member_events.Event,
        streams_events.Event,
        share_events.Event,
        world_events.Event,
        imported_events.Event,
    )
    return {event_name(kind): kind for union in unions for kind in get_args(union)}


@cache
def _fields(kind: type) -> tuple[_Field, ...]:
    return tuple(
        _Field(name, _COLUMN_TYPES[name].is_list, NoneType in get_args(hint))
        for name, hint in get_type_hints(kind).items()
    )


def read_row(row: Mapping[str, Any], not_before_us: int = 0, first_seq: int = 0) -> TraceEntry | None:
    """The typed event of a row, with its time and source; None if this version does not know the event.

    Nulls of the row may be left out; columns that the schema does not have are ignored.
    Raises RowMismatch naming the row, the column, the value and what was expected: for a column that is
    missing or has another type, a time before ``not_before_us``, a ``seq`` before ``first_seq``, or
    positions that do not go with their partitions.
    """
    for name, value in row.items():
        known = _COLUMN_TYPES.get(name)
        if known is not None and value is not None and not known.fits(value):
            raise _mismatch(row, name, known.wording)
    seq, time_us, source = row.get("seq"), row.get("time_us"), _SOURCES.get(row.get("source") or "")
    if time_us is None or time_us < not_before_us:
        raise _mismatch(row, "time_us", f"a whole number of at least {not_before_us}")
    if seq is None or seq < first_seq:
        raise _mismatch(row, "seq", f"a whole number of at least {first_seq}")
    if source is None:
        raise _mismatch(row, "source", f"one of {', '.join(_SOURCES)}")
    for column in ("event", "group"):
        if row.get(column) is None:
            raise _mismatch(row, column, "a text")
    kind = event_types().get(row["event"])
    if kind is None:
        return None
    imported = row.get("provenance") is not None
    event: TracedEvent = kind(*[_value(row, field, imported) for field in _fields(kind)])
    if "positions" not in event._fields or (imported and row.get("positions") is None):
        return time_us, source, event
    if len(row.get("positions") or ()) != len(row.get("partitions") or ()):
        raise _mismatch(row, "positions", f"one for each of {row.get('partitions')}")
    return time_us, source, event


def _value(row: Mapping[str, Any], field: _Field, imported: bool) -> Any:
    value = row.get(field.name)
    if field.is_list:
        return None if value is None and field.optional else tuple(value or ())
    if value is None and imported and field.name in _UNKNOWN_IF_IMPORTED:
        return None if field.optional else member_events.UNKNOWN
    if value is None and not field.optional:
        raise _mismatch(row, field.name, _COLUMN_TYPES[field.name].wording)
    return value


def _mismatch(row: Mapping[str, Any], column: str, expected: str) -> RowMismatch:
    return RowMismatch(
        f"row {row.get('seq')} ({row.get('event')}): {column}: {row.get(column)!r}: expected {expected}"
    )
