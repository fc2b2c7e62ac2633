"""Messages as plain values that are equal on all brokers if the brokers say the same.

Kafka draws member ids at random: each is replaced by the name of the client that was given it. Members
come in the order of a hash table of those ids; lists of members are sorted. Names that a run has made up
are replaced by what they are.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.shape import KioType, shapes_of

#: Lists whose order comes from a hash table.
_UNORDERED = (
    *("members", "topics", "partitions", "groups", "results", "configs", "topic_partitions"),
    *("active_tasks", "standby_tasks", "active_partitions", "standby_partitions"),
    *("partitions_by_user_endpoint", "topic_configs"),
)
#: Fields that depend on the machine and not on the coordinator.
_LEFT_OUT = ("throttle_time", "client_host", "producer_id", "host", "port", "node_id")


def build(kind: KioType, values: Mapping[str, Any]) -> Any:
    """A message of kio's from plain values; fields that the version lacks are dropped."""
    made = {}
    for shape in shapes_of(kind):
        if shape.name not in values:
            made[shape.name] = () if shape.array else shape.default
            continue
        value = values[shape.name]
        if shape.entity is not None and value is not None:
            many = tuple(build(shape.entity, one) for one in value) if shape.array else None
            value = build(shape.entity, value) if many is None else many
        elif shape.kafka_type in ("timedelta_i32", "timedelta_i64"):
            value = datetime.timedelta(milliseconds=value)
        elif shape.kafka_type == "uuid":
            value = uuid.UUID(value)
        elif shape.array and value is not None:
            value = tuple(value)
        made[shape.name] = value
    return kind(**made)


def plain(message: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """A message as nested dicts; every string of ``names`` is replaced by what it maps to."""
    answer: dict[str, Any] = {}
    for shape in shapes_of(type(message)):
        if shape.name in _LEFT_OUT:
            continue
        value = getattr(message, shape.name)
        if shape.name == "error_code":
            answer[shape.name] = Error(value).name
        elif shape.entity is not None and value is not None:
            many = _in_order(shape.name, [plain(one, names) for one in value]) if shape.array else None
            answer[shape.name] = plain(value, names) if many is None else many
        elif shape.array and value is not None:
            answer[shape.name] = [_leaf(one, names) for one in value]
        else:
            answer[shape.name] = _leaf(value, names)
    return answer


def _in_order(name: str, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_id = name == "responses" and any("topic_id" in one for one in values)
    return sorted(values, key=repr) if name in _UNORDERED or by_id else values


def _leaf(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, uuid.UUID):
        value = str(value)
    if isinstance(value, bytes):
        for real, shown in names.items():  # in Kafka's formats a name follows its length
            value = value.replace(len(real).to_bytes(2) + real.encode(), shown.encode())
        value = value.decode("latin-1")
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, str):
        for real, shown in names.items():
            value = value.replace(real, shown)
    return value


def missing(expected: Any, found: Any, where: str = "") -> str:
    """Empty if ``found`` has all that is expected: of mappings the named fields, of lists all elements."""
    if isinstance(expected, Mapping):
        for name, value in expected.items():
            if not isinstance(found, Mapping) or name not in found:
                return f"{where or 'answer'} has no {name}"
            if problem := missing(value, found[name], f"{where}.{name}".lstrip(".")):
                return problem
        return ""
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(found, Sequence) or len(expected) != len(found):
            return f"{where} is {found!r}, expected {expected!r}"
        pairs = enumerate(zip(expected, found, strict=True))
        problems = (missing(one, other, f"{where}[{index}]") for index, (one, other) in pairs)
        return next((problem for problem in problems if problem), "")
    return "" if expected == found else f"{where} is {found!r}, expected {expected!r}"
