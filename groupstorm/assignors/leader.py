"""The leader's door: the subscriptions of all members as bytes in, their assignments as bytes out.

This is ConsumerCoordinator.onLeaderElected without the client around it. The sticky assignors take
a short way: partitions are dense integers from the bytes in to the bytes out, and what the last
round has shown is not read or written again (`LeaderMemory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.sticky import (
    CooperativeStickyAssignor,
    StickyAssignor,
    plan_and_withhold,
)
from groupstorm.assignors.contract import Assignor, MapOrder, TopicMetadata
from groupstorm.assignors.leadermemory import GhostError, LeaderMemory
from groupstorm.assignors.userdata import Subscription, decode_subscription, encode_assignment

#: Member id, group.instance.id, subscription bytes: a member of the leader's JoinGroup response.
Member = tuple[str, str | None, bytes]

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
    if isinstance(assignor, StickyAssignor | CooperativeStickyAssignor):
        try:
            return _assign_densely(assignor, known, members, memory or _shared_memory)
        except GhostError:
            pass  # partitions that do not exist have no number: take the long way
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
    return {
        member: encode_assignment(partitions, result.user_data)
        for member, partitions in result.partitions.items()
    }


def _assign_densely(
    assignor: StickyAssignor | CooperativeStickyAssignor,
    topics: Mapping[str, TopicMetadata],
    members: Sequence[Member],
    memory: LeaderMemory,
) -> dict[str, bytes]:
    metadata = {member: data for member, _, data in members}
    ordered, visit = memory.arrange(tuple(metadata), assignor.order)
    heads = [memory.read_head(metadata[member]) for member in ordered]
    subscribed = {head.topics: None for head in {id(head.topics): head for head in heads}.values()}
    wanted = {
        topic: topics[topic]
        for listed in subscribed
        for topic in listed
        if topic in topics and topics[topic].partitions > 0
    }
    index = memory.begin_round(wanted)
    from_user_data = not assignor.withholds
    claims: list[Claim] = []
    for member, head in zip(ordered, heads, strict=True):
        body = memory.read_body(metadata[member], head, from_user_data=from_user_data)
        claims.append(
            Claim(member, head.topics, body.owned, body.owned_generation, body.generation, body.rack)
        )
    plan = plan_and_withhold(assignor, index, wanted, claims, visit)
    return {
        member: memory.encode(member, assigned)
        for member, assigned in zip(ordered, plan.assigned, strict=True)
    }
