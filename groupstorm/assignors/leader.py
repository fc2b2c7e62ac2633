"""The leader's door: the subscriptions of all members as bytes in, their assignments as bytes out.

This is ConsumerCoordinator.onLeaderElected without the client around it. Our own assignors, but for
`stream-join-sticky`, take a short way: partitions are dense integers from the bytes in to the bytes
out, and what the last round has shown is not read or written again (`LeaderMemory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupstorm.assignors.consumer.planned import PlannedAssignor
from groupstorm.assignors.consumer.range import RangeAssignor
from groupstorm.assignors.consumer.roundrobin import RoundRobinAssignor
from groupstorm.assignors.consumer.sticky import CooperativeStickyAssignor, StickyAssignor
from groupstorm.assignors.contract import (
    Assignor,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.leadermemory import LeaderMemory, OwnedFrom
from groupstorm.assignors.userdata import Subscription, decode_subscription, encode_assignment

#: Member id, group.instance.id, subscription bytes: a member of the leader's JoinGroup response.
Member = tuple[str, str | None, bytes]

#: Assignors with a ``plan`` from claims to partitions, both as numbers.
_Planning = RangeAssignor | RoundRobinAssignor | StickyAssignor | CooperativeStickyAssignor | PlannedAssignor

_shared_memory = LeaderMemory()


def perform_assignment(
    assignor: Assignor,
    topics: Mapping[str, int | TopicMetadata],
    members: Sequence[Member],
    memory: LeaderMemory | None = None,
) -> dict[str, bytes]:
    """Assign for a whole group: assignment bytes (version 3) by member id.

    ``topics`` are those that exist: their metadata, or just their number of partitions. ``members``
    count as Java's HashMap filled in their order. Raises `UserDataError` where a subscription is
    garbage (Kafka's leader fails there, too) and `AssignmentRefused` where the assignor does.

    ``memory`` makes rounds of one group quicker and changes no answer; without one a memory is
    shared by all callers, which pays off when they come from one group at a time.
    """
    known = {
        topic: TopicMetadata(metadata) if isinstance(metadata, int) else metadata
        for topic, metadata in topics.items()
    }
    if isinstance(assignor, _Planning):
        answer = _assign_by_number(assignor, known, members, _shared_memory if memory is None else memory)
        if answer is not None:
            return answer
    order = getattr(assignor, "order", MapOrder.JAVA_HASH)
    return _assign_by_name(assignor, known, members, order)


def _assign_by_name(
    assignor: Assignor, topics: Mapping[str, TopicMetadata], members: Iterable[Member], order: MapOrder
) -> dict[str, bytes]:
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
    assignor: _Planning,
    topics: Mapping[str, TopicMetadata],
    members: Sequence[Member],
    memory: LeaderMemory,
) -> dict[str, bytes] | None:
    """None where an owned partition has no number, and the assignor wants to know of it."""
    joined = {member: (instance, data) for member, instance, data in members}
    ordered, visit = memory.arrange(tuple(joined), assignor.order)
    heads = [memory.read_head(member, joined[member][1]) for member in ordered]
    listed = {head.topics: None for head in {id(head.topics): head for head in heads}.values()}
    wanted = subscribed_topics(topics, map(Subscription, listed), assignor.order)
    index = memory.number_partitions(wanted)
    source = _where_owned(assignor)
    claims = [memory.read_claim(member, *joined[member], source) for member in ordered]
    if memory.ghosts_seen and isinstance(assignor, StickyAssignor | CooperativeStickyAssignor):
        return None
    plan = assignor.plan(index, wanted, claims, visit)
    return memory.encode(ordered, plan)


def _where_owned(assignor: _Planning) -> OwnedFrom:
    """What the assignor's ``owned_data`` reads."""
    if isinstance(assignor, RangeAssignor | RoundRobinAssignor):
        return OwnedFrom(field=False, user_data=False)
    if isinstance(assignor, StickyAssignor):
        return OwnedFrom(field=False, user_data=True)
    if isinstance(assignor, PlannedAssignor) and assignor.protocol is RebalanceProtocol.EAGER:
        return OwnedFrom(field=True, user_data=True)
    return OwnedFrom(field=True, user_data=False)
