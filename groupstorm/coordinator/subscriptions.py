"""What the coordinator reads in bytes that are the clients' business: topics and partitions."""

from __future__ import annotations

from functools import lru_cache

from groupstorm.assignors.userdata import SchemaError, UserDataError, decode_assignment
from groupstorm.assignors.userdata.wire import (
    read_array_length,
    read_int16,
    read_nullable_bytes,
    read_string,
)
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.group import ClassicGroup

#: ConsumerProtocol.PROTOCOL_TYPE: the only one that Kafka looks into.
CONSUMER_PROTOCOL_TYPE = "consumer"


@lru_cache(maxsize=1 << 15)
def assigned_partitions(assignment: bytes) -> tuple[str, ...] | None:
    """The partitions of an assignment, as Kafka prints them; None where it is none of ConsumerProtocol."""
    try:
        return tuple(map(str, decode_assignment(assignment).partitions))
    except UserDataError:
        return None


@lru_cache(maxsize=1 << 12)
def _topics(metadata: bytes) -> tuple[str, ...]:
    """Topics of a subscription, read as version 0 whatever it says: that is the start of every version."""
    _, at = read_int16(metadata, 0)
    count, at = read_array_length(metadata, at)
    topics = []
    for _ in range(count):
        topic, at = read_string(metadata, at)
        topics.append(topic)
    read_nullable_bytes(metadata, at)
    return tuple(topics)


def take_subscriptions(group: ClassicGroup, compatibility: Compatibility) -> None:
    """A generation begins: remember what its members subscribe to (ClassicGroup.computeSubscribedTopics).

    Lengths that cannot be true get past Kafka 4.3.1's handler and break off the round: `CoordinatorFault`,
    and what was remembered before stays.
    """
    protocol = group.protocol
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or (group.members and protocol is None):
        group.subscriptions = None
        return
    # in the members' order: the first one that cannot be read decides
    subscriptions = tuple([member.metadata(protocol) for member in group.members.values()])
    if compatibility is Compatibility.KAFKA_4_3_1:
        _all_topics(group.name, subscriptions, compatibility)  # for its fault alone
    group.subscriptions = subscriptions


def is_subscribed_to(group: ClassicGroup, topic: str, compatibility: Compatibility) -> bool:
    """Whether members read this topic; where a consumer group's topics are not known, they may read any
    (ClassicGroup.isSubscribedToTopic)."""
    topics = subscribed_topics(group, compatibility)
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE if topics is None else topic in topics


def subscribed_topics(group: ClassicGroup, compatibility: Compatibility) -> frozenset[str] | None:
    """All topics that the generation's members subscribe to; None where that is not known."""
    if group.subscriptions is None:
        return None
    return _all_topics(group.name, group.subscriptions, compatibility)


def _all_topics(
    group: str, subscriptions: tuple[bytes, ...], compatibility: Compatibility
) -> frozenset[str] | None:
    """Metadata that ends too early makes all topics unknown. Lengths that cannot be true are a
    `CoordinatorFault` in 4.3.1; 4.4.0 treats both alike."""
    topics: set[str] = set()
    try:
        for metadata in subscriptions:
            topics.update(_topics(metadata))
    except SchemaError:
        return None
    except UserDataError as problem:
        if compatibility is Compatibility.KAFKA_4_3_1:
            raise CoordinatorFault(f"group {group!r}: unreadable subscription: {problem}") from problem
        return None
    return frozenset(topics)
