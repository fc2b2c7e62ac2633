"""The formats of the journal of `serve --data` and of its checkpoints: changes to bytes, and back.

One frame holds all changes of one step of the broker: a kill leaves the whole step or nothing of it. A frame
is four bytes of length, four of crc32c, a line of JSON, and the byte strings to which the line points. The
line begins with the version, the frame's number and the checksum of the frame in front of it, so that a frame
that is missing or elsewhere is noticed; version 1 had neither. Bytes at the end that are no whole frame were
being written when the process ended, or when the machine did.
"""

from __future__ import annotations

import json
import re
import struct
import typing
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import accumulate, chain
from mmap import mmap
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import crc32c

from groupstorm.broker.changes import BatchAppended, BatchRewritten, Change, CheckpointTaken

#: A journal in memory or a file of it.
Bytes: TypeAlias = bytes | mmap

_HEAD = struct.Struct(">II")
VERSION = 2
#: The version whose frames have no numbers.
_UNNUMBERED = 1
#: The beginning of a line: version, number and the checksum in front.
_PLACE = re.compile(rb"\[(\d{1,9}),(?:(\d{1,18}),(\d{1,10}),)?\[")
_MAY_BEGIN = re.compile(rb"(?=\[1,\[|\[2,\d)")
#: The most of a snapshot that goes into one frame.
_CHANGES_PER_FRAME = 1000
_FRAME_BYTES = 8 * 1024 * 1024
#: The place of a batch's bytes among its fields.
_DATA = BatchAppended._fields.index("data")


class JournalError(ValueError):
    """Bytes that are not a journal."""


class Link(NamedTuple):
    """The place between two frames: how many are in front of it, and the checksum of the last of them."""

    number: int = 0
    checksum: int = 0


#: In front of all frames.
BEGINNING = Link()


class Frame(NamedTuple):
    """``batches``: those among the changes, each with the position of its bytes in the data. ``behind``: the
    place of the next frame."""

    data: bytes
    batches: list[tuple[BatchAppended | BatchRewritten, int]]
    behind: Link


def frame(changes: Iterable[Change], place: Link) -> Frame:
    """One frame with these changes."""
    blobs: list[bytes] = []
    rows: list[Any] = []
    of_batches: list[tuple[BatchAppended | BatchRewritten, int]] = []
    for change in changes:
        if isinstance(change, BatchAppended | BatchRewritten):
            of_batches.append((change, len(blobs)))
        kind: Any = type(change)
        values = tuple(change)[: len(_fields(kind))]
        rows.append([kind.__name__, *(_plain(values, blobs) if _is_walked(kind) else values)])
    # the encoder goes through most changes by itself, and asks for what JSON does not know
    encoded = json.dumps(rows, separators=(",", ":"), default=lambda value: _plain(value, blobs))
    lengths = [len(blob) for blob in blobs]
    head = json.dumps([VERSION, *place, lengths], separators=(",", ":"))
    line = f"{head[:-1]},{encoded}]\n".encode()
    parts, checksum = [line, *blobs], 0
    for part in parts:
        checksum = crc32c.crc32c(part, checksum)
    size = len(line) + sum(lengths)
    starts = [*accumulate(lengths, initial=_HEAD.size + len(line))]
    return Frame(
        b"".join((_HEAD.pack(size, checksum), *parts)),
        [(change, starts[index]) for change, index in of_batches],
        Link(place.number + 1, checksum),
    )


def frames(
    changes: Iterable[Change],
    place: Link = BEGINNING,
    most_bytes: int = _FRAME_BYTES,
    most_changes: int = _CHANGES_PER_FRAME,
) -> Iterator[Frame]:
    """Frames with all these changes, at least one in each."""
    pending: list[Change] = []
    size = 0
    for change in changes:
        pending.append(change)
        size += len(change.data) if isinstance(change, BatchAppended | BatchRewritten) else 0
        if len(pending) >= most_changes or size >= most_bytes:
            yield (one := frame(pending, place))
            pending, size, place = [], 0, one.behind
    if pending:
        yield frame(pending, place)


def encode(changes: Iterable[Change], place: Link = BEGINNING) -> bytes:
    """The data of one frame."""
    return frame(changes, place).data


class JournalReader:
    """Reads the whole frames of a journal; the tail behind the last one is no frame."""

    def __init__(self, data: Bytes, start: int = 0, place: Link = BEGINNING, in_file: bool = False) -> None:
        """``start``, ``place``: where the first frame is. ``in_file``: batches have their positions."""
        self._data = data
        self._in_file = in_file
        #: Behind the last whole frame that was read.
        self.end = start
        self.place = place
        #: The version of the frames; None if there is none.
        self.version: int | None = None

    def changes(self) -> Iterator[Change]:
        """The changes of all whole frames.

        Raises JournalError for a whole frame that cannot be understood or is not the next one, and for damage
        in front of a whole frame.
        """
        while (end := frame_end(self._data, self.end)) is not None:
            place = self._pass(end)
            try:
                changes = [*_read(self._data, self.end + _HEAD.size, end, self._in_file)]
            except (ValueError, TypeError, KeyError, IndexError, RecursionError) as problem:
                raise JournalError(f"the frame at byte {self.end} is not understood: {problem}") from problem
            self.end, self.place = end, place
            yield from changes
        behind = _next_frame(self._data, self.end)
        if behind is not None:
            raise JournalError(
                f"the frame at byte {self.end} is damaged, and whole ones follow from byte {behind} on"
            )

    def check(self, end: int, place: Link, is_ended: Callable[[], bool]) -> None:
        """Raises JournalError if the bytes in front of ``end`` are not the frames in front of ``place``.
        Returns early if ``is_ended()``."""
        while self.end < end and not is_ended():
            behind = frame_end(self._data, self.end)
            if behind is None or behind > end:
                raise JournalError(
                    f"the frame at byte {self.end} is damaged, and whole ones follow from byte {end} on"
                )
            self.end, self.place = behind, self._pass(behind)
        if not is_ended() and self.place != place:
            raise JournalError(f"the frame in front of byte {end} is not the one that was written there")

    def _pass(self, end: int) -> Link:
        """The place behind the next frame, which ends there. Raises JournalError if it is another frame."""
        at, place = self.end, self.place
        found = _PLACE.match(self._data, at + _HEAD.size, end)
        if found is None or int(found[1]) != (_UNNUMBERED if found[2] is None else VERSION):
            raise JournalError(f"the frame at byte {at} is not understood: it has no version, or another one")
        version = int(found[1])
        if self.version not in (None, version):
            raise JournalError(f"the frame at byte {at} has version {version}, those in front {self.version}")
        if version == VERSION:
            written = Link(int(found[2]), int(found[3]))
            if written.number != place.number:
                raise JournalError(
                    f"the frame at byte {at} is number {written.number}, expected {place.number}: "
                    "frames are missing, or not in their order"
                )
            if written != place:
                raise JournalError(f"the frame at byte {at} does not follow the one in front of it")
        self.version = version
        return Link(place.number + 1, _HEAD.unpack_from(self._data, at)[1])


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
    for found in _MAY_BEGIN.finditer(data, at + _HEAD.size + 1):
        if frame_end(data, found.start() - _HEAD.size) is not None:
            return found.start() - _HEAD.size
    return None


@cache
def _is_walked(kind: Any) -> bool:
    """Whether values of this type may have mappings in them whose keys are no texts, or are batches."""
    if get_origin(kind) is Mapping or kind in (BatchAppended, BatchRewritten):
        return True
    inner = get_type_hints(kind).values() if hasattr(kind, "_fields") else get_args(kind)
    return any(map(_is_walked, inner))


def _plain(value: Any, blobs: list[bytes]) -> Any:
    """The value in JSON's types; a byte string goes into ``blobs`` and becomes its index."""
    if isinstance(value, bytes):
        blobs.append(value)
        return len(blobs) - 1
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, tuple | list):
        return [_plain(one, blobs) for one in value]
    if isinstance(value, frozenset):
        return [_plain(one, blobs) for one in sorted(value)]
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return [[_plain(key, blobs), _plain(one, blobs)] for key, one in value.items()]
    return value


def _read(data: Bytes, at: int, end: int, in_file: bool) -> Iterator[Change]:
    """The changes of the payload from ``at`` to ``end``; records, which are most of it, are copied once."""
    line_end = data.find(b"\n", at, end)
    if line_end < 0:
        raise ValueError("it has no line")
    *_, lengths, rows = json.loads(data[at:line_end])
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


def _set_reader(kind: Any) -> _Reader:
    read = _reader(kind)
    return lambda values, blobs: frozenset(read(one, blobs) for one in values)


_COLLECTIONS: dict[Any, Callable[[list[Any]], _Reader]] = {
    tuple: _tuple_reader,
    Sequence: lambda arguments: _tuple_reader([arguments[0], ...]),
    Mapping: _mapping_reader,
    frozenset: lambda arguments: _set_reader(arguments[0]),
}


def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of a change, or of a value in it, that the journal holds."""
    fields: tuple[str, ...] = kind._fields
    return fields[:-1] if kind in (BatchAppended, BatchRewritten) else fields


def _named_tuple_reader(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    readers = [_reader(hints[name]) for name in _fields(kind)]

    def read(values: Any, blobs: list[bytes]) -> Any:
        if len(values) > len(readers):
            raise ValueError(f"{len(values)} values, expected at most {len(readers)}")
        # fields with a default may be younger than the journal
        return kind(*(read_one(one, blobs) for read_one, one in zip(readers, values, strict=False)))

    return read


_READERS: dict[str, _Reader] = {kind.__name__: _named_tuple_reader(kind) for kind in typing.get_args(Change)}


_MAGIC = b"groupstorm checkpoint 2\n"
#: The mark of a checkpoint whose journal has frames without numbers.
_OLD_MAGIC = b"groupstorm checkpoint 1\n"
#: Length and checksum of the bytes behind them.
_CHECKPOINT_HEAD = struct.Struct(">QI")
#: By so many bytes in front of its position a checkpoint recognises its journal.
RECOGNISED_BYTES = 4096


class Checkpoint(NamedTuple):
    """The state at one position of the journal, and where its batches are. ``changes``: to the state; None if
    the whole journal has to be read for it (version 1).

    A restart reads the checkpoint and the journal behind that position. The journal reaches the disk before
    its checkpoint does: one that is shorter, or ends in other bytes there, has lost what clients were told.
    """

    taken: CheckpointTaken
    changes: Sequence[Change] | None

    def check(self, journal: Bytes) -> None:
        """Raises JournalError if the journal has lost what was in it."""
        end = self.taken.journal_bytes
        if len(journal) < end:
            raise JournalError(
                f"it has {len(journal)} bytes, and its checkpoint tells of {end}: "
                "records or commits that clients were told of are lost"
            )
        if crc32c.crc32c(journal[max(0, end - RECOGNISED_BYTES) : end]) != self.taken.checksum:
            raise JournalError("it is not the one that its checkpoint was written from")


def write_checkpoint(changes: Iterable[Change], taken: CheckpointTaken) -> bytes:
    """``changes``: to the state that comes from the part of the journal in ``taken``."""
    payload = b"".join(one.data for one in frames(chain([taken], changes)))
    return _MAGIC + _CHECKPOINT_HEAD.pack(len(payload), crc32c.crc32c(payload)) + payload


def read_checkpoint(data: bytes) -> Checkpoint | None:
    """None if it is damaged or of a version that is not known."""
    magic = data[: len(_MAGIC)]
    payload = data[len(_MAGIC) + _CHECKPOINT_HEAD.size :]
    if magic not in (_MAGIC, _OLD_MAGIC) or len(data) < len(_MAGIC) + _CHECKPOINT_HEAD.size:
        return None
    if _CHECKPOINT_HEAD.unpack_from(data, len(_MAGIC)) != (len(payload), crc32c.crc32c(payload)):
        return None
    try:
        changes, _ = decode(payload)
    except JournalError:
        return None  # another version's changes
    if not changes or not isinstance(taken := changes[0], CheckpointTaken):
        return None
    return Checkpoint(taken, changes if magic == _MAGIC else None)
