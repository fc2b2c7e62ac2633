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

#: A row of a trace: its number, its group, its time; its event, and the same with None wherever the row has
#: no value. No events: this version does not know the row's.
TypedRow = tuple[int, str, int, TraceEntry | None, TracedEvent | None]


class TraceSink(Protocol):
    """Whatever takes the events of a run as they happen, in order."""

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        """Take one event that happened ``time_us`` microseconds after the trace began."""

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        """Take several, in their order."""
        for time_us, source, event in entries:
            self.add(time_us, source, event)

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


SOURCES = {source.value: source for source in Source}
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


class Reading(NamedTuple):
    """The way from a row's columns to the fields of an event: the ``columns``, and the places of those that
    are lists, each with whether it may be null, and of those that have to have a value."""

    kind: type
    columns: tuple[str, ...]
    lists: tuple[tuple[int, bool], ...]
    required: tuple[int, ...]


@cache
def readings() -> Mapping[str, Reading]:
    """The readings of all event types by their names in a trace."""
    return {name: _reading(kind) for name, kind in event_types().items()}


def _reading(kind: type) -> Reading:
    hints = get_type_hints(kind)
    fields = [
        (at, _COLUMN_TYPES[name].is_list, NoneType in get_args(hints[name])) for at, name in enumerate(hints)
    ]
    lists = tuple((at, optional) for at, is_list, optional in fields if is_list)
    required = tuple(at for at, is_list, optional in fields if not is_list and not optional)
    return Reading(kind, tuple(hints), lists, required)


def read_row(
    row: Mapping[str, Any], not_before_us: int = 0, first_seq: int = 0, *, typed: bool = False
) -> TraceEntry | None:
    """The typed event of a row, with its time and source; None if this version does not know the event.

    Nulls of the row may be left out; columns that the schema does not have are ignored. ``typed``: the
    columns come from a file that gives each its type.
    Raises RowMismatch naming the row, the column, the value and what was expected: for a column that is
    missing or has another type, a time before ``not_before_us``, a ``seq`` before ``first_seq``, or
    positions that do not go with their partitions.
    """
    if not typed:
        _check_types(row)
    seq, time_us, source = row.get("seq"), row.get("time_us"), SOURCES.get(row.get("source") or "")
    if time_us is None or time_us < not_before_us:
        raise _mismatch(row, "time_us", f"a whole number of at least {not_before_us}")
    if seq is None or seq < first_seq:
        raise _mismatch(row, "seq", f"a whole number of at least {first_seq}")
    if source is None:
        raise _mismatch(row, "source", f"one of {', '.join(SOURCES)}")
    for column in ("event", "group"):
        if row.get(column) is None:
            raise _mismatch(row, column, "a text")
    reading = readings().get(row["event"])
    if reading is None:
        return None
    imported = row.get("provenance") is not None
    event = _event(row, reading, imported)
    positions = row.get("positions")
    if (
        "positions" in reading.columns
        and not (imported and positions is None)
        and len(positions or ()) != len(row.get("partitions") or ())
    ):
        raise _mismatch(row, "positions", f"one for each of {row.get('partitions')}")
    return time_us, source, event


def typed_row(row: Mapping[str, Any], entry: TraceEntry | None) -> TypedRow:
    """A row with what `read_row` has returned for it."""
    told: Any = None
    if entry is not None:
        reading = readings()[row["event"]]
        told = reading.kind(*map(row.get, reading.columns))
    return row["seq"], row["group"], row["time_us"], entry, told


def _event(row: Mapping[str, Any], reading: Reading, imported: bool) -> TracedEvent:
    values = [*map(row.get, reading.columns)]
    for at, optional in reading.lists:
        value = values[at]
        if value is not None or not optional:
            values[at] = tuple(value or ())
    for at in reading.required:
        if values[at] is None:
            name = reading.columns[at]
            if not imported or name not in _UNKNOWN_IF_IMPORTED:
                raise _mismatch(row, name, _COLUMN_TYPES[name].wording)
            values[at] = member_events.UNKNOWN
    event: TracedEvent = reading.kind(*values)
    return event


def _check_types(row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        known = _COLUMN_TYPES.get(name)
        if known is not None and value is not None and not known.fits(value):
            raise _mismatch(row, name, known.wording)


def _mismatch(row: Mapping[str, Any], column: str, expected: str) -> RowMismatch:
    return RowMismatch(
        f"row {row.get('seq')} ({row.get('event')}): {column}: {row.get(column)!r}: expected {expected}"
    )
