"""Changes of a valid request's bytes: bits, lengths, counts, varints, tags, ends, splices."""

from __future__ import annotations

import random
from collections.abc import Callable

_INT16 = (b"\x7f\xff", b"\x80\x00", b"\xff\xff", b"\x00\x00")
_INT32 = (
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x00\x01\x00\x00",
)
_INT64 = (b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7), b"\xff" * 8)
_VARINTS = (b"\x00", b"\x01", b"\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x0f", b"\xff" * 12, b"\x80\x01")
_TAGS = (
    b"\x01\x00\x01\x00",
    b"\x02\x00\x01\x00\x00\x01\x00",
    b"\x01\x63\x05hello",
    b"\x01\x00\xff\xff\xff\xff\x0f",
)
_HEADER_BYTES = 8


def mutated(frame: bytes, other: bytes, draw: random.Random) -> bytes:
    """``frame`` after one to three changes; ``other`` is a second request to take bytes from."""
    data = bytearray(frame)
    for _ in range(draw.choice((1, 1, 1, 1, 2))):
        if not data:
            break
        draw.choice(_CHANGES)(data, other, draw)
    return bytes(data)


def _place(data: bytearray, draw: random.Random) -> int:
    """A position, more often behind the header than in it."""
    first = _HEADER_BYTES if len(data) > _HEADER_BYTES and draw.random() < 0.9 else 0
    return draw.randrange(first, len(data))


def _flip_bit(data: bytearray, _other: bytes, draw: random.Random) -> None:
    data[_place(data, draw)] ^= 1 << draw.randrange(8)


def _set_byte(data: bytearray, _other: bytes, draw: random.Random) -> None:
    data[_place(data, draw)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))


def _overwrite_number(data: bytearray, _other: bytes, draw: random.Random) -> None:
    """A length, a count or any other number becomes an extreme one."""
    number = draw.choice((*_INT16, *_INT32, *_INT64))
    at = _place(data, draw)
    data[at : at + len(number)] = number


def _insert(data: bytearray, _other: bytes, draw: random.Random) -> None:
    at = _place(data, draw)
    data[at:at] = draw.choice((*_VARINTS, *_TAGS, *_INT32))


def _overwrite_varint(data: bytearray, _other: bytes, draw: random.Random) -> None:
    at = _place(data, draw)
    data[at : at + 1] = draw.choice((*_VARINTS, *_TAGS))


def _cut_end(data: bytearray, _other: bytes, draw: random.Random) -> None:
    del data[_place(data, draw) :]


def _cut_within(data: bytearray, _other: bytes, draw: random.Random) -> None:
    at = _place(data, draw)
    del data[at : at + draw.choice((1, 2, 4, 8, 30))]


def _repeat(data: bytearray, _other: bytes, draw: random.Random) -> None:
    at = _place(data, draw)
    piece = bytes(data[at : at + draw.randrange(1, 60)])
    data[at:at] = piece * draw.choice((1, 2, 40))


def _splice(data: bytearray, other: bytes, draw: random.Random) -> None:
    """The beginning of this request and the end of the other one."""
    data[_place(data, draw) :] = other[draw.randrange(len(other)) :]


def _retarget(data: bytearray, _other: bytes, draw: random.Random) -> None:
    """The body of one version under the number of another API or version."""
    data[draw.choice((1, 3)) % len(data)] = draw.randrange(80)


_CHANGES: tuple[Callable[[bytearray, bytes, random.Random], None], ...] = (
    _flip_bit,
    _set_byte,
    _overwrite_number,
    _overwrite_number,
    _insert,
    _overwrite_varint,
    _cut_end,
    _cut_within,
    _repeat,
    _splice,
    _retarget,
)
