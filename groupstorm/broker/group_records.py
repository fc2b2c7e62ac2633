"""The limit of a batch in the offsets topic: records of a group that do not fit into one are refused.

Kafka appends all records of a request in one batch (CoordinatorRuntime). A batch above the topic's limit is
RecordTooLargeException, which clients of groups get as UNKNOWN_SERVER_ERROR, and the group stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.records import AppendCause, AppendPolicy, Record

#: Around each record: its lengths and deltas, the versions of key and value, flags.
_RECORD_BYTES = 20
_NUMBER_BYTES = 8
_FIXED = {int: _NUMBER_BYTES, type(None): 1}


def limited_appends(latency_ms: int, max_bytes: Callable[[], int]) -> AppendPolicy:
    """Each append takes so long, and its records at most so many bytes."""

    def append(records: Sequence[Record], _cause: AppendCause) -> tuple[int, Error | None]:
        most, size = max_bytes(), 0
        for record in records:
            size += _RECORD_BYTES + _size_of(record)
            if size > most:
                return latency_ms, Error.MESSAGE_TOO_LARGE
        return latency_ms, None

    return append


def _size_of(values: Iterable[Any]) -> int:
    """Nearly the bytes that Kafka makes of a record, or of a part of it. Everybody waits for it."""
    size = 2
    for value in values:
        fixed = _FIXED.get(type(value))
        if fixed is not None:
            size += fixed
        elif isinstance(value, str | bytes):
            size += 2 + len(value)
        elif isinstance(value, Mapping):
            size += _size_of(value) + _size_of(value.values())
        else:
            size += _size_of(value) if isinstance(value, Iterable) else _NUMBER_BYTES
    return size
