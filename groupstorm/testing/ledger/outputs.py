"""Records of an output topic: the number of their input, and the instance that has written them.

The first that is there counts: the header `number`, a key that is a number, a value that is a number, the
field `number` of a value that is a JSON object. The instance: the header `by`, or the field `by`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.problems import InputError

#: Finds the number of the input in an output record.
NumberOf = Callable[[ConsumerRecord], int]


class Output(NamedTuple):
    """``by``: "" if the record does not name the instance."""

    number: int
    by: str


def output_of(record: ConsumerRecord, number_of: NumberOf | None = None) -> Output:
    """Raises InputError for a record without a number."""
    headers = {name: value for name, value in record.headers if value is not None}
    fields = _fields(record.value)
    by = headers["by"].decode(errors="replace") if "by" in headers else str(fields.get("by", ""))
    if number_of is not None:
        return Output(number_of(record), by)
    for found in (headers.get("number"), record.key, record.value):
        if found is not None and found.isdigit():
            return Output(int(found), by)
    number = fields.get("number")
    if isinstance(number, int) and not isinstance(number, bool):
        return Output(number, by)
    raise InputError(
        f"{record.topic}-{record.partition}, offset {record.offset}: {record.value!r}: expected the number of"
        " the input in the header `number`, as the key or the value, or as the field `number` of JSON"
    )


def _fields(value: bytes | None) -> Mapping[str, Any]:
    """The fields of a JSON object; none of anything else."""
    try:
        found = json.loads(value) if value else None
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
