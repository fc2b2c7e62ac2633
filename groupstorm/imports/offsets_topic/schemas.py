"""The keys and values of `__consumer_offsets` as bytes: the reader of Kafka's schemas (`schemas.tsv`).

Fields have the names of Kafka's JSON schemas (group-coordinator/src/main/resources/common/message, 4.3.1), so
that a record read from bytes looks like one that Kafka's tools print as JSON. `protocol.codec` reads them: it
checks every length before it believes it.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass
from enum import IntEnum
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from groupstorm.protocol.codec import CodecError, decoder
from groupstorm.tables import rows


class KeyType(IntEnum):
    """The types of keys that groupstorm reads (CoordinatorRecordType, Kafka 4.3.1).

    Kafka has more, of share groups (10 to 15), regular expressions (16) and streams groups (17 to 23).
    """

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8


class WrittenRecord(NamedTuple):
    """``key`` and ``value``: the fields of Kafka's schemas. ``value`` None is a tombstone.

    ``time_ms``: the record's timestamp, which the coordinator sets; None if the source does not print it.
    """

    key_type: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    time_ms: int | None = None


_ANY_VERSION: Final = 1 << 15


class _Field(NamedTuple):
    """``kind``: a Kafka type, or the name of a structure. ``since``, ``until``: versions that have the field.
    ``tag``: of a tagged field, which is None if it is not written."""

    name: str
    kind: str
    array: bool
    nullable: bool
    since: int
    until: int
    tag: int | None


class _Schema(NamedTuple):
    """``newest``: the last version with the table's fields, and the first flexible one; KIP-915 adds only
    tagged fields later on."""

    newest: int
    fields: tuple[_Field, ...]


def _structures() -> Iterator[tuple[str, tuple[_Field, ...]]]:
    for structure, columns in groupby(rows(__package__, "schemas"), key=itemgetter(0)):
        yield structure, tuple(_field(*row[1:]) for row in columns)


def _field(name: str, kind: str, versions: str, nullable: str, tag: str) -> _Field:
    since, _, until = versions.removesuffix("+").partition("-")
    return _Field(
        name,
        kind.removeprefix("[]"),
        kind.startswith("[]"),
        nullable == "nullable",
        int(since),
        int(until or _ANY_VERSION),
        None if tag == "-" else int(tag),
    )


_STRUCTURES: Final[Mapping[str, tuple[_Field, ...]]] = dict(_structures())


def _name(key_type: KeyType) -> str:
    return "".join(map(str.capitalize, key_type.name.removeprefix("LEGACY_").split("_")))


#: Keys have no versions of their own: the number in front of a key is its type (KIP-848). Before, the number
#: was the key's version, and types 0 and 1 were versions of one key.
_KEYS: Final[Mapping[KeyType, tuple[_Field, ...]]] = {one: _STRUCTURES[f"{_name(one)}Key"] for one in KeyType}
_VALUES: Final[Mapping[KeyType, _Schema]] = {
    one: _Schema(version, _STRUCTURES[f"{_name(one)}Value"])
    for one in KeyType
    for version in (4 if one <= KeyType.GROUP_METADATA else 0,)
}

_PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "string": str,
    "bytes": bytes,
    "uuid": UUID,
    "int8": int,
    "int32": int,
    "int64": int,
}


def read_key(data: bytes) -> tuple[int, Mapping[str, Any] | None]:
    """The type of a key, and its fields; None for a type that is of no classic or consumer group.

    Raises CodecError.
    """
    key_type = _number(data)
    if key_type not in _KEYS:
        return key_type, None
    return key_type, _read(_structure(_KEYS[KeyType(key_type)], 0, False), data)


def read_value(key_type: int, data: bytes) -> Mapping[str, Any] | None:
    """The fields of a value; None for a type whose values groupstorm does not read.

    Raises CodecError, also for a version that Kafka 4.3.1 does not know.
    """
    schema = _VALUES.get(KeyType(key_type))
    if schema is None:
        return None
    version = _number(data)
    if not 0 <= version <= schema.newest:
        raise CodecError(f"version {version} of a record of type {key_type}: {schema.newest} is the newest")
    return _read(_structure(schema.fields, version, version == schema.newest), data)


def _number(data: bytes) -> int:
    if len(data) < 2:
        raise CodecError(f"a key or value of {len(data)} bytes")
    return int.from_bytes(data[:2], "big", signed=True)


def _read(structure: Any, data: bytes) -> Mapping[str, Any]:
    found, _ = decoder(structure)(data, 2)
    values: Mapping[str, Any] = _plain(found)
    return values


@cache
def _structure(table: tuple[_Field, ...], version: int, flexible: bool) -> Any:
    """The class of a structure in one version, as `protocol.codec` takes it."""
    columns: list[tuple[str, Any, Any]] = []
    for one in table:
        if not one.since <= version <= one.until:
            continue
        metadata: dict[str, Any] = {} if one.tag is None else {"tag": one.tag}
        kind = _PYTHON_TYPES.get(one.kind)
        if kind is None:
            kind = _structure(_STRUCTURES[one.kind], version, flexible)
        else:
            metadata["kafka_type"] = one.kind
        annotation = tuple[kind, ...] if one.array else kind  # type: ignore[valid-type]
        column = field(metadata=metadata) if one.tag is None else field(metadata=metadata, default=None)
        columns.append((one.name, annotation | None if one.nullable else annotation, column))
    return make_dataclass(
        "Structure", columns, frozen=True, slots=True, kw_only=True, namespace={"__flexible__": flexible}
    )


def _plain(value: Any) -> Any:
    """A message as Kafka's JSON converters give it; bytes stay bytes."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, UUID):
        return urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value
