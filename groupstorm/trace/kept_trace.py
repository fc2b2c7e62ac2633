"""A trace that is kept, not written: in memory, or in a temporary file once it is large."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from groupstorm.problems import writing
from groupstorm.trace.reader import read_entries
from groupstorm.trace.rows import TracedEvent, TraceEntry, as_mapping
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import JsonLinesWriter

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
