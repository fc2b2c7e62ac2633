"""The leader's computation: the subscriptions of all members as bytes in, their assignments as bytes out.

`assign_by_name` decodes, assigns and encodes. It serves every assignor, and it defines the answer.
`_assign_by_number` keeps partitions as numbers from the bytes in to the bytes out. It serves the assignors
that work on numbers anyway, and it must give the same bytes. Its `LeaderMemory` keeps of one round, to read
and write less in the next one:

* the order of the members, while they stay the same;
* topics: a subscription that starts as the member's last one, or as another's, is not read again;
* owned partitions: bytes that came in this round or the last one are looked up, not read;
* encoded assignments: a member that gets the same partitions as in the last round gets the same bytes.

A memory drops everything older than the last round or two, so it is never larger than a few times the
group's own bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.indexed import IndexedAssignor, OwnedFrom, PartitionIndex, Question
from groupstorm.assignors.contract import Assignor, MapOrder, TopicMetadata, subscribed_topics
from groupstorm.assignors.leader.codec import NOTHING, Owned, PartitionCodec
from groupstorm.assignors.userdata import (
    NO_GENERATION,
    Subscription,
    UserDataError,
    decode_generation,
    decode_subscription,
    encode_assignment,
)
from groupstorm.assignors.userdata.consumer_protocol import (
    OWNED_SINCE,
    read_generation_and_rack,
    read_topics,
    smallest_tail,
)
from groupstorm.assignors.userdata.wire import INT32, read_int32, read_nullable_bytes, read_topic_partitions

#: Bytes behind the topics of a subscription are looked up as a whole up to this length: members share them.
_SHORT = 32
#: From this many partitions on numpy pays.
_LARGE = 20_000


class Head(NamedTuple):
    """The front of a subscription: its version, topics, and where the rest begins."""

    version: int
    topics: tuple[str, ...]
    end: int


#: The owned partitions and their generation as the assignor reads them, the subscription's own generation,
#: the rack.
_Body = tuple[list[int], int, int, str | None]


def _codec(index: PartitionIndex) -> PartitionCodec:
    """The codec with numpy for large groups only: loading numpy takes longer than a small group's rounds."""
    if index.size >= _LARGE and find_spec("numpy") is not None:
        codec: PartitionCodec = import_module("groupstorm.assignors.leader.array_codec").ArrayCodec(index)
        return codec
    return PartitionCodec(index)


class LeaderMemory:
    """One leader's memory of one group. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._members: tuple[str, ...] = ()
        self._arranged: tuple[MapOrder, list[str], list[int]] = (MapOrder.JAVA_HASH, [], [])
        self._heads: dict[str, tuple[bytes, Head]] = {}
        self._heads_before: dict[str, tuple[bytes, Head]] = {}
        self._last_head: tuple[bytes, Head] = (b"", Head(0, (), 0))
        self._topics: dict[str, TopicMetadata] = {}
        self._index = PartitionIndex({})
        self._codec = PartitionCodec(self._index)
        self._owned: dict[bytes, Owned] = {}
        self._owned_before: dict[bytes, Owned] = {}
        #: Whether a member of this round owns a partition that does not exist although its topic does.
        self.nonexistent_seen = False
        self._bodies: dict[tuple[int, bytes], _Body] = {}
        self._tails: dict[tuple[int, bytes], tuple[int, str | None]] = {}
        self._encoded: dict[str, tuple[list[int], bytes]] = {}
        self._encoded_before: dict[str, tuple[list[int], bytes]] = {}

    def arrange(self, members: tuple[str, ...], order: MapOrder) -> tuple[list[str], list[int]]:
        """Begin a round: the members in the order of Kafka's table, and the order of a copy of that table."""
        if members != self._members or order is not self._arranged[0]:
            ordered = order.arrange(members)
            number = {member: place for place, member in enumerate(ordered)}
            self._arranged = (order, ordered, [number[member] for member in order.arrange(ordered)])
            self._members = members
        self._heads_before, self._heads = self._heads, {}
        return self._arranged[1], self._arranged[2]

    def read_head(self, member: str, data: bytes) -> Head:
        """Version and topics of a subscription. `UserDataError` on garbage."""
        known = self._last_head
        if not known[0] or not data.startswith(known[0]):
            known = self._heads_before.get(member, known)
            if not known[0] or not data.startswith(known[0]):
                head = Head(*read_topics(data))
                known = (data[: head.end], head)
            self._last_head = known
        self._heads[member] = known
        return known[1]

    def number_partitions(self, topics: dict[str, TopicMetadata]) -> PartitionIndex:
        """The numbers of the partitions of these topics, for this round."""
        if topics != self._topics:
            self._topics = topics
            self._index = PartitionIndex(topics)
            self._codec = _codec(self._index)
            self._owned, self._encoded = {}, {}
        self._owned_before, self._owned = self._owned, {}
        self.nonexistent_seen = False
        self._bodies, self._tails = {}, {}
        self._encoded_before, self._encoded = self._encoded, {}
        return self._index

    def read_claim(self, member: str, instance: str | None, data: bytes, source: OwnedFrom) -> Claim:
        """A member's claim, without nonexistent partitions. `UserDataError` on garbage."""
        head = self._heads[member][1]
        end = data[head.end :]
        if len(end) <= _SHORT:
            key = (head.version, end)
            body = self._bodies.get(key)
            if body is None:
                body = self._bodies[key] = self._read_body(end, head.version, source)
        else:
            body = self._read_body(end, head.version, source)
        owned, owned_generation, generation, rack = body
        return Claim(member, head.topics, owned, owned_generation, generation, rack, instance)

    def _read_body(self, data: bytes, version: int, source: OwnedFrom) -> _Body:
        user_data, at = read_nullable_bytes(data, 0)
        owned = NOTHING
        asked = source.field and version >= OWNED_SINCE
        if asked:
            owned, at = self._read_owned(data, at, len(data) - smallest_tail(version))
        generation, rack = self._read_tail(data[at:], version, with_owned=not asked)
        owned_generation: int | None = generation
        if source.user_data:
            reported, reported_generation = self._read_sticky(user_data)
            if not owned.listed:
                owned, owned_generation = reported, reported_generation
            elif generation < 0:
                owned_generation = reported_generation
        elif source.field and generation < 0:
            owned_generation = decode_generation(user_data)
        if owned.nonexistent:
            self.nonexistent_seen = True
        if owned_generation is None:
            owned_generation = NO_GENERATION
        return owned.numbers, owned_generation, generation, rack

    def _read_tail(self, data: bytes, version: int, *, with_owned: bool) -> tuple[int, str | None]:
        """Generation and rack behind unread owned partitions: the same bytes for most members."""
        key = (version, data)
        known = self._tails.get(key)
        if known is None:
            at = read_topic_partitions(data, 0)[1] if with_owned and version >= OWNED_SINCE else 0
            generation, rack = read_generation_and_rack(data, at, version)
            known = max(generation, NO_GENERATION), rack
            if len(data) <= _SHORT:
                self._tails[key] = known
        return known

    def _read_owned(self, data: bytes, at: int, likely_end: int) -> tuple[Owned, int]:
        """The topic partitions at that position and where they end, which is probably ``likely_end``."""
        known = self._recall(data[at:likely_end])
        if known is not None:
            return known, likely_end
        owned, end = self._codec.read(data, at)
        self._owned[data[at:end]] = owned
        return owned, end

    def _read_sticky(self, user_data: bytes | None) -> tuple[Owned, int | None]:
        """As `userdata.decode_sticky`: garbage counts as no partitions, in generation -1."""
        if not user_data:
            return NOTHING, None
        section = user_data[: -INT32.size]
        known = self._recall(section)
        if known is not None:
            return known, read_int32(user_data, len(section))[0]
        try:
            owned, end = self._codec.read(user_data, 0)
        except UserDataError:
            return NOTHING, NO_GENERATION
        self._owned[section if end == len(section) else user_data[:end]] = owned
        try:
            return owned, read_int32(user_data, end)[0]
        except UserDataError:
            return owned, None

    def _recall(self, section: bytes) -> Owned | None:
        """The partitions of these bytes, if this round or the last one had them; None otherwise."""
        known = self._owned.get(section)
        if known is None:
            known = self._owned_before.get(section)
            if known is not None:
                self._owned[section] = known
        return known

    def encode(self, members: Sequence[str], plan: Sequence[list[int]]) -> dict[str, bytes]:
        """The assignment bytes of these partition numbers. The caller must not change ``plan`` afterwards."""
        before = self._encoded_before
        changed = [
            (member, assigned)
            for member, assigned in zip(members, plan, strict=True)
            if member not in before or before[member][0] != assigned
        ]
        written = self._codec.write_assignments([assigned for _, assigned in changed])
        fresh = {member: (assigned, data) for (member, assigned), data in zip(changed, written, strict=True)}
        self._encoded = {member: fresh.get(member) or before[member] for member in members}
        return {member: data for member, (_, data) in self._encoded.items()}


#: Member id, group.instance.id, subscription bytes: a member of the leader's JoinGroup response.
JoinedMember = tuple[str, str | None, bytes]


def perform_assignment(
    assignor: Assignor,
    topics: Mapping[str, int | TopicMetadata],
    members: Sequence[JoinedMember],
    memory: LeaderMemory | None = None,
) -> dict[str, bytes]:
    """Assign for a whole group: assignment bytes (version 3) by member id.

    ``topics`` are those that exist: their metadata, or just their number of partitions. ``members``
    count as Java's HashMap filled in their order. Raises `UserDataError` if a subscription is garbage
    (Kafka's leader fails there, too) and `AssignmentRefused` if the assignor refuses.

    ``memory`` makes later rounds of one group quicker and changes no answer. Whoever leads keeps one per
    group; two threads must not use the same one. Without a memory nothing outlives the call.
    """
    known = {
        topic: TopicMetadata(metadata) if isinstance(metadata, int) else metadata
        for topic, metadata in topics.items()
    }
    answer: dict[str, bytes] | None = None
    if isinstance(assignor, IndexedAssignor):
        answer = _assign_by_number(assignor, known, members, LeaderMemory() if memory is None else memory)
    if answer is None:
        answer = assign_by_name(assignor, known, members)
    return answer


def assign_by_name(
    assignor: Assignor, topics: Mapping[str, TopicMetadata], members: Sequence[JoinedMember]
) -> dict[str, bytes]:
    """See `perform_assignment`. A member without an entry in the assignor's answer gets no bytes."""
    order: MapOrder = getattr(assignor, "order", MapOrder.JAVA_HASH)
    read: dict[str, Subscription] = {
        member: decode_subscription(metadata)._replace(instance=instance)
        for member, instance, metadata in members
    }
    result = assignor.assign(topics, {member: read[member] for member in order.arrange(read)})
    own = result.user_data_of or {}
    return {
        member: encode_assignment(partitions, own.get(member, result.user_data))
        for member, partitions in result.partitions.items()
    }


def _assign_by_number(
    assignor: IndexedAssignor,
    topics: Mapping[str, TopicMetadata],
    members: Sequence[JoinedMember],
    memory: LeaderMemory,
) -> dict[str, bytes] | None:
    """None if a member owns a partition without a number and the answer may depend on it."""
    joined = {member: (instance, data) for member, instance, data in members}
    ordered, visit = memory.arrange(tuple(joined), assignor.order)
    heads = [memory.read_head(member, joined[member][1]) for member in ordered]
    listed = {head.topics: None for head in {id(head.topics): head for head in heads}.values()}
    wanted = subscribed_topics(topics, map(Subscription, listed), assignor.order)
    index = memory.number_partitions(wanted)
    source = assignor.owned_from
    claims = [memory.read_claim(member, *joined[member], source) for member in ordered]
    if memory.nonexistent_seen and assignor.reads_nonexistent:
        return None
    return memory.encode(ordered, assignor.assign_indexed(Question(index, wanted, claims, visit)))
