"""The lines of a trace on their way to a watch, whatever writes them, and in any order of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from groupstorm.problems import InputError
from groupstorm.trace.reader import Row, not_json
from groupstorm.trace.rows import TraceEntry, read_row
from groupstorm.trace.schema import READABLE_VERSIONS, VERSION_KEY


class Line(NamedTuple):
    """A line of a trace, where it stands, and when it came there: seconds since 1970."""

    text: str
    place: str
    came: float


#: The part of a source that comes in batches, which are numbered.
BATCHES: Final = ""


class Progress(NamedTuple):
    """A part of a source was read up to ``position``: bytes of a file, or the number of a batch."""

    part: str
    position: int


#: Takes some lines, and how far the source has been read with them.
Take = Callable[[Progress, Sequence[Line]], None]


class Feed(Protocol):
    """Hands the lines of a source on."""

    def catch_up(self, most_seconds: float) -> bool:
        """Read lines that are there, for so long at most; returns whether there are more."""

    def follow(self, seconds: float) -> None:
        """Read for so long whatever comes."""


class WatchedRow(NamedTuple):
    """A row of a trace, its typed event (None: an event that this version does not know), and its line."""

    seq: int
    time_us: int
    group: str
    row: Row
    entry: TraceEntry | None
    line: str


def read_line(line: str) -> WatchedRow | None:
    """The row of a line; None of the line that states the schema's version. Raises InputError."""
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InputError(not_json(problem)) from problem
    if not isinstance(row, dict):
        raise InputError("not a row of a trace: expected a JSON object")
    if VERSION_KEY in row and "event" not in row:
        if row[VERSION_KEY] not in READABLE_VERSIONS:
            raise InputError(
                f"version {row[VERSION_KEY]} of the trace schema, which this groupstorm does not read"
            )
        return None
    row = {name: value for name, value in row.items() if value is not None}
    entry = read_row(row)
    return WatchedRow(row["seq"], row["time_us"], row["group"], row, entry, line)
