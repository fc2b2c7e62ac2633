"""Reading traces back: rows as mappings, in the trace's order.

Every reader (`trace`, `analyze`, `replay`, figures) comes through here, so that one rule holds for all:
columns and events that this version of groupstorm does not know are ignored, another version of the schema
is refused, and so is a row that does not fit the schema, by its file and line.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice, pairwise, repeat, starmap
from operator import ge
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.problems import InputError
from groupstorm.trace.parquet import batch_rows, check_columns, open_parquet
from groupstorm.trace.rows import (
    ALL_COLUMN_NAMES,
    COLUMN_NAMES,
    SOURCES,
    Reading,
    RowMismatch,
    TraceEntry,
    TypedRow,
    read_row,
    readings,
    typed_row,
)
from groupstorm.trace.schema import READABLE_VERSIONS, SCHEMA_VERSION, VERSION_KEY

if TYPE_CHECKING:
    import pyarrow

#: Columns that every row has a value of: seq, time_us, source, event, group.
_OF_ALL = COLUMN_NAMES[:5]


def typed_rows(batch: pyarrow.RecordBatch, now_us: int, next_seq: int) -> list[TypedRow] | None:
    """The rows of a batch; none is before ``now_us`` or ``next_seq``.

    None if they have to be read one by one: a row lacks a value, as imports may, or does not fit the schema.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = {name: column for name, column in columns.items() if column.null_count < len(batch)}
    if any(name not in columns or columns[name].null_count for name in _OF_ALL):
        return None
    seqs, times, sources, names, groups = (_values(columns[name]) for name in _OF_ALL)
    if times[0] < now_us or times != sorted(times) or not {*sources} <= SOURCES.keys():
        return None
    if seqs[0] < next_seq or any(map(ge, seqs, islice(seqs, 1, None))):
        return None
    places_of: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        places_of[name].append(place)
    events: list[Any] = [None] * len(batch)
    for name, places in places_of.items():
        reading = readings().get(name)
        found = () if reading is None else _events(reading, columns, places)
        if found is None:
            return None
        for place, event in zip(places, found, strict=False):
            events[place] = event
    entries = [
        None if event is None else (time_us, SOURCES[source], event)
        for time_us, source, event in zip(times, sources, events, strict=True)
    ]
    return [*zip(seqs, groups, times, entries, events, strict=True)]


def _events(
    reading: Reading, columns: Mapping[str, pyarrow.Array], places: list[int]
) -> Iterable[object] | None:
    """The events of one kind; None if a row lacks a value that the kind has to have."""
    import pyarrow
    from pyarrow.compute import list_value_length

    at_places = pyarrow.array(places)
    taken = {name: columns[name].take(at_places) for name in reading.columns if name in columns}
    needed = {*reading.required, *(at for at, optional in reading.lists if not optional)}
    if any(name not in taken or taken[name].null_count for name in map(reading.columns.__getitem__, needed)):
        return None
    if "positions" in taken:
        lengths = [list_value_length(taken[name]) for name in ("partitions", "positions")]
        if not lengths[0].equals(lengths[1]):
            return None
    values = [_values(taken[name]) if name in taken else [None] * len(places) for name in reading.columns]
    return map(tuple.__new__, repeat(reading.kind), zip(*values, strict=True))


def _values(column: pyarrow.Array) -> list[Any]:
    """The values of a column as Python has them, lists as tuples: several times as fast as `to_pylist`."""
    from pyarrow import types
    from pyarrow.compute import list_value_length

    if types.is_string(column.type):
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return [*map(texts.__getitem__, _values(encoded.indices.fill_null(len(texts) - 1)))]
    if column.null_count or not len(column):
        return [tuple(one) if isinstance(one, list) else one for one in column.to_pylist()]
    if types.is_list(column.type):
        flat = tuple(_values(column.flatten()))
        ends = accumulate(_values(list_value_length(column)), initial=0)
        return [flat[begin:end] for begin, end in pairwise(ends)]
    numbers = memoryview(column.buffers()[1]).cast("i" if types.is_int32(column.type) else "q")
    return numbers[column.offset : column.offset + len(column)].tolist()


if TYPE_CHECKING:
    import pyarrow

Row = Mapping[str, Any]

SUFFIXES = (".jsonl", ".parquet")
_COLUMNS = frozenset(ALL_COLUMN_NAMES)
#: The names of the files of `serve --trace`.
_NUMBERED = re.compile(r"trace-(\d+)")
#: Rows of Parquet that are read together: the memory of twice as many goes back to the system in between, and
#: half as many have too few of each event.
_ROWS_PER_BATCH = 32_768


def trace_files(path: Path) -> list[Path]:
    """The files of the trace at ``path``: a file itself, or those of a folder by name.

    Files that are still being written (their names begin with a dot) are not among them.
    Raises InputError if there is no trace.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise InputError(
                f"{path}: not a trace: expected a run's folder, or a name that ends in "
                f"{' or '.join(SUFFIXES)}; of a log, groupstorm import {path} --out RUN makes one"
            )
        return [path]
    if not path.is_dir():
        what = (
            "is a device, a socket or a pipe: expected a trace" if path.exists() else "no such file or folder"
        )
        raise InputError(f"{path}: {what}")
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix in SUFFIXES and file.name.startswith("trace") and file.is_file()
    )
    if not files:
        below = run_below(path)
        there = " (trace*.jsonl or trace*.parquet)" if below is None else f", but below: name one, as {below}"
        raise InputError(f"{path}: no trace in it{there}")
    for before, after in pairwise(files):
        first, second = _NUMBERED.fullmatch(before.stem), _NUMBERED.fullmatch(after.stem)
        if first and second and int(second[1]) > int(first[1]) + 1:
            raise InputError(
                f"{path}: the rows between {before.name} and {after.name} are missing, and what follows from "
                "the rest would be wrong: add the files in between, or read those before or after them alone"
            )
    return files


def run_below(folder: Path) -> Path | None:
    """The first folder with a trace below that of a comparison, or of several seeds; None without one."""
    files = (file for depth in ("*", "*/*") for file in folder.glob(f"{depth}/trace*"))
    return min((file.parent for file in files if file.suffix in SUFFIXES), default=None)


def read_rows(path: Path) -> Iterator[Row]:
    """All rows of the trace at ``path`` (a file or a folder), without nulls and unknown columns.

    Raises InputError naming file and line (of Parquet: the row) of the first row that is none.
    """
    for row, _ in read_entries(path):
        yield row


def read_entries(path: Path) -> Iterator[tuple[Row, TraceEntry | None]]:
    """As `read_rows`, each row with its typed event: None if this version does not know the event."""
    next_seq, now_us = 0, 0
    for file in trace_files(path):
        is_parquet = file.suffix == ".parquet"
        place = "row" if is_parquet else "line"
        for number, row in _parquet_rows(file) if is_parquet else _json_rows(file):
            try:
                entry = read_row(row, now_us, next_seq, typed=is_parquet)
            except RowMismatch as mismatch:
                raise InputError(f"{file}: {place} {number}: not a row of a trace: {mismatch}") from mismatch
            next_seq, now_us = row["seq"] + 1, row["time_us"]
            yield row, entry


def read_typed(path: Path) -> Iterator[TypedRow]:
    """As `read_entries`; of Parquet the rows of storms become events without being mappings before."""
    count, next_seq, now_us = 0, 0, 0
    for file in trace_files(path):
        for batch in _parquet_batches(file) if file.suffix == ".parquet" else (None,):
            rows = None if batch is None else typed_rows(batch, now_us, next_seq)
            if rows is None:  # row by row, and no row twice
                yield from islice(starmap(typed_row, read_entries(path)), count, None)
                return
            yield from rows
            count, next_seq, now_us = count + len(rows), rows[-1][0] + 1, rows[-1][2]


def check_version(file: Path) -> int:
    """The version of the schema that ``file`` has.

    Raises InputError if it is another version than `READABLE_VERSIONS`, or its columns are of other types.
    """
    if file.suffix == ".parquet":
        parquet = open_parquet(file)
        written = (parquet.metadata.metadata or {}).get(VERSION_KEY.encode(), b"1").decode()
        _check_version(file, written)
        check_columns(file, parquet)
        return int(written)
    with file.open("rb") as lines:
        first = lines.readline()
    if VERSION_KEY.encode() in first:
        row = _parse(file, 1, first)
        if _version_line(file, row):
            return int(row[VERSION_KEY])
    return SCHEMA_VERSION


def _check_version(file: Path, version: object) -> None:
    if str(version) not in [str(one) for one in READABLE_VERSIONS]:
        raise InputError(
            f"{file}: version {version} of the trace schema; this groupstorm reads versions "
            f"{' and '.join(map(str, READABLE_VERSIONS))}: use the groupstorm that wrote the trace"
        )


def _json_rows(file: Path) -> Iterator[tuple[int, Row]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            row = _parse(file, number, line)
            if number == 1 and _version_line(file, row):
                continue
            if row.keys() <= _COLUMNS and None not in row.values():
                yield number, row
            else:
                yield number, {name: row[name] for name in row if name in _COLUMNS and row[name] is not None}


def _parse(file: Path, number: int, line: bytes) -> dict[str, Any]:
    """A line's JSON object. Raises InputError."""
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as problem:
        raise InputError(f"{file}: line {number}: not a line of text: {problem.reason}") from problem
    except (ValueError, RecursionError) as problem:
        if not line.endswith(b"\n") and line.lstrip().startswith(b"{"):
            raise InputError(
                f"{file}: line {number}: the file ends inside this line: "
                "the run that wrote it was ended, or is still writing: "
                f"head -n {number - 1} {file} has the whole ones"
            ) from problem
        raise InputError(f"{file}: line {number}: {not_json(problem)}") from problem
    if not isinstance(row, dict):
        raise InputError(f"{file}: line {number}: not a row of a trace: expected a JSON object")
    return row


def not_json(problem: Exception) -> str:
    """Why a line is not JSON, and at which column."""
    if not isinstance(problem, json.JSONDecodeError):
        return f"not JSON: {problem}"
    # some of its messages end in "at", others do not
    return f"not JSON: {problem.msg.removesuffix(' at')} at column {problem.pos + 1}"


def _version_line(file: Path, row: Mapping[str, Any]) -> bool:
    """Whether this first line states the version of the schema. A file without such a line has version 1."""
    if VERSION_KEY not in row or "event" in row:
        _check_version(file, 1)
        return False
    _check_version(file, row[VERSION_KEY])
    return True


def _parquet_rows(file: Path) -> Iterator[tuple[int, Row]]:
    return enumerate((row for batch in _parquet_batches(file) for row in batch_rows(batch)), start=1)


def _parquet_batches(file: Path) -> Iterator[pyarrow.RecordBatch]:
    check_version(file)
    parquet = open_parquet(file)
    known = [name for name in parquet.schema_arrow.names if name in _COLUMNS]
    yield from parquet.iter_batches(_ROWS_PER_BATCH, columns=known)
