"""A trace as a folder of closed files, for those who read it meanwhile (`serve --trace`, `run --trace`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from groupstorm.problems import InputError
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import JsonLinesWriter

DEFAULT_ROWS_PER_FILE = 10_000
#: Whoever writes while something goes on calls `DirectorySink.rotate` so often.
ROTATION_S = 2.0


class DirectorySink:
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

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for time_us, source, event in entries:
            self.add(time_us, source, event)

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
