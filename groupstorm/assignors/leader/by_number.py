"""The leader's fast way: partitions are numbers from the bytes that come in to the bytes that go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.consumer.indexed import IndexedAssignor
from groupstorm.assignors.contract import TopicMetadata, subscribed_topics
from groupstorm.assignors.leader.by_name import JoinedMember
from groupstorm.assignors.leader.memory import LeaderMemory
from groupstorm.assignors.userdata import Subscription


def assign_by_number(
    assignor: IndexedAssignor,
    topics: Mapping[str, TopicMetadata],
    members: Sequence[JoinedMember],
    memory: LeaderMemory,
) -> dict[str, bytes] | None:
    """See `perform_assignment`.

    None if a member owns a partition without a number and the assignor's answer may depend on it
    (`IndexedAssignor.reads_nonexistent`).
    """
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
    return memory.encode(ordered, assignor.assign_indexed(index, wanted, claims, visit))
