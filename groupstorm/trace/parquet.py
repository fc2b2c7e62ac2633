"""Parquet, as far as traces need it: the schema in pyarrow's terms, files, and their columns' types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from groupstorm.problems import InputError
from groupstorm.trace.rows import COLUMN_NAMES, TracedEvent, TraceEntry, event_types, layout
from groupstorm.trace.schema import (
    IMPORTED_VERSION,
    SCHEMA_VERSION,
    VERSION_KEY,
    ColumnType,
    Source,
    columns_of,
)

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet


def import_pyarrow() -> ModuleType:
    """The module `pyarrow`. Raises InputError if it is not installed."""
    try:
        import pyarrow
    except ImportError as missing:
        raise InputError("Parquet needs pyarrow: pip install 'groupstorm[parquet]'") from missing
    return cast(ModuleType, pyarrow)


def arrow_schema(version: int = SCHEMA_VERSION) -> pyarrow.Schema:
    """A version of the schema in pyarrow's terms. Raises InputError if pyarrow is not installed."""
    pyarrow = import_pyarrow()
    types = {
        ColumnType.INT: pyarrow.int64(),
        ColumnType.TEXT: pyarrow.string(),
        ColumnType.TEXTS: pyarrow.list_(pyarrow.string()),
        ColumnType.INTS: pyarrow.list_(pyarrow.int64()),
    }
    fields = [pyarrow.field(column.name, types[column.type]) for column in columns_of(version)]
    return pyarrow.schema(fields, metadata={VERSION_KEY: str(version)})


def open_parquet(file: Path) -> parquet.ParquetFile:
    """The opened file. Raises InputError if it is not Parquet, or if pyarrow is not installed."""
    import_pyarrow()
    from pyarrow import ArrowInvalid, parquet

    try:
        return parquet.ParquetFile(file)
    except ArrowInvalid as problem:
        raise InputError(f"{file}: not a Parquet file: {problem}") from problem


def check_columns(file: Path, opened: parquet.ParquetFile) -> None:
    """Raise InputError if a column of the schema has another type in ``file``."""
    found = opened.schema_arrow
    for field in arrow_schema(IMPORTED_VERSION):
        if field.name in found.names and not found.field(field.name).type.equals(field.type):
            raise InputError(
                f"{file}: column {field.name}: {found.field(field.name).type}: expected {field.type}"
            )


def batch_rows(batch: pyarrow.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, without nulls, and without columns of the schema that their events do not have."""
    columns = [
        (name, column.to_pylist())
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if column.null_count < len(column)
    ]
    events = dict(columns).get("event", [None] * len(batch))
    of_event: dict[str | None, list[tuple[str, list[Any]]]] = {}
    for place, event in enumerate(events):
        if event not in of_event:
            kind = event_types().get(event or "")
            others = set() if kind is None else {*COLUMN_NAMES} - {*layout(kind).columns}
            of_event[event] = [one for one in columns if one[0] not in others]
        yield {name: value for name, values in of_event[event] if (value := values[place]) is not None}


class _Events:
    """Events of one type and source. ``places``: in which rows of the batch they stand. ``columns``: their
    values, field by field."""

    def __init__(self, event_type: type, source: Source) -> None:
        self.name, fields, _, _ = layout(event_type)
        self.source = source
        self.places: list[int] = []
        self.columns: dict[str, list[Any]] = {field: [] for field in fields}

    def column(self, field: pyarrow.Field) -> pyarrow.Array:
        """Their values of the schema's ``field``."""
        import pyarrow

        values = self.columns.get(field.name)
        if values is None:
            return pyarrow.nulls(len(self.places), field.type)
        first = values[0]
        # the group, the generation, no error: most are the same objects, which are soon counted
        if first is values[-1] and isinstance(first, str | int | None) and values.count(first) == len(values):
            return pyarrow.repeat(pyarrow.scalar(first, field.type), len(values))
        return pyarrow.array(values, type=field.type)


class RowBatch:
    """Rows that become columns together.

    Events of one type become columns together and are put back into their order at the end: a type has
    few of the columns, and a row of its own for every event would cost more than the file.
    """

    def __init__(self) -> None:
        self.times: list[int] = []
        self._events: dict[tuple[type, Source], _Events] = {}

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        place = len(self.times)
        new: dict[tuple[type, Source], list[TracedEvent]] = {}
        for time_us, source, event in entries:
            self.times.append(time_us)
            key = type(event), source
            if key not in new:
                new[key] = []
                if key not in self._events:
                    self._events[key] = _Events(*key)
            new[key].append(event)
            self._events[key].places.append(place)
            place += 1
        for key, events in new.items():
            columns = self._events[key].columns.values()
            for column, added in zip(columns, zip(*events, strict=True), strict=True):
                column.extend(added)

    def as_record_batch(self, schema: pyarrow.Schema, first_seq: int) -> pyarrow.RecordBatch:
        """The rows, numbered from ``first_seq``."""
        import pyarrow
        from pyarrow.compute import sort_indices

        places = [place for part in self._events.values() for place in part.places]
        back = sort_indices(pyarrow.array(places))
        columns = [self._column(field, back, first_seq) for field in schema]
        return pyarrow.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, field: pyarrow.Field, back: pyarrow.Array, first_seq: int) -> pyarrow.Array:
        """One of the schema's; ``back``: where the rows stand, type by type."""
        import pyarrow
        from pyarrow.compute import cumulative_sum

        parts = self._events.values()
        rows = len(self.times)
        if field.name == "seq":
            return cumulative_sum(pyarrow.repeat(1, rows), start=first_seq - 1)
        if field.name == "time_us":
            return pyarrow.array(self.times, type=field.type)
        if field.name == "source":
            pieces = [pyarrow.repeat(str(part.source), len(part.places)) for part in parts]
        elif field.name == "event":
            pieces = [pyarrow.repeat(part.name, len(part.places)) for part in parts]
        elif any(field.name in part.columns for part in parts):
            pieces = [part.column(field) for part in parts]
        else:
            return pyarrow.nulls(rows, field.type)
        return pyarrow.concat_arrays(pieces).take(back)
