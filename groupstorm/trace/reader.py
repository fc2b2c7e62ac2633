"""Reading traces back: rows as mappings, in the trace's order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from groupstorm.problems import InputError
from groupstorm.trace.rows import COLUMN_NAMES

Row = Mapping[str, Any]

SUFFIXES = (".jsonl", ".parquet")


def trace_files(path: Path) -> list[Path]:
    """The files of the trace at ``path``: a file itself, or those of a folder by name.

    Files that are still being written (their names begin with a dot) are not among them.
    Raises InputError where there is no trace.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path}: not a trace: expected a name that ends in {' or '.join(SUFFIXES)}")
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix in SUFFIXES and file.name.startswith("trace") and not file.name.startswith(".")
    )
    if not files:
        raise InputError(f"{path}: no trace in it (trace*.jsonl or trace*.parquet)")
    return files


def read_rows(path: Path) -> Iterator[Row]:
    """All rows of the trace at ``path`` (a file or a folder), nulls left out.

    Raises InputError naming file and line for what is no trace.
    """
    for file in trace_files(path):
        yield from _parquet_rows(file) if file.suffix == ".parquet" else _json_rows(file)


def _json_rows(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{file}: line {number}: not JSON: {error.msg}") from error
            if not isinstance(row, dict) or "event" not in row or "time_us" not in row:
                raise InputError(f"{file}: line {number}: not a row of a trace: no event or no time_us")
            unknown = next((name for name in row if name not in COLUMN_NAMES), None)
            if unknown is not None:
                raise InputError(
                    f"{file}: line {number}: unknown column {unknown!r}: another schema version?"
                )
            yield row


def _parquet_rows(file: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as missing:
        raise InputError("Parquet needs pyarrow: pip install 'groupstorm[spark]'") from missing
    try:
        source = parquet.ParquetFile(file)
    except ArrowInvalid as error:
        raise InputError(f"{file}: not a Parquet file: {error}") from error
    for batch in source.iter_batches():
        for row in batch.to_pylist():
            yield {name: value for name, value in row.items() if value is not None}
