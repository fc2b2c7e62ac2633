"""Topics and partitions in the bytes of clients, as far as the coordinator reads them."""

from __future__ import annotations

from functools import lru_cache

from groupstorm.assignors.userdata import SchemaError, UserDataError, decode_assignment
from groupstorm.assignors.userdata.wire import (
    read_array_length,
    read_int16,
    read_nullable_bytes,
    read_string,
)
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import CoordinatorFault

#: ConsumerProtocol.PROTOCOL_TYPE: the only one that Kafka looks into.
CONSUMER_PROTOCOL_TYPE = "consumer"


@lru_cache(maxsize=1 << 15)
def assigned_partitions(assignment: bytes) -> tuple[str, ...] | None:
    """The partitions of an assignment, as Kafka prints them; None if the bytes are not a
    ConsumerProtocol assignment."""
    try:
        return tuple(map(str, decode_assignment(assignment).partitions))
    except UserDataError:
        return None


@lru_cache(maxsize=1 << 12)
def _topics(metadata: bytes) -> tuple[str, ...]:
    """Topics of a subscription. Every version begins like version 0, which is all that is read."""
    _, at = read_int16(metadata, 0)
    count, at = read_array_length(metadata, at)
    topics = []
    for _ in range(count):
        topic, at = read_string(metadata, at)
        topics.append(topic)
    read_nullable_bytes(metadata, at)
    return tuple(topics)


def take_subscriptions(group: ClassicGroup, compatibility: Compatibility) -> None:
    """A generation begins: remember its members' metadata (ClassicGroup.computeSubscribedTopics).

    Kafka 4.3.1 does not catch the error of lengths that cannot be true: `CoordinatorFault`, and the metadata
    remembered before stays.
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
    """Whether members read this topic (ClassicGroup.isSubscribedToTopic). If the topics of a consumer group
    are not known, its members may read any."""
    topics = subscribed_topics(group, compatibility)
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE if topics is None else topic in topics


def subscribed_topics(group: ClassicGroup, compatibility: Compatibility) -> frozenset[str] | None:
    """All topics that the generation's members subscribe to; None if they are not known."""
    if group.subscriptions is None:
        return None
    return _all_topics(group.name, group.subscriptions, compatibility)


def _all_topics(
    group: str, subscriptions: tuple[bytes, ...], compatibility: Compatibility
) -> frozenset[str] | None:
    """Metadata that ends too early makes all topics unknown. Lengths that cannot be true are a
    `CoordinatorFault` in Kafka 4.3.1, and by default (as in Kafka 4.4.0) treated alike."""
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
