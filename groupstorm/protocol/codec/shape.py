"""The fields of kio's dataclasses, as plain values.

Flexible versions (KIP-482) write lengths as unsigned varints plus one and end every structure with
tagged fields; older ones write fixed-width lengths, -1 standing for null.
"""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from kio.schema.errors import ErrorCode

#: One of kio's dataclasses, which are generated and have no common base to name here.
KioType: TypeAlias = Any

MAX_STRING_BYTES = 0x7FFF
"""Kafka refuses longer strings in every version (MessageDataGenerator's checks)."""

MILLISECOND = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime.fromtimestamp(0, tz=datetime.UTC)
ZERO_UUID = uuid.UUID(int=0)

#: Types of fixed width whose Python value is what `struct` packs, and their format.
PACKED_FORMATS: dict[str, str] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
}

_IMPLICIT_DEFAULTS: dict[str, object] = {
    **dict.fromkeys(PACKED_FORMATS, 0),
    "bool": False,
    "float64": 0.0,
    "error_code": ErrorCode.none,
    "string": "",
    "bytes": b"",
    "uuid": None,
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
    "datetime_i64": EPOCH,
}


class CodecError(ValueError):
    """Bytes that are not a message of the expected type, or a message that cannot be written."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldShape:
    """One field: ``entity`` is set for structures, ``kafka_type`` for everything else."""

    name: str
    kafka_type: str | None
    entity: KioType | None
    array: bool
    nullable: bool
    tag: int | None
    flexible: bool
    default: object


def shapes_of(message_type: KioType) -> list[FieldShape]:
    """The fields of one of kio's classes in the order of the wire, tagged ones among them."""
    flexible: bool = message_type.__flexible__
    return [_shape_of(field, message_type, flexible) for field in dataclasses.fields(message_type)]


def _shape_of(field: dataclasses.Field[Any], message_type: KioType, flexible: bool) -> FieldShape:
    inner, nullable = _without_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner = get_args(inner)[0]
    entity = inner if isinstance(inner, type) and dataclasses.is_dataclass(inner) else None
    kafka_type: str | None = field.metadata.get("kafka_type")
    # RequestHeader.ClientId keeps its old encoding in all versions, so that a broker can read the
    # header of a version that it does not know (RequestHeader.json).
    if message_type.__name__ == "RequestHeader" and field.name == "client_id":
        flexible = False
    return FieldShape(
        name=field.name,
        kafka_type=kafka_type,
        entity=entity,
        array=array,
        nullable=nullable,
        tag=field.metadata.get("tag"),
        flexible=flexible,
        default=_default(field, kafka_type, entity),
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (UnionType, Union):
        return annotation, False
    arguments = get_args(annotation)
    present = [argument for argument in arguments if argument is not NoneType]
    if len(present) != 1:
        raise CodecError(f"{annotation}: a field is of one type, or of one type and null")
    return present[0], len(present) < len(arguments)


def _default(field: dataclasses.Field[Any], kafka_type: str | None, entity: KioType | None) -> object:
    """The value of a field that is not on the wire. A tagged field with this value is not written."""
    if field.default is not dataclasses.MISSING:
        return field.default
    if entity is not None:
        return entity(**{shape.name: shape.default for shape in shapes_of(entity)})
    return _IMPLICIT_DEFAULTS.get(kafka_type or "")
