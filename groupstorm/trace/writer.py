"""Traces on disk: JSON lines or Parquet, complete or not there at all.

A file is written under a name that begins with a dot and renamed when it is closed, so that a reader
never meets half a trace. The bytes of a JSON lines trace depend on its events only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from groupstorm.problems import InputError
from groupstorm.trace.rows import Told, TracedEvent, TraceSink, as_mapping, layout, values
from groupstorm.trace.schema import COLUMNS, SCHEMA_VERSION, ColumnType, Source

if TYPE_CHECKING:
    import pyarrow

ROWS_PER_BATCH = 32_768
"""Rows that are held in memory before they are written."""


class JsonLinesWriter:
    """One JSON object per row, nulls left out, columns in the schema's order."""

    suffix = ".jsonl"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = partial_path(path)
        self._file: IO[str] = self._partial.open("w", encoding="utf-8", newline="\n")
        self._lines: list[str] = []
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self.rows = 0

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        row = as_mapping(values(self.rows, time_us, source, event))
        self._lines.append(self._encode(row))
        self.rows += 1
        if len(self._lines) >= ROWS_PER_BATCH:
            self._flush()

    def add_all(self, told: Iterable[Told]) -> None:
        for time_us, source, event in told:
            self.add(time_us, source, event)

    def _flush(self) -> None:
        if self._lines:
            self._lines.append("")
            self._file.write("\n".join(self._lines))
            self._lines.clear()

    def close(self) -> None:
        self._flush()
        self._file.close()
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)


class ParquetWriter:
    """All columns, with their types, in row groups; the schema's version stands in the metadata."""

    suffix = ".parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = partial_path(path)
        self._schema = arrow_schema()
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(self._partial, self._schema, compression="zstd")
        self._events: list[Told] = []
        self._written = 0

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, told: Iterable[Told]) -> None:
        self._events.extend(told)
        if len(self._events) >= ROWS_PER_BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._events:
            self._writer.write_batch(record_batch(self._schema, self._events, self._written))
            self._written += len(self._events)
            self._events.clear()

    @property
    def rows(self) -> int:
        """How many were added."""
        return self._written + len(self._events)

    def close(self) -> None:
        self._flush()
        self._writer.close()
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        self._writer.close()
        self._partial.unlink(missing_ok=True)


def record_batch(schema: pyarrow.Schema, told: Sequence[Told], first_seq: int) -> pyarrow.RecordBatch:
    """The rows of these events, numbered from ``first_seq``.

    Events of one type are turned into columns together and then put back into their order: a type has
    few of the columns, and a row of its own for every event would cost more than the file.
    """
    import pyarrow
    from pyarrow.compute import sort_indices

    times, sources, events = zip(*told, strict=True)
    of_type: dict[Any, list[int]] = {}
    for row, event in enumerate(events):
        of_type.setdefault(type(event), []).append(row)
    parts: list[dict[str, Sequence[Any]]] = []
    names = {}
    for kind, rows in of_type.items():
        names[kind], fields, _ = layout(kind)
        parts.append(dict(zip(fields, zip(*[events[row] for row in rows], strict=True), strict=True)))
    sizes = [len(rows) for rows in of_type.values()]
    back = sort_indices(pyarrow.array([row for rows in of_type.values() for row in rows]))

    def column(field: pyarrow.Field) -> pyarrow.Array:
        pieces = [
            pyarrow.array(part[field.name], type=field.type)
            if field.name in part
            else pyarrow.nulls(size, field.type)
            for part, size in zip(parts, sizes, strict=True)
        ]
        return pyarrow.concat_arrays(pieces).take(back)

    common = {
        "seq": range(first_seq, first_seq + len(told)),
        "time_us": times,
        "source": sources,
        "event": [names[type(event)] for event in events],
    }
    columns = [
        pyarrow.array(common[field.name], type=field.type) if field.name in common else column(field)
        for field in schema
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


TraceWriter = JsonLinesWriter | ParquetWriter

FORMATS: Mapping[str, Callable[[Path], TraceWriter]] = {"jsonl": JsonLinesWriter, "parquet": ParquetWriter}


def open_writer(folder: Path, name: str, trace_format: str) -> TraceWriter:
    """A writer of ``folder``/``name``.``trace_format``. Raises InputError for a format that is not there."""
    if trace_format not in FORMATS:
        raise InputError(f"format: {trace_format!r} is not one of {', '.join(FORMATS)}")
    return FORMATS[trace_format](folder / f"{name}.{trace_format}")


def partial_path(path: Path) -> Path:
    """Where a file stands until it is complete."""
    return path.with_name(f".{path.name}.partial")


class Tee:
    """Hands every event on to several sinks."""

    def __init__(self, *sinks: TraceSink) -> None:
        self._sinks = sinks

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        for sink in self._sinks:
            sink.add(time_us, source, event)

    def add_all(self, told: Iterable[Told]) -> None:
        for sink in self._sinks:
            sink.add_all(told)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


def arrow_schema() -> pyarrow.Schema:
    """The schema as pyarrow has it. Raises InputError where pyarrow is missing."""
    try:
        import pyarrow
    except ImportError as missing:
        raise InputError("Parquet needs pyarrow: pip install 'groupstorm[spark]'") from missing
    types = {
        ColumnType.INT: pyarrow.int64(),
        ColumnType.TEXT: pyarrow.string(),
        ColumnType.TEXTS: pyarrow.list_(pyarrow.string()),
        ColumnType.INTS: pyarrow.list_(pyarrow.int64()),
    }
    fields = [pyarrow.field(column.name, types[column.type]) for column in COLUMNS]
    return pyarrow.schema(fields, metadata={"groupstorm.trace.schema": str(SCHEMA_VERSION)})
