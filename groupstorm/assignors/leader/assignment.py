"""The leader's entry: the subscriptions of all members as bytes in, their assignments as bytes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.consumer.indexed import is_indexed
from groupstorm.assignors.contract import Assignor, TopicMetadata
from groupstorm.assignors.leader.by_name import JoinedMember, assign_by_name
from groupstorm.assignors.leader.by_number import assign_by_number
from groupstorm.assignors.leader.memory import LeaderMemory


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
    if is_indexed(assignor):
        answer = assign_by_number(assignor, known, members, LeaderMemory() if memory is None else memory)
    if answer is None:
        answer = assign_by_name(assignor, known, members)
    return answer
