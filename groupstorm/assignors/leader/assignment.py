"""The leader's computation: the subscriptions of all members as bytes in, their assignments as bytes out.

`assign_by_name` decodes, assigns and encodes. It serves every assignor, and it defines the answer.
`_assign_by_number` keeps partitions as numbers from the bytes in to the bytes out. It serves the assignors
that work on numbers anyway, and it must give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.consumer.indexed import IndexedAssignor, Question
from groupstorm.assignors.contract import Assignor, MapOrder, TopicMetadata, subscribed_topics
from groupstorm.assignors.leader.memory import LeaderMemory
from groupstorm.assignors.userdata import Subscription, decode_subscription, encode_assignment

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
