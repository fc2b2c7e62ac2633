"""ConsumerProtocol: what consumers put into JoinGroup (subscription) and SyncGroup (assignment).

Versions 0 to 3, not flexible, after an int16 version (Kafka's ConsumerProtocolSubscription.json
and ConsumerProtocolAssignment.json):

===================  ===========================  ========  ==============================
subscription field   type                         versions
===================  ===========================  ========  ==============================
topics               []string                     0+        sorted when written
user data            nullable bytes               0+
owned partitions     []{topic, []int32}           1+        KIP-429; sorted when written
generation           int32, -1 for none           2+        KIP-792
rack                 nullable string              3+        KIP-881
===================  ===========================  ========  ==============================

An assignment is ``[]{topic, []int32}`` and nullable user data in every version. A version above
3 is read as 3 and what follows is ignored. Written lists are sorted because the coordinator
compares subscriptions as bytes: an unstable order would start a rebalance at every join
(KAFKA-12898).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import (
    INT16,
    INT32,
    SchemaError,
    TopicPartition,
    java_key,
    java_sorted,
    nullable_bytes,
    read_array_length,
    read_int16,
    read_int32,
    read_nullable_bytes,
    read_nullable_string,
    read_strings,
    read_topic_partitions,
    string,
    topic_partitions,
    ungrouped,
)

HIGHEST_VERSION = 3
OWNED_SINCE = 1
_GENERATION_SINCE = 2
_RACK_SINCE = 3


class Subscription(NamedTuple):
    """A member's topics and its owned partitions. ``generation`` -1: none known.

    ``instance``, its group.instance.id, does not travel in these bytes: the coordinator adds it.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    instance: str | None = None


class Assignment(NamedTuple):
    """A member's partitions, in the assignor's order."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def _known_version(version: int) -> int:
    if version < 0:
        raise SchemaError(f"version {version} of ConsumerProtocol: there is none below 0")
    return min(version, HIGHEST_VERSION)


def read_topics(data: bytes) -> tuple[int, tuple[str, ...], int]:
    """The front of a subscription: its version (at most 3), its topics, and where the rest begins."""
    version, at = read_int16(data, 0)
    version = _known_version(version)
    count, at = read_array_length(data, at)
    topics, at = read_strings(data, at, count)
    return version, topics, at


def read_generation_and_rack(data: bytes, at: int, version: int) -> tuple[int, str | None]:
    """The end of a subscription; -1 and None if the version has no such fields."""
    generation, rack = -1, None
    if version >= _GENERATION_SINCE:
        generation, at = read_int32(data, at)
    if version >= _RACK_SINCE:
        rack, at = read_nullable_string(data, at)
    return generation, rack


def smallest_tail(version: int) -> int:
    """The bytes behind the owned partitions, if there is no rack."""
    return (4 if version >= _GENERATION_SINCE else 0) + (2 if version >= _RACK_SINCE else 0)


def decode_subscription(data: bytes) -> Subscription:
    """ConsumerProtocol.deserializeSubscription; an empty rack is none. `UserDataError` on garbage."""
    version, topics, at = read_topics(data)
    user_data, at = read_nullable_bytes(data, at)
    owned: tuple[TopicPartition, ...] = ()
    if version >= OWNED_SINCE:
        groups, at = read_topic_partitions(data, at)
        owned = ungrouped(groups)
    generation, rack = read_generation_and_rack(data, at, version)
    return Subscription(topics, user_data, owned, generation, rack or None)


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """ConsumerProtocol.serializeSubscription: lists sorted; fields that ``version`` lacks are dropped."""
    topics, user_data, owned, generation, rack, _ = subscription
    return write_subscription(version, tuple(topics), user_data, tuple(owned), generation, rack)


def write_subscription(
    version: int,
    topics: tuple[str, ...],
    user_data: bytes | None,
    owned: tuple[TopicPartition, ...],
    generation: int,
    rack: str | None,
) -> bytes:
    """`encode_subscription` field by field."""
    version = _known_version(version)
    owned_part = _owned_part(owned) if version >= OWNED_SINCE else b""
    return _front(version, topics, user_data) + owned_part + _end(version, generation, rack)


@lru_cache(maxsize=256)
def _front(version: int, topics: tuple[str, ...], user_data: bytes | None) -> bytes:
    """The bytes before the owned partitions, often the same for all members of a group."""
    listed = [INT32.pack(len(topics)), *map(string, java_sorted(topics))]
    return b"".join([INT16.pack(version), *listed, nullable_bytes(user_data)])


@lru_cache(maxsize=256)
def _end(version: int, generation: int, rack: str | None) -> bytes:
    """The bytes behind the owned partitions, the same for the members of a generation and rack."""
    written = INT32.pack(max(generation, -1)) if version >= _GENERATION_SINCE else b""
    if version < _RACK_SINCE:
        return written
    return written + (INT16.pack(-1) if rack is None else string(rack))


@lru_cache(maxsize=1 << 14)
def _owned_part(owned: tuple[TopicPartition, ...]) -> bytes:
    """The owned partitions, sorted. Cached: most members own the same for many rounds."""
    in_order = sorted(owned, key=lambda tp: (java_key(tp[0]), tp[1]))
    groups = groupby(in_order, key=lambda tp: tp[0])
    return topic_partitions((topic, [tp[1] for tp in group]) for topic, group in groups)


def encode_assignment(
    partitions: Iterable[tuple[str, int]], user_data: bytes | None = None, version: int = HIGHEST_VERSION
) -> bytes:
    """ConsumerProtocol.serializeAssignment: grouped by topic, topics and partitions in the order given."""
    groups: dict[str, list[int]] = {}
    for topic, partition in partitions:
        groups.setdefault(topic, []).append(partition)
    header = INT16.pack(_known_version(version))
    return header + topic_partitions(groups.items()) + nullable_bytes(user_data)


def decode_assignment(data: bytes) -> Assignment:
    """ConsumerProtocol.deserializeAssignment. `UserDataError` on garbage, the empty bytes included."""
    version, at = read_int16(data, 0)
    _known_version(version)
    groups, at = read_topic_partitions(data, at)
    user_data, _ = read_nullable_bytes(data, at)
    return Assignment(ungrouped(groups), user_data)
