"""Bytes to messages: one compiled reader per class.

A reader takes the bytes and a position and returns the value and the position behind it. A length alone
allocates nothing: an array is made only if the remaining bytes have room for its elements. If `struct` or an
index runs beyond the end of the bytes, `decoder` raises a CodecError.

The reader of a structure is generated source, as its writer is (`encode`), from the names and types of
kio's fields alone. It sets the slots of a new object directly: the `__init__` of a frozen dataclass
takes three times as long, and a Fetch names a thousand partitions.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias

from kio.schema.errors import ErrorCode

from groupstorm.protocol.codec.shape import (
    EPOCH,
    MAX_STRING_BYTES,
    MILLISECOND,
    PACKED_FORMATS,
    CodecError,
    FieldShape,
    KioType,
    shapes_of,
)

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
#: Reads a value of this length; a length below zero stands for null.
SizedReader: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
Convert: TypeAlias = Callable[[Any], Any]

_UNPACK_INT8 = struct.Struct(">b").unpack_from
_UNPACK_INT16 = struct.Struct(">h").unpack_from
_UNPACK_INT32 = struct.Struct(">i").unpack_from
_ERROR_CODES: dict[int, ErrorCode] = {int(code): code for code in ErrorCode}
_VARINT_MAX_BYTES = 5
#: Types that begin with a length, and its width in bytes before lengths were varints.
_LENGTH_BYTES = {"string": 2, "bytes": 4, "records": 4}


def read_unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, five bytes at most (ByteUtils.readUnsignedVarint)."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for index in range(1, _VARINT_MAX_BYTES):
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise CodecError(f"a varint of more than {_VARINT_MAX_BYTES} bytes at {at}")


@cache
def decoder(message_type: KioType) -> Callable[[bytes, int], tuple[Any, int]]:
    """A function from (bytes, position) to (message of this class, position behind it).

    Bytes behind the message are left alone, since some clients send more than they should. It raises
    CodecError when the bytes end too early, a length exceeds what is there, null stands where the
    version knows none, or a date cannot be represented.
    """
    read = _entity_reader(message_type)

    def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
        try:
            return read(data, at)
        except (struct.error, IndexError) as problem:
            raise CodecError(f"{message_type.__name__}: the bytes end too early") from problem
        except (OverflowError, ValueError) as problem:
            raise CodecError(f"{message_type.__name__}: {problem}") from problem

    return decode


# values of fixed width


def _to_error_code(code: int) -> ErrorCode:
    """An unknown code counts as UNKNOWN_SERVER_ERROR (Errors.forCode)."""
    return _ERROR_CODES.get(code, ErrorCode.unknown_server_error)


def _to_uuid(encoded: bytes) -> uuid.UUID | None:
    """The zero UUID stands for none (Uuid.ZERO_UUID)."""
    return uuid.UUID(bytes=encoded) if any(encoded) else None


def _to_duration(duration_ms: int) -> datetime.timedelta:
    return duration_ms * MILLISECOND


def _to_datetime(timestamp_ms: int) -> datetime.datetime:
    return EPOCH + timestamp_ms * MILLISECOND


def _to_nullable_datetime(timestamp_ms: int) -> datetime.datetime | None:
    return None if timestamp_ms == -1 else _to_datetime(timestamp_ms)


#: `struct` format, and the conversion of the unpacked value.
_FIXED: dict[str, tuple[str, Convert | None]] = {
    **{kafka_type: (packed, None) for kafka_type, packed in PACKED_FORMATS.items()},
    "error_code": ("h", _to_error_code),
    "uuid": ("16s", _to_uuid),
    "timedelta_i32": ("i", _to_duration),
    "timedelta_i64": ("q", _to_duration),
    "datetime_i64": ("q", _to_datetime),
}


def _fixed(shape: FieldShape) -> tuple[str, Convert | None] | None:
    """Format and conversion of a field of fixed width, None for other fields; of an array, its elements'."""
    if shape.entity is not None:
        return None
    if shape.kafka_type == "datetime_i64" and shape.nullable:
        return "q", _to_nullable_datetime
    return _FIXED.get(shape.kafka_type or "")


# structures


@cache
def _entity_reader(entity: KioType) -> Reader:
    """Compile `def read(d, at)`: one statement for each run of fixed width and each other field."""
    shapes = shapes_of(entity)
    tagged = {shape.tag: shape for shape in shapes if shape.tag is not None}
    names: dict[str, Any] = {"new": object.__new__, "E": entity, "varint": read_unsigned_varint}
    for shape in shapes:
        names[f"set_{shape.name}"] = vars(entity)[shape.name].__set__
    lines = ["def read(d, at):", "e = new(E)"]
    untagged = (shape for shape in shapes if shape.tag is None)
    for is_fixed, run in groupby(untagged, lambda shape: not shape.array and _fixed(shape) is not None):
        if is_fixed:
            lines += _fixed_source(list(run), names)
        else:
            lines += [line for shape in run for line in _single_source(shape, names)]
    if entity.__flexible__:
        names["read_tags"] = tags_reader(entity, tagged)
        for shape in tagged.values():
            names[f"default_{shape.name}"] = shape.default
            lines.append(f"set_{shape.name}(e, default_{shape.name})")
        lines.append("at = read_tags(d, at, e) if d[at] else at + 1")
    lines.append("return e, at")
    exec("\n    ".join(lines), names)
    read: Reader = names["read"]
    return read


def _fixed_source(run: list[FieldShape], names: dict[str, Any]) -> list[str]:
    """Statements that read neighbours of fixed width."""
    formats = []
    lines = []
    for shape in run:
        packed, convert = _fixed(shape) or ("", None)
        formats.append(packed)
        value = f"v_{shape.name}"
        if convert is not None:
            names[f"convert_{shape.name}"] = convert
            value = f"convert_{shape.name}({value})"
        lines.append(f"set_{shape.name}(e, {value})")
    layout = struct.Struct(">" + "".join(formats))
    unpack = f"unpack_{run[0].name}"
    names[unpack] = layout.unpack_from
    values = "".join(f"v_{shape.name}, " for shape in run)
    return [f"{values}= {unpack}(d, at); at += {layout.size}", *lines]


def _single_source(shape: FieldShape, names: dict[str, Any]) -> list[str]:
    """Statements that read a string, bytes, an array or a structure."""
    name = shape.name
    if not _has_length(shape):
        names[f"read_{name}"] = _structure_reader(shape)
        return [f"v, at = read_{name}(d, at)", f"set_{name}(e, v)"]
    names[f"read_{name}"] = _sized_reader(shape)
    if shape.flexible:
        length = ["n = d[at] - 1; at += 1", "if n > 126: n, at = varint(d, at - 1); n -= 1"]
    else:
        width = _length_width(shape)
        names[f"length_{name}"] = _UNPACK_INT16 if width == 2 else _UNPACK_INT32
        length = [f"n, = length_{name}(d, at); at += {width}"]
    return [*length, f"v, at = read_{name}(d, at, n)", f"set_{name}(e, v)"]


def _structure_reader(shape: FieldShape) -> Reader:
    read: Reader = _entity_reader(shape.entity)
    if not shape.nullable:
        return read
    return _nullable_entity_reader(read) if shape.tag is None else _nullable_tagged_reader(read)


def _nullable_tagged_reader(read: Reader) -> Reader:
    """A structure in a tagged field that may be null is preceded by a varint: 0 for null, else 1
    (ConsumerGroupMemberMetadataValue.classicMemberMetadata)."""

    def read_nullable(data: bytes, at: int) -> tuple[Any, int]:
        marker, at = read_unsigned_varint(data, at)
        return read(data, at) if marker else (None, at)

    return read_nullable


def _nullable_entity_reader(read: Reader) -> Reader:
    """A structure that may be null is preceded by a byte: below zero for null (KIP-893)."""

    def read_nullable(data: bytes, at: int) -> tuple[Any, int]:
        (marker,) = _UNPACK_INT8(data, at)
        if marker < 0:
            return None, at + 1
        return read(data, at + 1)

    return read_nullable


def tags_reader(entity: KioType, tagged: dict[int, FieldShape]) -> Callable[[bytes, int, Any], int]:
    """Reads tagged fields into an object; tags that this version does not know are skipped (KIP-482)."""
    readers = {tag: (field_reader(shape), vars(entity)[shape.name].__set__) for tag, shape in tagged.items()}

    def read(data: bytes, at: int, target: Any) -> int:
        count, at = read_unsigned_varint(data, at)
        for _ in range(count):
            tag, at = read_unsigned_varint(data, at)
            size, at = read_unsigned_varint(data, at)
            end = at + size
            if end > len(data):
                raise CodecError(f"tagged field {tag} announces {size} bytes, {len(data) - at} are left")
            if tag in readers:
                read_field, set_field = readers[tag]
                value, used = read_field(data, at)
                if used > end:
                    raise CodecError(f"tagged field {tag} is longer than the {size} bytes that it announces")
                set_field(target, value)
            at = end
        return at

    return read


# values with a length


def _has_length(shape: FieldShape) -> bool:
    return shape.array or shape.kafka_type in _LENGTH_BYTES


def _length_width(shape: FieldShape) -> int:
    return 4 if shape.array else _LENGTH_BYTES[shape.kafka_type or ""]


def field_reader(shape: FieldShape) -> Reader:
    """A reader of a whole field, its length included: for tagged fields and elements of arrays."""
    if _has_length(shape):
        return reader_with_length(shape, _sized_reader(shape))
    fixed = _fixed(shape)
    if fixed is None:
        return _structure_reader(shape)
    layout = struct.Struct(">" + fixed[0])
    convert = fixed[1] or _itself
    return lambda data, at: (convert(layout.unpack_from(data, at)[0]), at + layout.size)


def _itself(value: Any) -> Any:
    return value


def reader_with_length(shape: FieldShape, read_sized: SizedReader) -> Reader:
    if shape.flexible:

        def read_compact(data: bytes, at: int) -> tuple[Any, int]:
            length, at = read_unsigned_varint(data, at)
            return read_sized(data, at, length - 1)

        return read_compact
    width = _length_width(shape)
    unpack = _UNPACK_INT16 if width == 2 else _UNPACK_INT32
    return lambda data, at: read_sized(data, at + width, unpack(data, at)[0])


def _sized_reader(shape: FieldShape) -> SizedReader:
    if shape.array:
        return _array_reader(shape)
    return _string_reader(shape) if shape.kafka_type == "string" else _bytes_reader(shape)


def _check_null(shape: FieldShape) -> None:
    if not shape.nullable:
        raise CodecError(f"{shape.name} is null, which this version does not allow")


def _string_reader(shape: FieldShape) -> SizedReader:
    def read(data: bytes, at: int, length: int) -> tuple[str | None, int]:
        if length < 0:
            _check_null(shape)
            return None, at
        if length > MAX_STRING_BYTES:
            raise CodecError(f"{shape.name} announces {length} bytes, allowed are {MAX_STRING_BYTES}")
        end = at + length
        if end > len(data):
            raise CodecError(f"{shape.name} announces {length} bytes, {len(data) - at} are left")
        # Java replaces bytes that are not UTF-8 and refuses none
        return data[at:end].decode("utf-8", "replace"), end

    return read


def _bytes_reader(shape: FieldShape) -> SizedReader:
    def read(data: bytes, at: int, length: int) -> tuple[bytes | None, int]:
        if length < 0:
            _check_null(shape)
            return None, at
        end = at + length
        if end > len(data):
            raise CodecError(f"{shape.name} announces {length} bytes, {len(data) - at} are left")
        return data[at:end], end

    return read


def _array_reader(shape: FieldShape) -> SizedReader:
    read_items = items_reader(shape)
    smallest = smallest_element(shape)

    def read(data: bytes, at: int, count: int) -> tuple[tuple[Any, ...] | None, int]:
        if count <= 0:
            if count < 0:
                _check_null(shape)
                return None, at
            return (), at
        if count * smallest > len(data) - at:
            raise CodecError(f"{shape.name} announces {count} elements, {len(data) - at} bytes are left")
        return read_items(data, at, count)

    return read


def items_reader(shape: FieldShape) -> SizedReader:
    packed = PACKED_FORMATS.get(shape.kafka_type or "") if shape.entity is None else None
    if packed is not None:
        size = struct.calcsize(">" + packed)
        return lambda data, at, count: (struct.unpack_from(f">{count}{packed}", data, at), at + size * count)
    read_item = _entity_reader(shape.entity) if shape.entity is not None else field_reader(_element(shape))

    def read(data: bytes, at: int, count: int) -> tuple[tuple[Any, ...], int]:
        items: list[Any] = []
        for _ in range(count):
            item, at = read_item(data, at)
            items.append(item)
        return tuple(items), at

    return read


def _element(shape: FieldShape) -> FieldShape:
    """An array's element as a field. The array may be null, the element not."""
    return replace(shape, array=False, nullable=False)


@cache
def _smallest(entity: KioType) -> int:
    """The least number of bytes that a structure takes: an array of n of them needs n times as many."""
    untagged = (shape for shape in shapes_of(entity) if shape.tag is None)
    return sum(_smallest_field(shape) for shape in untagged) + int(entity.__flexible__)


def _smallest_field(shape: FieldShape) -> int:
    if _has_length(shape):
        return 1 if shape.flexible else _length_width(shape)
    if shape.entity is not None and shape.nullable:
        return 1
    return smallest_element(shape)


def smallest_element(shape: FieldShape) -> int:
    if shape.entity is not None:
        return int(_smallest(shape.entity))
    fixed = _fixed(shape)
    return struct.calcsize(">" + fixed[0]) if fixed is not None else _smallest_field(_element(shape))
