"""Rates of records from a CSV file: when, how many a second, into which topic and partition."""

from __future__ import annotations

import csv
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import milliseconds, thousandths
from groupstorm.units import microseconds

MAX_FILE_BYTES: Final = 10_000_000
MAX_ROWS: Final = 200_000

_UNIT_OF_HEADER: Final = {"time": "", "time_ms": "ms", "time_s": "s"}
_HEADER: Final = "time,rate[,topic[,partition]]"


class FileRow(NamedTuple):
    """From ``at_ms`` on the partitions get ``rate`` records per 1,000 s each; None: all of them."""

    at_ms: int
    rate: int
    topic: str | None
    partition: int | None


def read_rate_file(where: str, name: str, max_rate: int) -> tuple[FileRow, ...]:
    """Raises InputError that names the file, the line, the value and what was expected."""
    path = Path(name)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{where}{name}: not a file")
        if status.st_size > MAX_FILE_BYTES:
            raise InputError(f"{where}{name}: {status.st_size} bytes: at most {MAX_FILE_BYTES} are read")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{where}{name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{where}{name}: not a text in UTF-8") from error
    return _rows_of_text(f"{where}{name}", text, max_rate)


def _rows_of_text(source: str, text: str, max_rate: int) -> tuple[FileRow, ...]:
    lines = csv.reader(text.splitlines(), strict=True)
    rows: list[FileRow] = []
    unit: str | None = None
    width = 0
    try:
        for cells in lines:
            where = f"{source}: line {lines.line_num}"
            values = [cell.strip() for cell in cells]
            if not any(values):
                continue
            if unit is None:
                unit, width = _header(where, values)
                continue
            if not 2 <= len(values) <= width:
                raise InputError(f"{where}: {len(values)} values: expected {_HEADER}")
            rows.append(_row(where, values, unit, max_rate))
            if len(rows) > MAX_ROWS:
                raise InputError(f"{source}: more than {MAX_ROWS} rows")
    except csv.Error as error:
        raise InputError(f"{source}: line {lines.line_num}: not CSV: {error}") from error
    if not rows:
        raise InputError(f"{source}: no rates in it: expected the header {_HEADER} and rows")
    return _sorted_rows(source, rows)


def _header(where: str, values: list[str]) -> tuple[str, int]:
    names = [value.lower() for value in values]
    if names[0] not in _UNIT_OF_HEADER or names[1:] != ["rate", "topic", "partition"][: len(names) - 1]:
        raise InputError(
            f"{where}: {','.join(values)[:80]!r}: expected the header {_HEADER}; the first "
            "column may be time_ms or time_s"
        )
    if len(names) < 2:
        raise InputError(f"{where}: expected the header {_HEADER}")
    return _UNIT_OF_HEADER[names[0]], len(names)


def _row(where: str, values: list[str], unit: str, max_rate: int) -> FileRow:
    time = (values[0] + unit).strip()
    at_us = microseconds(time) if time[-1:].isalpha() else None
    if at_us is None:
        expected = f"a number of {unit}" if unit else "a time with its unit such as 90s or 5m"
        raise InputError(f"{where}: time: {values[0]!r}: expected {expected}")
    topic = values[2] if len(values) > 2 and values[2] else None
    partition = values[3] if len(values) > 3 and values[3] else None
    if partition is not None and (topic is None or not partition.isdecimal()):
        raise InputError(f"{where}: partition: {partition!r}: expected a number, with its topic before it")
    rate = thousandths(f"{where}: rate", values[1], max_rate)
    return FileRow(int(at_us) // 1000, rate, topic, None if partition is None else int(partition))


def read_rate_rows(where: str, written: Any, max_rate: int) -> tuple[FileRow, ...]:
    """The rows of a file as a resolved scenario has them: [milliseconds, rate, topic, partition].

    Raises InputError.
    """
    if not isinstance(written, list) or not 0 < len(written) <= MAX_ROWS:
        raise InputError(f"{where}: expected a list of [milliseconds, rate, topic, partition]")
    rows = []
    for number, one in enumerate(written, start=1):
        place = f"{where}: {number}"
        if not isinstance(one, list) or len(one) != 4:
            raise InputError(f"{place}: {one!r}: expected [milliseconds, rate, topic, partition]")
        at_ms, rate, topic, partition = one
        if topic is not None and not isinstance(topic, str):
            raise InputError(f"{place}: topic: {topic!r}: expected a name or null")
        if partition is not None and (topic is None or type(partition) is not int or partition < 0):
            raise InputError(f"{place}: partition: {partition!r}: expected a number of a topic, or null")
        rows.append(FileRow(milliseconds(place, at_ms), thousandths(place, rate, max_rate), topic, partition))
    return _sorted_rows(where, rows)


def _sorted_rows(source: str, rows: list[FileRow]) -> tuple[FileRow, ...]:
    """By time. Raises InputError if two rows speak of the same time and partitions."""
    seen: set[tuple[int, str | None, int | None]] = set()
    for row in rows:
        key = (row.at_ms, row.topic, row.partition)
        if key in seen:
            raise InputError(f"{source}: two rates at {row.at_ms} ms for the same partitions")
        seen.add(key)
    return tuple(sorted(rows, key=lambda row: row.at_ms))
