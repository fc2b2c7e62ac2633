"""The user data of the sticky assignors: Kafka's, and stream-join-sticky (KIP-315).

``sticky`` sends the partitions of the last assignment, because an eager member owns none when it joins:
version 0 is ``[]{topic, []int32}``, version 1 (KIP-341) adds the int32 generation. The bytes do not state
their version: Kafka tries version 1, then version 0, then gives up (StickyAssignor). ``cooperative-sticky``
sends its int32 generation, for subscriptions older than version 2.

A member of ``stream-join-sticky`` sends partition numbers, the same for every joined topic, and the epoch of
their assignment: ``partitions []int32, epoch int32``. Its assignment is an ``epoch int32``. KIP-315 names
the fields and leaves the bytes open; these are ours. Bytes behind the fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack_from
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import (
    INT32,
    TopicPartition,
    UserDataError,
    read_array_length,
    read_int32,
    read_topic_partitions,
    topic_partitions,
    ungrouped,
)
from groupstorm.javahash import JavaHashMap

#: AbstractStickyAssignor.DEFAULT_GENERATION: the generation of garbage, and of members without one.
NO_GENERATION = -1
#: The epoch of a member of stream-join-sticky before its first assignment, whose epoch is one more.
NO_EPOCH = 0


class MemberData(NamedTuple):
    """A member's owned partitions and their generation; None: the member did not say."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


def encode_sticky(partitions: Iterable[tuple[str, int]], generation: int | None) -> bytes:
    """StickyAssignor's user data, version 0 without a generation.

    Topics stand in the order of Java's hash table (CollectionUtils.groupPartitionsByTopic).
    """
    groups: JavaHashMap[str, list[int]] = JavaHashMap()
    for topic, partition in partitions:
        groups.compute_if_absent(topic, list).append(partition)
    data = topic_partitions(groups.items())
    return data if generation is None else data + INT32.pack(generation)


def decode_sticky(data: bytes | None) -> MemberData:
    """StickyAssignor's reading: garbage counts as no partitions in generation -1, never an error."""
    if not data:
        return MemberData((), None)
    try:
        groups, end = read_topic_partitions(data, 0)
    except UserDataError:
        return MemberData((), NO_GENERATION)
    try:
        return MemberData(ungrouped(groups), read_int32(data, end)[0])
    except UserDataError:
        return MemberData(ungrouped(groups), None)


def encode_generation(generation: int) -> bytes:
    """CooperativeStickyAssignor's user data: the generation of its last assignment, -1 before the first."""
    return INT32.pack(generation)


def decode_generation(data: bytes | None) -> int | None:
    """The generation in the user data; None without user data, -1 if it has fewer than four bytes."""
    if data is None:
        return None
    try:
        return read_int32(data, 0)[0]
    except UserDataError:
        return NO_GENERATION


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
        epoch, _ = read_int32(data, at + count * INT32.size)
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
