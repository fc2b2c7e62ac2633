"""Lines of a service's standard output: JSON objects that say which record it has processed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.problems import InputError


class RecordPlace(NamedTuple):
    """Where a service has read a record."""

    topic: str
    partition: int
    offset: int


class ProcessedLine(NamedTuple):
    """``record``: its number or its place; ``at_ms``: milliseconds since 1970, None if the line has none."""

    record: int | RecordPlace
    at_ms: float | None


def read_line(line: bytes) -> ProcessedLine | None:
    """None for a line that is not about a record. Raises InputError for one that is, and cannot be read."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, Mapping) or "processed" not in found:
        return None
    return ProcessedLine(_record(found["processed"], line), _time(found.get("at_ms"), line))


def _record(value: Any, line: bytes) -> int | RecordPlace:
    if _is_whole(value):
        return int(value)
    if isinstance(value, Mapping):
        topic, partition, offset = (value.get(name) for name in RecordPlace._fields)
        if isinstance(topic, str) and _is_whole(partition) and _is_whole(offset):
            return RecordPlace(topic, int(partition or 0), int(offset or 0))
    raise InputError(
        f"the service wrote {_shown(line)}: processed: expected the number of a record, or its topic,"
        " partition and offset"
    )


def _time(value: Any, line: bytes) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"the service wrote {_shown(line)}: at_ms: expected milliseconds since 1970")
    return float(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").strip()[:200]
