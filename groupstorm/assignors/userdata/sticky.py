"""The user data of Kafka's sticky assignors.

``sticky`` sends the partitions of the last assignment, because an eager member owns none when it joins:
version 0 is ``[]{topic, []int32}``, version 1 (KIP-341) adds the int32 generation. The bytes do not state
their version: Kafka tries version 1, then version 0, then gives up (StickyAssignor). ``cooperative-sticky``
sends its int32 generation, for subscriptions older than version 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import (
    INT32,
    TopicPartition,
    UserDataError,
    read_int32,
    read_topic_partitions,
    topic_partitions,
)
from groupstorm.javahash import JavaHashMap

#: AbstractStickyAssignor.DEFAULT_GENERATION: the generation of garbage, and of members without one.
NO_GENERATION = -1


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


def read_sticky(data: bytes) -> tuple[list[tuple[str, tuple[int, ...]]], int, int | None]:
    """Topic partitions, their end, and the generation, None in version 0; -1 and no partitions of garbage."""
    try:
        groups, end = read_topic_partitions(data, 0)
    except UserDataError:
        return [], 0, NO_GENERATION
    try:
        return groups, end, read_int32(data, end)[0]
    except UserDataError:
        return groups, end, None


def decode_sticky(data: bytes | None) -> MemberData:
    """StickyAssignor's reading: garbage counts as no partitions in generation -1, never an error."""
    if not data:
        return MemberData((), None)
    groups, _, generation = read_sticky(data)
    owned = tuple([TopicPartition(topic, number) for topic, numbers in groups for number in numbers])
    return MemberData(owned, generation)


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
