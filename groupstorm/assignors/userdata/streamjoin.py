"""The user data of stream-join-sticky: partition numbers and the epoch of their assignment (KIP-315).

A subscription carries ``partitions []int32, epoch int32`` and an assignment ``epoch int32``, big endian.
KIP-315 names the fields and leaves the bytes open; these are ours. Bytes behind the fields are ignored, so
that fields can be added.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack_from
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import INT32, UserDataError, read_array_length, read_int32

#: The epoch of a member before its first assignment, whose epoch is one more.
NO_EPOCH = 0

_INT32_BYTES = 4


class JoinData(NamedTuple):
    """A member's partition numbers, the same for every joined topic, and the epoch of their assignment."""

    partitions: tuple[int, ...]
    epoch: int


def encode_join_data(partitions: Iterable[int], epoch: int) -> bytes:
    """A member's user data: its partition numbers ascending, each once, and their epoch."""
    numbers = sorted(set(partitions))
    return pack(f">i{len(numbers)}ii", len(numbers), *numbers, epoch)


def decode_join_data(data: bytes | None) -> JoinData:
    """A member's user data; missing data and garbage count as no partitions in no epoch."""
    if not data:
        return JoinData((), NO_EPOCH)
    try:
        count, at = read_array_length(data, 0)
        epoch, _ = read_int32(data, at + count * _INT32_BYTES)
    except UserDataError:
        return JoinData((), NO_EPOCH)
    return JoinData(unpack_from(f">{count}i", data, at), epoch)


def encode_epoch(epoch: int) -> bytes:
    return INT32.pack(epoch)


def decode_epoch(data: bytes | None) -> int | None:
    """The epoch in an assignment's user data; None if there is none."""
    try:
        return read_int32(data or b"", 0)[0]
    except UserDataError:
        return None
