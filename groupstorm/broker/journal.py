"""The format of the journal of `serve --data`: changes to bytes, and back.

One frame holds all changes of one step of the broker: a kill leaves the whole step or nothing of it. A frame
is four bytes of length, four of crc32c, a line of JSON, and the byte strings to which the line points. Bytes
at the end that are no whole frame were being written when the process ended, or when the machine did.
"""

from __future__ import annotations

import json
import struct
import typing
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from mmap import mmap
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import crc32c

from groupstorm.broker.changes import BatchAppended, BatchRewritten, Change

#: A journal in memory or a file of it.
Bytes: TypeAlias = bytes | mmap

_HEAD = struct.Struct(">II")
_VERSION = 1
_PAYLOAD_BEGINS = f"[{_VERSION},[".encode()
#: The place of a batch's bytes among its fields.
_DATA = BatchAppended._fields.index("data")


class JournalError(ValueError):
    """Bytes that are not a journal."""


class Frame(NamedTuple):
    """``batches``: those among the changes, each with the position of its bytes in the data."""

    data: bytes
    batches: list[tuple[BatchAppended | BatchRewritten, int]]


def frame(changes: Iterable[Change]) -> Frame:
    """One frame with these changes."""
    blobs: list[bytes] = []
    rows: list[Any] = []
    of_batches: list[tuple[BatchAppended | BatchRewritten, int]] = []
    for change in changes:
        if isinstance(change, BatchAppended | BatchRewritten):
            of_batches.append((change, len(blobs)))
        rows.append([type(change).__name__, *_plain(tuple(change)[: len(_fields(type(change)))], blobs)])
    lengths = [len(blob) for blob in blobs]
    line = json.dumps([_VERSION, lengths, rows], separators=(",", ":")).encode()
    payload = b"".join((line, b"\n", *blobs))
    starts = [*accumulate(lengths, initial=_HEAD.size + len(line) + 1)]
    return Frame(
        _HEAD.pack(len(payload), crc32c.crc32c(payload)) + payload,
        [(change, starts[index]) for change, index in of_batches],
    )


def encode(changes: Iterable[Change]) -> bytes:
    """The data of one frame."""
    return frame(changes).data


class JournalReader:
    """Reads the whole frames of a journal; the tail behind the last one is no frame."""

    def __init__(self, data: Bytes, start: int = 0, in_file: bool = False) -> None:
        """``start``: the position of the first frame. ``in_file``: batches have their positions."""
        self._data = data
        self._in_file = in_file
        #: Behind the last whole frame that was read.
        self.end = start

    def changes(self) -> Iterator[Change]:
        """The changes of all whole frames.

        Raises JournalError for a whole frame that cannot be understood, and for damage in front of a whole
        frame.
        """
        while (end := frame_end(self._data, self.end)) is not None:
            try:
                changes = [*_read(self._data, self.end + _HEAD.size, end, self._in_file)]
            except (ValueError, TypeError, KeyError, IndexError) as problem:
                raise JournalError(f"the frame at byte {self.end} is not understood: {problem}") from problem
            self.end = end
            yield from changes
        behind = _next_frame(self._data, self.end)
        if behind is not None:
            raise damaged(self.end, behind)


def check_frames(data: Bytes, end: int, is_ended: Callable[[], bool]) -> None:
    """Raises JournalError if the bytes in front of ``end`` are not whole frames. Returns early if
    ``is_ended()``."""
    at = 0
    while at < end and not is_ended():
        behind = frame_end(data, at)
        if behind is None:
            raise damaged(at, end)
        at = behind


def damaged(at: int, behind: int) -> JournalError:
    return JournalError(f"the frame at byte {at} is damaged, and whole ones follow from byte {behind} on")


def decode(data: bytes) -> tuple[list[Change], int]:
    """The changes of all whole frames, and the position behind the last one. Raises JournalError."""
    reader = JournalReader(data)
    return [*reader.changes()], reader.end


def frame_end(data: Bytes, at: int) -> int | None:
    """The position behind the frame at this position; None if there is no whole frame."""
    if at + _HEAD.size > len(data):
        return None
    size, checksum = _HEAD.unpack_from(data, at)
    start = at + _HEAD.size
    if not 0 < size <= len(data) - start:
        return None
    end = start + size
    with memoryview(data) as everything, everything[start:end] as payload:
        return end if crc32c.crc32c(payload) == checksum else None


def _next_frame(data: Bytes, at: int) -> int | None:
    """The position of the first whole frame behind this position. A tail that was cut off, or garbage, has
    none: there nothing is lost that a client was told."""
    found = data.find(_PAYLOAD_BEGINS, at + _HEAD.size + 1)
    while found >= 0:
        if frame_end(data, found - _HEAD.size) is not None:
            return found - _HEAD.size
        found = data.find(_PAYLOAD_BEGINS, found + 1)
    return None


def _plain(value: Any, blobs: list[bytes]) -> Any:
    """The value in JSON's types; a byte string goes into ``blobs`` and becomes its index."""
    if isinstance(value, bytes):
        blobs.append(value)
        return len(blobs) - 1
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, tuple | list):
        return [_plain(one, blobs) for one in value]
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return [[_plain(key, blobs), _plain(one, blobs)] for key, one in value.items()]
    return value


def _read(data: Bytes, at: int, end: int, in_file: bool) -> Iterator[Change]:
    """The changes of the payload from ``at`` to ``end``; records, which are most of it, are copied once."""
    line_end = data.find(b"\n", at, end)
    if line_end < 0:
        raise ValueError("it has no line")
    version, lengths, rows = json.loads(data[at:line_end])
    if version != _VERSION:
        raise ValueError(f"version {version}, expected {_VERSION}")
    blobs, starts, at = [], [], line_end + 1
    if any(length < 0 for length in lengths) or at + sum(lengths) != end:
        raise ValueError(f"{end - at} bytes of byte strings, announced are {sum(lengths)}")
    for length in lengths:
        blobs.append(data[at : at + length])
        starts.append(at)
        at += length
    for name, *values in rows:
        change = _READERS[name](values, blobs)
        if in_file and isinstance(change, BatchAppended | BatchRewritten):
            change = change._replace(position=starts[values[_DATA]])
        yield change


_Reader = Callable[[Any, list[bytes]], Any]


def _reader(kind: Any) -> _Reader:
    """Reads what `_plain` makes of a value of this type."""
    arguments = [one for one in get_args(kind) if one is not type(None)]
    read_collection = _COLLECTIONS.get(get_origin(kind))
    if read_collection is not None:
        return read_collection(arguments)
    if arguments and get_origin(kind) is not dict:
        read = _reader(arguments[0])
        return lambda value, blobs: None if value is None else read(value, blobs)
    return _plain_reader(kind)


def _plain_reader(kind: Any) -> _Reader:
    if hasattr(kind, "_fields"):
        return _named_tuple_reader(kind)
    if kind is bytes:
        return lambda value, blobs: blobs[value]
    if kind is uuid.UUID:
        return lambda value, _: uuid.UUID(hex=value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, _: kind(value)
    plain = dict if get_origin(kind) is dict else kind
    return lambda value, _: _checked(value, plain)


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _mapping_reader(arguments: list[Any]) -> _Reader:
    """Pairs, as `_plain` writes a mapping whose keys are no texts; nothing at all is an empty object."""
    read_key, read_value = map(_reader, arguments)
    return lambda pairs, blobs: {read_key(one, blobs): read_value(other, blobs) for one, other in pairs or ()}


def _tuple_reader(arguments: list[Any]) -> _Reader:
    if arguments[-1] is ...:
        read = _reader(arguments[0])
        return lambda value, blobs: tuple(read(one, blobs) for one in value)
    readers = [_reader(one) for one in arguments]
    return lambda value, blobs: tuple(read(one, blobs) for read, one in zip(readers, value, strict=True))


_COLLECTIONS: dict[Any, Callable[[list[Any]], _Reader]] = {
    tuple: _tuple_reader,
    Sequence: lambda arguments: _tuple_reader([arguments[0], ...]),
    Mapping: _mapping_reader,
}


def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of a change, or of a value in it, that the journal holds."""
    fields: tuple[str, ...] = kind._fields
    return fields[:-1] if kind in (BatchAppended, BatchRewritten) else fields


def _named_tuple_reader(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    readers = [_reader(hints[name]) for name in _fields(kind)]

    def read(values: Any, blobs: list[bytes]) -> Any:
        return kind(*(read_one(one, blobs) for read_one, one in zip(readers, values, strict=True)))

    return read


_READERS: dict[str, _Reader] = {kind.__name__: _named_tuple_reader(kind) for kind in typing.get_args(Change)}
