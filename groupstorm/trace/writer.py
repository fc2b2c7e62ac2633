"""Traces on disk: JSON lines or Parquet, complete or not there at all; and traces that are kept, not written:
in memory, or in a temporary file once they are large.

A file is written under a name that begins with a dot and renamed when it is closed, so that a reader
never meets half a trace. The bytes of a JSON lines trace depend on its events only.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

from groupstorm.problems import InputError, writing
from groupstorm.trace.parquet import RowBatch, arrow_schema
from groupstorm.trace.reader import read_entries
from groupstorm.trace.rows import TracedEvent, TraceEntry, TraceSink, as_mapping
from groupstorm.trace.schema import SCHEMA_VERSION, VERSION_KEY, ColumnType, Source, columns_of

LINES_PER_WRITE = 32_768
"""Lines of JSON that are held in memory before they are written."""

ROWS_PER_GROUP = 131_072
"""Rows of a row group of Parquet: each group has its dictionaries, so that few and large ones are smaller."""

#: A row as a line of JSON, without the line's end.
encode_row: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class JsonLinesWriter(TraceSink):
    """One JSON object per row, nulls left out, columns in the schema's order."""

    def __init__(self, path: Path, version: int = SCHEMA_VERSION) -> None:
        self.path = path
        self._partial = partial_path(path)
        with writing(path):
            self._file: IO[str] = self._partial.open("w", encoding="utf-8", newline="\n")
        # a file without a version line is of version 1
        self._lines: list[str] = [] if version == 1 else [encode_row({VERSION_KEY: version})]
        self.rows = 0

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        row = as_mapping(self.rows, time_us, source, event)
        self._lines.append(encode_row(row))
        self.rows += 1
        if len(self._lines) >= LINES_PER_WRITE:
            self._flush()

    def _flush(self) -> None:
        if self._lines:
            self._lines.append("")
            with writing(self.path):
                self._file.write("\n".join(self._lines))
            self._lines.clear()

    def close(self) -> None:
        self._flush()
        with writing(self.path):
            self._file.close()
            os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Leave no file, whatever was written of it."""
        with suppress(OSError):  # what the file still buffers may not fit on the disk
            self._file.close()
        self._partial.unlink(missing_ok=True)


class ParquetWriter:
    """All columns, with their types, in row groups; the schema's version stands in the metadata.

    Events are taken apart as they come: while they are at hand, and so that they need not be kept.
    """

    def __init__(self, path: Path, version: int = SCHEMA_VERSION) -> None:
        self.path = path
        self._partial = partial_path(path)
        self._schema = arrow_schema(version)
        from pyarrow import parquet

        # numbers are mostly times and counts: a dictionary of them takes time and is larger than they are
        texts = [column.name for column in columns_of(version) if column.type is ColumnType.TEXT]
        with writing(path):
            self._writer = parquet.ParquetWriter(
                self._partial, self._schema, compression="zstd", use_dictionary=texts
            )
        self._batch = RowBatch()
        self._written = 0

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        self._batch.add_all(entries)
        if len(self._batch.times) >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        rows = len(self._batch.times)
        if rows:
            with writing(self.path):
                self._writer.write_batch(self._batch.as_record_batch(self._schema, self._written))
            self._written += rows
            self._batch = RowBatch()

    @property
    def rows(self) -> int:
        """The number of rows that were added."""
        return self._written + len(self._batch.times)

    def close(self) -> None:
        self._flush()
        with writing(self.path):
            self._writer.close()
            os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Leave no file, whatever was written of it."""
        with suppress(OSError):  # the row group and the footer may not fit on the disk
            self._writer.close()
        self._partial.unlink(missing_ok=True)


TraceWriter = JsonLinesWriter | ParquetWriter

FORMATS: Mapping[str, Callable[[Path, int], TraceWriter]] = {
    "jsonl": JsonLinesWriter,
    "parquet": ParquetWriter,
}


def open_writer(folder: Path, name: str, trace_format: str, version: int = SCHEMA_VERSION) -> TraceWriter:
    """A writer of ``folder``/``name``.``trace_format``. Raises InputError for a format that is not there."""
    if trace_format not in FORMATS:
        raise InputError(f"format: {trace_format!r} is not one of {', '.join(FORMATS)}")
    return FORMATS[trace_format](folder / f"{name}.{trace_format}", version)


def partial_path(path: Path) -> Path:
    """Where a file stands until it is complete."""
    return path.with_name(f".{path.name}.partial")


@contextmanager
def complete_or_absent(path: Path) -> Iterator[Path]:
    """Give the block a file to write, which becomes ``path`` at its end, and is removed after an error.

    A device or a pipe is written itself: no file may take its place. Raises OutputError if the file cannot
    be renamed.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = Path(os.path.realpath(path))  # a link stays
    partial = partial_path(target)
    try:
        yield partial
        with writing(path):
            os.replace(partial, target)
    except BaseException:
        with writing(path):
            partial.unlink(missing_ok=True)
        raise


class NullSink:
    """Takes events and keeps nothing."""

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        pass

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        pass

    def close(self) -> None:
        pass


class Tee:
    """Hands every event on to several sinks."""

    def __init__(self, *sinks: TraceSink) -> None:
        self._sinks = sinks

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        for sink in self._sinks:
            sink.add(time_us, source, event)

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for sink in self._sinks:
            sink.add_all(entries)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


DEFAULT_ROWS_PER_FILE = 10_000
#: Whoever writes while something goes on calls `DirectorySink.rotate` so often.
ROTATION_S = 2.0


class DirectorySink(TraceSink):
    """Writes trace-000000.jsonl, trace-000001.jsonl, ...: each appears when it is complete.

    Whoever drives it calls `rotate` from time to time, so that a quiet group's rows appear too.
    Raises InputError if the folder already holds a trace: two runs must not be mixed.
    """

    def __init__(self, folder: Path, rows_per_file: int = DEFAULT_ROWS_PER_FILE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("trace*")):
            raise InputError(f"{folder}: holds a trace already: name another folder or remove it")
        self._folder = folder
        self._rows_per_file = rows_per_file
        self._files = 0
        self._rows = 0
        self._readable_rows = 0
        self._writer: JsonLinesWriter | None = None

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        if self._writer is None:
            self._writer = JsonLinesWriter(self._folder / f"trace-{self._files:06d}.jsonl")
            self._writer.rows = self._rows
        self._writer.add(time_us, source, event)
        self._rows = self._writer.rows
        if self._rows % self._rows_per_file == 0:
            self.rotate()

    @property
    def readable_rows(self) -> int:
        """The number of rows in files that a reader sees."""
        return self._readable_rows

    def rotate(self) -> None:
        """Close the present file, if there is one: readers see it from now on. Raises OutputError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._files += 1
            self._readable_rows = self._rows

    def discard(self) -> None:
        """Remove the present file. The files that are closed stay."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def close(self) -> None:
        self.rotate()


#: A trace with more rows goes to a temporary file: so many take about 120 MB in memory.
ROWS_IN_MEMORY_MAX = 250_000


class KeptTrace:
    """A sink whose entries and rows can be read any number of times once it is closed.

    The temporary file goes with the object, at the latest when Python ends.
    """

    def __init__(self, rows_in_memory_max: int = ROWS_IN_MEMORY_MAX) -> None:
        self._rows_in_memory_max = rows_in_memory_max
        self._entries: list[TraceEntry] = []
        self._folder: TemporaryFolder | None = None
        self._writer: JsonLinesWriter | None = None

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        if self._writer is not None:
            self._writer.add_all(entries)
            return
        self._entries.extend(entries)
        if len(self._entries) > self._rows_in_memory_max:
            self._folder = TemporaryFolder("groupstorm-trace-")
            self._writer = JsonLinesWriter(self._folder.path / "trace.jsonl")
            self._writer.add_all(self._entries)
            self._entries = []

    def close(self) -> None:
        """The last row has been added."""
        if self._writer is not None:
            self._writer.close()

    def entries(self) -> Iterator[TraceEntry]:
        """The typed events, in their order."""
        if self._writer is None:
            yield from self._entries
            return
        for _, entry in read_entries(self._writer.path):
            assert entry is not None  # this version wrote the file
            yield entry

    def rows(self) -> Iterator[tuple[dict[str, Any], TraceEntry]]:
        """The rows as a reader of the written trace gets them, each with its typed event."""
        for seq, entry in enumerate(self.entries()):
            yield _as_read(as_mapping(seq, *entry)), entry


def _as_read(row: dict[str, Any]) -> dict[str, Any]:
    """``row`` with the types that JSON has."""
    for name, value in row.items():
        if isinstance(value, Enum):
            row[name] = value.value
        elif isinstance(value, tuple):
            row[name] = list(value)
    return row


class TemporaryFolder:
    """Unlike tempfile's, it is not closed: whoever reads its files keeps it. Raises OutputError."""

    def __init__(self, prefix: str) -> None:
        with writing(tempfile.gettempdir()):
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
