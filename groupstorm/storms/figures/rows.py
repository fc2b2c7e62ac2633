"""From a row of a trace back to its typed event."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from groupstorm.clients import events as member_events
from groupstorm.clients.streams import events as streams_events
from groupstorm.coordinator import events as coordinator_events
from groupstorm.problems import InputError
from groupstorm.storms import events as world_events
from groupstorm.trace.rows import TracedEvent, event_name
from groupstorm.trace.schema import COLUMNS, ColumnType, Source

_COLUMN_TYPES = {column.name: column.type for column in COLUMNS}
_SOURCES = {source.value: source for source in Source}
_SCALARS: Mapping[ColumnType, type] = {ColumnType.INT: int, ColumnType.TEXT: str}


class _Field(NamedTuple):
    name: str
    scalar: type | None  # None: a list
    optional: bool


@cache
def event_types() -> Mapping[str, type]:
    """Every event type by its name in a trace."""
    unions = (coordinator_events.Event, member_events.Event, streams_events.Event, world_events.Event)
    return {event_name(kind): kind for union in unions for kind in get_args(union)}


@cache
def _fields(kind: type) -> tuple[_Field, ...]:
    return tuple(
        _Field(name, _SCALARS.get(_COLUMN_TYPES[name]), NoneType in get_args(hint))
        for name, hint in get_type_hints(kind).items()
    )


def read_row(row: Mapping[str, Any], not_before_us: int = 0) -> tuple[int, Source, TracedEvent]:
    """Time, source and event of a row, whose nulls may be left out.

    Raises InputError that names the row by its ``seq`` for an unknown event or source, a missing or
    mistyped column, a time before ``not_before_us``, or positions that do not go with their partitions.
    """
    time_us, source = row.get("time_us"), _SOURCES.get(row.get("source", ""))
    if not isinstance(time_us, int) or time_us < not_before_us:
        raise _wrong(row, "time_us", f"a whole number of at least {not_before_us}")
    if source is None:
        raise _wrong(row, "source", f"one of {', '.join(_SOURCES)}")
    kind = event_types().get(row.get("event", ""))
    if kind is None:
        raise _wrong(row, "event", "an event of the trace's schema")
    event: TracedEvent = kind(*[_value(row, field) for field in _fields(kind)])
    if "positions" in event._fields and len(row.get("positions") or ()) != len(row.get("partitions") or ()):
        raise _wrong(row, "positions", f"one for each of {row.get('partitions')}")
    return time_us, source, event


def _value(row: Mapping[str, Any], field: _Field) -> Any:
    value = row.get(field.name)
    if value is None:
        if field.optional:
            return None
        if field.scalar is None:
            return ()
    if field.scalar is None:
        if not isinstance(value, list | tuple):
            raise _wrong(row, field.name, "a list")
        return tuple(value)
    if not isinstance(value, field.scalar):
        raise _wrong(row, field.name, "a whole number" if field.scalar is int else "a text")
    return value


def _wrong(row: Mapping[str, Any], column: str, expected: str) -> InputError:
    place = f"trace row {row.get('seq')} ({row.get('event')})"
    return InputError(f"{place}: {column}: {row.get(column)!r}: expected {expected}")
