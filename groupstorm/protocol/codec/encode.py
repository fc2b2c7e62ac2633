"""Messages to bytes: one compiled writer per class.

A writer takes `append` (of a list of chunks) and a value. Values are written by closures. The
writer of a structure is generated source, as `dataclasses` makes its methods, from the names and
types of kio's fields alone: neighbouring fields of fixed width, short arrays of numbers included,
then go through a single `struct` call, which halves the time of a large Metadata response.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias

from groupstorm.protocol.codec.shape import (
    EPOCH,
    MAX_STRING_BYTES,
    MILLISECOND,
    PACKED_FORMATS,
    ZERO_UUID,
    CodecError,
    FieldShape,
    KioType,
    shapes_of,
)

Append: TypeAlias = Callable[[bytes], None]
Writer: TypeAlias = Callable[[Append, Any], None]

_ONE_BYTE_VARINTS = tuple(bytes([value]) for value in range(0x80))
_PACK_INT16 = struct.Struct(">h").pack
_PACK_INT32 = struct.Struct(">i").pack
_PACK_INT64 = struct.Struct(">q").pack
_NO_TAGS = b"\x00"
#: Arrays shorter than this are packed together with their neighbours; a layout is kept for each combination.
_SHORT_ARRAY = 8


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first (KIP-482)."""
    if value < 0x80:
        return _ONE_BYTE_VARINTS[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@cache
def encoder(message_type: KioType) -> Callable[[Any], list[bytes]]:
    """A function from a message of this class to the chunks of its bytes, to be joined or written out.

    It raises CodecError for a value that the class's version cannot carry: null if that is not
    allowed, a string of more than 32,767 bytes, an integer out of range.
    """
    write = _entity_writer(message_type)

    def encode(message: Any) -> list[bytes]:
        chunks: list[bytes] = []
        try:
            write(chunks.append, message)
        except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as problem:
            raise CodecError(f"{message_type.__name__} cannot be written: {problem}") from problem
        return chunks

    return encode


@cache
def _entity_writer(entity: KioType) -> Writer:
    """Compile `def write(append, e)`: one statement for each run of fixed width and each other field."""
    shapes = shapes_of(entity)
    untagged = [shape for shape in shapes if shape.tag is None]
    tagged = [shape for shape in shapes if shape.tag is not None]
    names: dict[str, Any] = {}
    lines: list[str] = []
    ends_with_no_tags = bool(entity.__flexible__) and not tagged
    for packable, run in groupby(untagged, _is_packable):
        shapes_of_run = list(run)
        if packable:
            is_end = ends_with_no_tags and shapes_of_run[-1] is untagged[-1]
            ends_with_no_tags = ends_with_no_tags and not is_end
            lines += _packed_source(shapes_of_run, is_end, names)
            continue
        for shape in shapes_of_run:
            names[f"write_{shape.name}"] = field_writer(shape)
            lines.append(f"write_{shape.name}(append, e.{shape.name})")
    if tagged:
        names["write_tags"] = tags_writer(sorted(tagged, key=lambda shape: shape.tag or 0))
        lines.append("write_tags(append, e)")
    elif ends_with_no_tags:
        names["NO_TAGS"] = _NO_TAGS
        lines.append("append(NO_TAGS)")
    source = "\n    ".join(["def write(append, e):", *(lines or ["pass"])])
    exec(source, names)
    write: Writer = names["write"]
    return write


def _format(shape: FieldShape) -> str | None:
    # an error code is an IntEnum
    return "h" if shape.kafka_type == "error_code" else PACKED_FORMATS.get(shape.kafka_type or "")


def _is_packable(shape: FieldShape) -> bool:
    return _format(shape) is not None and not (shape.array and shape.nullable)


class _Layouts(dict[tuple[int, ...], Callable[..., bytes]]):
    """`pack` for a run of fixed width, by the lengths of the arrays in it; `ending` closes the run."""

    def __init__(self, run: list[FieldShape], ending: str) -> None:
        super().__init__()
        self._run = run
        self._ending = ending

    def __missing__(self, counts: tuple[int, ...]) -> Callable[..., bytes]:
        formats = [">"]
        remaining = iter(counts)
        for shape in self._run:
            if shape.array:
                formats.append(f"{'B' if shape.flexible else 'i'}{next(remaining)}")
            formats.append(_format(shape) or "")
        pack = struct.Struct("".join(formats) + self._ending).pack
        self[counts] = pack
        return pack


def _packed_source(run: list[FieldShape], is_end: bool, names: dict[str, Any]) -> list[str]:
    """Statements that write a run of numbers and arrays of numbers, e.g. of Metadata's partitions."""
    first = run[0].name
    ending = "x" if is_end else ""  # the count of tagged fields is a zero byte, as is struct's padding
    layouts = _Layouts(run, ending)
    arrays = [shape.name for shape in run if shape.array]
    values = ", ".join(_packed_values(shape) for shape in run)
    if not arrays:
        names[f"pack_{first}"] = layouts[()]
        return [f"append(pack_{first}({values}))"]
    names[f"layouts_{first}"] = layouts
    names[f"write_long_{first}"] = _long_run_writer(run, ending)
    counts = "".join(f"n_{name}, " for name in arrays)
    short = " and ".join(f"n_{name} < {_SHORT_ARRAY}" for name in arrays)
    return [
        *(f"a_{name} = e.{name}; n_{name} = len(a_{name})" for name in arrays),
        f"if {short}: append(layouts_{first}[{counts}]({values}))",
        f"else: write_long_{first}(append, e)",
    ]


def _packed_values(shape: FieldShape) -> str:
    if not shape.array:
        return f"e.{shape.name}"
    return f"n_{shape.name}{' + 1' if shape.flexible else ''}, *a_{shape.name}"


def _long_run_writer(run: list[FieldShape], ending: str) -> Writer:
    """Return a writer that goes field by field, for arrays of any length."""
    fields = [(attrgetter(shape.name), field_writer(shape)) for shape in run]
    padding = _NO_TAGS * len(ending)

    def write(append: Append, entity: Any) -> None:
        for get, write_field in fields:
            write_field(append, get(entity))
        append(padding)

    return write


def field_writer(shape: FieldShape) -> Writer:
    if shape.array:
        return _array_writer(shape)
    if shape.entity is not None:
        write = _entity_writer(shape.entity)
        if not shape.nullable:
            return write
        markers = _NULL_MARKERS if shape.tag is None else _TAGGED_NULL_MARKERS
        return _nullable_entity_writer(write, *markers)
    return _value_writer(shape)


def _value_writer(shape: FieldShape) -> Writer:
    """A writer of one value that is neither an array nor a structure."""
    packed = _format(shape)
    if packed is not None:
        pack = struct.Struct(">" + packed).pack
        return lambda append, value: append(pack(value))
    make = _VALUE_WRITERS.get(shape.kafka_type or "")
    if make is None:
        raise CodecError(f"{shape.name}: no writer for the type {shape.kafka_type}")
    return make(shape)


def _uuid_writer(_shape: FieldShape) -> Writer:
    return lambda append, value: append((ZERO_UUID if value is None else value).bytes)


def _duration_writer(shape: FieldShape) -> Writer:
    pack = _PACK_INT32 if shape.kafka_type == "timedelta_i32" else _PACK_INT64
    return lambda append, value: append(pack(value // MILLISECOND))


def _datetime_writer(_shape: FieldShape) -> Writer:
    def write(append: Append, value: datetime.datetime | None) -> None:
        append(_PACK_INT64(-1 if value is None else (value - EPOCH) // MILLISECOND))

    return write


def _null_of(shape: FieldShape, fixed_width: bytes) -> bytes | None:
    """The bytes of null; None if the version has no null."""
    if not shape.nullable:
        return None
    return _ONE_BYTE_VARINTS[0] if shape.flexible else fixed_width


def _append_null(append: Append, shape: FieldShape, null: bytes | None) -> None:
    if null is None:
        raise CodecError(f"{shape.name} is null, which this version cannot say")
    append(null)


def _string_writer(shape: FieldShape) -> Writer:
    null = _null_of(shape, b"\xff\xff")
    flexible = shape.flexible

    def write(append: Append, value: str | None) -> None:
        if value is None:
            _append_null(append, shape, null)
            return
        encoded = value.encode()
        size = len(encoded)
        if not flexible:
            append(_PACK_INT16(size) + encoded)
        elif size < 0x7F:
            append(_ONE_BYTE_VARINTS[size + 1] + encoded)
        elif size <= MAX_STRING_BYTES:
            append(unsigned_varint(size + 1) + encoded)
        else:
            raise CodecError(f"{shape.name} is too long: {size} bytes")

    return write


def _bytes_writer(shape: FieldShape) -> Writer:
    null = _null_of(shape, b"\xff\xff\xff\xff")
    flexible = shape.flexible

    def write(append: Append, value: bytes | None) -> None:
        if value is None:
            _append_null(append, shape, null)
            return
        append(unsigned_varint(len(value) + 1) if flexible else _PACK_INT32(len(value)))
        append(value)

    return write


_VALUE_WRITERS: dict[str, Callable[[FieldShape], Writer]] = {
    "string": _string_writer,
    "bytes": _bytes_writer,
    "records": _bytes_writer,
    "uuid": _uuid_writer,
    "timedelta_i32": _duration_writer,
    "timedelta_i64": _duration_writer,
    "datetime_i64": _datetime_writer,
}


def _array_writer(shape: FieldShape) -> Writer:
    null = _null_of(shape, b"\xff\xff\xff\xff")
    flexible = shape.flexible
    write_items = items_writer(shape)

    def write(append: Append, items: Sequence[Any] | None) -> None:
        if items is None:
            _append_null(append, shape, null)
            return
        append(unsigned_varint(len(items) + 1) if flexible else _PACK_INT32(len(items)))
        write_items(append, items)

    return write


def items_writer(shape: FieldShape) -> Writer:
    packed = _format(shape)
    if packed is not None:
        return lambda append, items: append(struct.pack(f">{len(items)}{packed}", *items))
    write_item = _entity_writer(shape.entity) if shape.entity is not None else _value_writer(shape)

    def write(append: Append, items: Sequence[Any]) -> None:
        for item in items:
            write_item(append, item)

    return write


#: What precedes a structure that may be null: if it is null, and if it is not (KIP-893; in a tagged field a
#: varint, as ConsumerGroupMemberMetadataValue.classicMemberMetadata).
_NULL_MARKERS = b"\xff", b"\x01"
_TAGGED_NULL_MARKERS = b"\x00", b"\x01"


def _nullable_entity_writer(write_entity: Writer, null: bytes, present: bytes) -> Writer:
    def write(append: Append, value: Any) -> None:
        if value is None:
            append(null)
            return
        append(present)
        write_entity(append, value)

    return write


def tags_writer(shapes: list[FieldShape]) -> Writer:
    """Writes tagged fields by tag, without those that have their default value (KIP-482)."""
    fields = [
        (shape.tag or 0, attrgetter(shape.name), shape.default, field_writer(shape)) for shape in shapes
    ]

    def write(append: Append, entity: Any) -> None:
        present: list[bytes] = []
        count = 0
        for tag, get, default, write_field in fields:
            value = get(entity)
            if value == default:
                continue
            chunks: list[bytes] = []
            write_field(chunks.append, value)
            encoded = b"".join(chunks)
            present += (unsigned_varint(tag), unsigned_varint(len(encoded)), encoded)
            count += 1
        append(unsigned_varint(count) + b"".join(present))

    return write
