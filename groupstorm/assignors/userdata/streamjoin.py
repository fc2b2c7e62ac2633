"""The user data of stream-join-sticky: partition numbers and the epoch of their assignment (KIP-315).

A subscription carries ``partitions []int32, epoch int32`` and an assignment ``epoch int32``, big
endian. KIP-315 names the fields and leaves the bytes open; these are ours. What follows the fields
is ignored, so that fields can be added.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack_from
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import INT32, UserDataError, read_array_length, read_int32

#: The epoch of who has never been assigned anything; the first assignment's is one more.
NO_EPOCH = 0

_INT32_BYTES = 4


class JoinData(NamedTuple):
    """Partition numbers that a member was assigned, of every joined topic, and the epoch of that."""

    partitions: tuple[int, ...]
    epoch: int


def encode_join_data(partitions: Iterable[int], epoch: int) -> bytes:
    """What a member sends: its partition numbers ascending, each once, and their epoch."""
    numbers = sorted(set(partitions))
    return pack(f">i{len(numbers)}ii", len(numbers), *numbers, epoch)


def decode_join_data(data: bytes | None) -> JoinData:
    """What a member sent; nothing, and garbage, is no partition in no epoch.

    As with Kafka's sticky assignors, a member whose user data cannot be read costs the group the
    stickiness of that member and not the whole assignment (StickyAssignor.memberData).
    """
    if not data:
        return JoinData((), NO_EPOCH)
    try:
        count, at = read_array_length(data, 0)
        epoch, _ = read_int32(data, at + count * _INT32_BYTES)
    except UserDataError:
        return JoinData((), NO_EPOCH)
    return JoinData(unpack_from(f">{count}i", data, at), epoch)


def encode_epoch(epoch: int) -> bytes:
    """What the leader tells every member with its assignment."""
    return INT32.pack(epoch)


def decode_epoch(data: bytes | None) -> int | None:
    """The epoch in an assignment's user data; None where there is none."""
    try:
        return read_int32(data or b"", 0)[0]
    except UserDataError:
        return None
