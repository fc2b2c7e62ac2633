"""Long messages to and from bytes, in turns: the caller may do something else in between.

`decode_in_turns` and `encode_in_turns` give what `decoder` and `encoder` give, and raise the same. Each is a
generator that yields how many items of arrays it has read or written since.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from groupstorm.protocol.codec.decode import (
    Reader,
    field_reader,
    items_reader,
    reader_with_length,
    smallest_element,
    tags_reader,
)
from groupstorm.protocol.codec.encode import (
    Append,
    Writer,
    field_writer,
    items_writer,
    tags_writer,
    unsigned_varint,
)
from groupstorm.protocol.codec.shape import CodecError, FieldShape, KioType, shapes_of

#: Yields numbers of items, returns a value and the position behind it.
_Reading: TypeAlias = Generator[int, None, tuple[Any, int]]

#: So many items of an array are read or written in one go, unless they hold arrays themselves.
_AT_ONCE = 500


def decode_in_turns(message_type: KioType, data: bytes, at: int) -> _Reading:
    """The message and the position behind it. Raises CodecError."""
    try:
        return (yield from _read(message_type, data, at))
    except (struct.error, IndexError) as problem:
        raise CodecError(f"{message_type.__name__}: the bytes end too early") from problem
    except (OverflowError, ValueError) as problem:
        raise CodecError(f"{message_type.__name__}: {problem}") from problem


def encode_in_turns(message: Any) -> Generator[int, None, list[bytes]]:
    """The chunks of the message's bytes. Raises CodecError."""
    written: list[bytes] = []
    chunks: list[bytes] = []
    try:
        for count in _write(type(message), message, chunks.append):
            if len(chunks) > _AT_ONCE:
                written.append(b"".join(chunks))
                chunks.clear()
            yield count
    except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as problem:
        raise CodecError(f"{type(message).__name__} cannot be written: {problem}") from problem
    return [*written, *chunks]


def release_in_turns(message: Any) -> Generator[int, None, None]:
    """Take the items out of a message that nobody uses any more: Python frees what is left in one go."""
    kind: KioType = type(message)
    for shape, *_, has_structures in _fields(kind)[0]:
        items = list(getattr(message, shape.name) or ()) if shape.array else []
        object.__setattr__(message, shape.name, ())
        while items:
            if has_structures:
                yield from release_in_turns(items.pop())
                yield 1
            else:
                del items[-_AT_ONCE:]
                yield _AT_ONCE // 4


class _Field(NamedTuple):
    """A field that is not tagged. ``has_arrays``: its items have; ``has_structures``: these arrays do."""

    shape: FieldShape
    read: Reader
    write: Writer
    read_count: Reader
    has_arrays: bool
    has_structures: bool


@cache
def _fields(entity: KioType) -> tuple[list[_Field], dict[int, FieldShape]]:
    """The fields of a structure, and apart from them the tagged ones."""
    shapes = shapes_of(entity)
    fields = [
        _Field(
            shape,
            field_reader(shape),
            field_writer(shape),
            reader_with_length(shape, lambda _data, at, count: (count, at)) if shape.array else _no_items,
            shape.array and any(one.array for one in _inner(shape)),
            shape.array and any(one.array and one.entity is not None for one in _inner(shape)),
        )
        for shape in shapes
        if shape.tag is None
    ]
    return fields, {shape.tag: shape for shape in shapes if shape.tag is not None}


def _inner(shape: FieldShape) -> list[FieldShape]:
    return [] if shape.entity is None else shapes_of(shape.entity)


def _no_items(_data: bytes, at: int) -> tuple[int, int]:
    return 0, at


_items_reader = cache(items_reader)
_items_writer = cache(items_writer)


def _read(entity: KioType, data: bytes, at: int) -> _Reading:
    message = object.__new__(entity)
    fields, tagged = _fields(entity)
    for shape, read, _, read_count, has_arrays, _ in fields:
        count, first = read_count(data, at)
        if count <= 0 or count * smallest_element(shape) > len(data) - first:
            value, at = read(data, at)  # no array, an empty one, null, or an error
        else:
            value, at = yield from _read_items(shape, data, first, count, has_arrays)
        object.__setattr__(message, shape.name, value)
    if entity.__flexible__:
        for shape in tagged.values():
            object.__setattr__(message, shape.name, shape.default)
        at = _tags_reader(entity)(data, at, message)
    return message, at


def _read_items(shape: FieldShape, data: bytes, at: int, count: int, has_arrays: bool) -> _Reading:
    items: list[Any] = []
    while len(items) < count:
        if has_arrays:
            item, at = yield from _read(shape.entity, data, at)
            more: tuple[Any, ...] = (item,)
        else:
            more, at = _items_reader(shape)(data, at, min(_AT_ONCE, count - len(items)))
        items += more
        yield len(more)
    return tuple(items), at


@cache
def _tags_reader(entity: KioType) -> Any:
    return tags_reader(entity, _fields(entity)[1])


@cache
def _tags_writer(entity: KioType) -> Writer:
    tagged = _fields(entity)[1]
    return tags_writer([tagged[tag] for tag in sorted(tagged)])


def _write(entity: KioType, message: Any, append: Append) -> Generator[int, None, None]:
    for shape, _, write, _, _, has_structures in _fields(entity)[0]:
        value = getattr(message, shape.name)
        if not shape.array or not value:
            write(append, value)
            continue
        append(unsigned_varint(len(value) + 1) if shape.flexible else struct.pack(">i", len(value)))
        if has_structures:
            for item in value:
                yield from _write(shape.entity, item, append)
                yield 1
            continue
        for first in range(0, len(value), _AT_ONCE):
            some = value[first : first + _AT_ONCE]
            _items_writer(shape)(append, some)
            yield len(some)
    if entity.__flexible__:
        _tags_writer(entity)(append, message)
