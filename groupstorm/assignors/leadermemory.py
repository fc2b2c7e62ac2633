"""What the leader's door remembers from one round of a group to the next.

* The order of the members, while they stay the same.
* The list of topics: a subscription that starts as the one before it is not read again.
* Owned partitions: bytes that were there in this round or the last are looked up, not read.
* Encoded assignments: a member that gets what it got in the last round gets the same bytes.

Everything belongs to the last round or two, so a memory is never larger than a few times the
group's own bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.contract import MapOrder, TopicMetadata
from groupstorm.assignors.userdata import HIGHEST_VERSION, decode_generation
from groupstorm.assignors.userdata.consumer_protocol import (
    OWNED_SINCE,
    read_generation_and_rack,
    read_topics,
    smallest_tail,
)
from groupstorm.assignors.userdata.sticky import read_sticky
from groupstorm.assignors.userdata.wire import (
    INT16,
    INT32,
    nullable_bytes,
    read_nullable_bytes,
    read_topic_partitions,
    string,
)

_ASSIGNMENT_HEADER = INT16.pack(HIGHEST_VERSION)
_NO_USER_DATA = nullable_bytes(None)
_GENERATION_BYTES = 4
_Groups = Sequence[tuple[str, Sequence[int]]]


class GhostError(Exception):
    """Somebody owns a partition that does not exist."""


class Head(NamedTuple):
    """The front of a subscription: its version, topics, and where the rest begins."""

    version: int
    topics: tuple[str, ...]
    end: int


class Body(NamedTuple):
    """The rest of a subscription, owned partitions as numbers.

    ``owned`` and ``owned_generation`` are what the assignor believes, ``generation`` is the
    subscription's own field (-1: none).
    """

    owned: list[int]
    owned_generation: int | None
    generation: int
    rack: str | None


class LeaderMemory:
    """See the module; one thread at a time."""

    def __init__(self) -> None:
        self._members: tuple[str, ...] = ()
        self._arranged: tuple[MapOrder, list[str], list[int]] = (MapOrder.JAVA_HASH, [], [])
        self._head_bytes = b""
        self._head = Head(0, (), 0)
        self._index = PartitionIndex({})
        self._topics: dict[str, TopicMetadata] = {}
        self._owned: dict[bytes, list[int]] = {}
        self._owned_before: dict[bytes, list[int]] = {}
        self._encoded: dict[str, tuple[list[int], bytes]] = {}
        self._encoded_before: dict[str, tuple[list[int], bytes]] = {}
        self._topic_bytes: list[bytes] = []

    def arrange(self, members: tuple[str, ...], order: MapOrder) -> tuple[list[str], list[int]]:
        """The members as Kafka's table of subscriptions yields them; and as its copy then would."""
        if members != self._members or order is not self._arranged[0]:
            ordered = order.arrange(members)
            number = {member: place for place, member in enumerate(ordered)}
            self._arranged = (order, ordered, [number[member] for member in order.arrange(ordered)])
            self._members = members
        return self._arranged[1], self._arranged[2]

    def read_head(self, data: bytes) -> Head:
        """Version and topics of a subscription. `UserDataError` on garbage."""
        if not self._head_bytes or not data.startswith(self._head_bytes):
            self._head = Head(*read_topics(data))
            self._head_bytes = data[: self._head.end]
        return self._head

    def begin_round(self, topics: dict[str, TopicMetadata]) -> PartitionIndex:
        """The numbers of the partitions of these topics; what is older than the last round is forgotten."""
        if topics != self._topics:
            self._topics = topics
            self._index = PartitionIndex(topics)
            self._topic_bytes = [string(topic) for topic in self._index.topics]
            self._owned, self._encoded = {}, {}
        self._owned_before, self._owned = self._owned, {}
        self._encoded_before, self._encoded = self._encoded, {}
        return self._index

    def read_body(self, data: bytes, head: Head, *, from_user_data: bool) -> Body:
        """What follows the topics; ``from_user_data``: believe the user data, as StickyAssignor does.

        `UserDataError` on garbage, `GhostError` on partitions that do not exist.
        """
        user_data, at = read_nullable_bytes(data, head.end)
        owned: list[int] = []
        if head.version >= OWNED_SINCE:
            owned, at = self._read_owned(data, at, len(data) - smallest_tail(head.version))
        generation, rack = read_generation_and_rack(data, at, head.version)
        generation = max(generation, -1)
        if from_user_data:
            owned, owned_generation = self._read_sticky(user_data)
        else:
            owned_generation = generation if generation >= 0 else decode_generation(user_data)
        return Body(owned, owned_generation, generation, rack)

    def _read_owned(self, data: bytes, at: int, likely_end: int) -> tuple[list[int], int]:
        """Topic partitions, which probably end at ``likely_end``; where they really end."""
        known = self._recall(data[at:likely_end])
        if known is not None:
            return known, likely_end
        groups, end = read_topic_partitions(data, at)
        return self._remember(data[at:end], groups), end

    def _read_sticky(self, user_data: bytes | None) -> tuple[list[int], int | None]:
        if not user_data:
            return [], None
        known = self._recall(user_data[:-_GENERATION_BYTES])
        if known is not None:
            return known, INT32.unpack(user_data[-_GENERATION_BYTES:])[0]
        groups, end, generation = read_sticky(user_data)
        return self._remember(user_data[:end], groups), generation

    def _recall(self, section: bytes) -> list[int] | None:
        """The numbers that these bytes stand for, if they were seen lately: then they are whole."""
        known = self._owned.get(section)
        if known is None:
            known = self._owned_before.get(section)
            if known is not None:
                self._owned[section] = known
        return known

    def _remember(self, section: bytes, groups: _Groups) -> list[int]:
        index = self._index
        numbers: list[int] = []
        for topic, partitions in groups:
            known = index.ids(topic, partitions)
            if len(known) < len(partitions) and topic in index.number_of_topic:
                raise GhostError
            numbers.extend(known)
        if section:
            self._owned[section] = numbers
        return numbers

    def encode(self, member: str, assigned: list[int]) -> bytes:
        """The assignment bytes of these partition numbers, which the caller leaves unchanged from now on."""
        before = self._encoded_before.get(member)
        entry = before if before is not None and before[0] == assigned else (assigned, self._encode(assigned))
        self._encoded[member] = entry
        return entry[1]

    def _encode(self, assigned: Sequence[int]) -> bytes:
        topic_of, partition_of = self._index.topic_of, self._index.partition_of
        groups: dict[int, list[int]] = {}
        for number in assigned:
            topic = topic_of[number]
            if topic in groups:
                groups[topic].append(partition_of[number])
            else:
                groups[topic] = [partition_of[number]]
        parts = [_ASSIGNMENT_HEADER, INT32.pack(len(groups))]
        for topic, partitions in groups.items():
            parts.append(self._topic_bytes[topic])
            parts.append(pack(f">i{len(partitions)}i", len(partitions), *partitions))
        parts.append(_NO_USER_DATA)
        return b"".join(parts)
