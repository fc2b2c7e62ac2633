"""Topics and groups of requests. Topics have a name, or an id in the versions of KIP-516 and KIP-848."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from groupstorm.broker.apis.api import Call, Done
from groupstorm.broker.apis.rights import topic_error
from groupstorm.broker.log.partition import LEADER_EPOCH, PartitionLog
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, Topic
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.turns import Turns, in_turns

NO_EPOCH = -1

#: A topic's name or id.
TopicKey: TypeAlias = str | UUID | None

#: The topic that `find_topic` has found, or an error.
Found: TypeAlias = tuple[Topic | None, Error]


def find_topic(state: BrokerState, call: Call, asked: Any, name_field: str = "name") -> Found:
    """The topic of a part of a request, and the error if there is none, or if the client may not use it.

    ``asked`` has either ``topic_id`` or the field that holds a name, as its version has it.
    """
    name = getattr(asked, name_field, None)
    return find_named(state, call, asked.topic_id if name is None else name)


def find_named(state: BrokerState, call: Call, name: str | UUID | None) -> Found:
    """`find_topic` by a name or an id."""
    if not isinstance(name, str):
        topic = state.topics.get_by_id(name)
        if topic is None:
            return None, Error.UNKNOWN_TOPIC_ID
        error = topic_error(state, call, topic.name)
        return topic if error is Error.NONE else None, error
    error = topic_error(state, call, name)
    if error is not Error.NONE:
        return None, error
    topic = state.topics.get(name)
    return topic, Error.NONE if topic is not None else Error.UNKNOWN_TOPIC_OR_PARTITION


def answer_partitions(
    state: BrokerState,
    call: Call,
    structure: str,
    answer: Callable[[BrokerState, Call, Found, Any], Any],
    name_field: str = "name",
) -> Turns[Done]:
    """A response with a ``structure`` for each topic of a request, and in it ``answer`` to each of its
    partitions."""
    topics = []
    for asked in call.message.topics:
        partitions = yield from in_turns(
            (
                answer(state, call, find_topic(state, call, asked, name_field), partition)
                for partition in asked.partitions
            ),
            work=2,
        )
        named = {name_field: getattr(asked, name_field)}
        topics.append(call.types.make(structure, **named, partitions=partitions))
        yield 1
    return Done(call.types.response(topics=tuple(topics)))


def partition_error(found: Found, partition: int) -> Error:
    """The error of a partition of a topic that `find_topic` has looked for; NONE if the partition exists."""
    topic, error = found
    if topic is not None and topic.partition(partition) is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return error


def read_offset(asked: Any) -> CommittedOffset:
    """The offset that a client commits for a partition."""
    leader_epoch = getattr(asked, "committed_leader_epoch", -1)
    return CommittedOffset(asked.committed_offset, leader_epoch, asked.committed_metadata or "")


class Led(NamedTuple):
    """A partition's log if the broker that was asked leads it, else the error."""

    log: PartitionLog | None
    error: Error


def find_log(call: Call, found: Found, partition: int, epoch: int = NO_EPOCH) -> Led:
    """The log of a partition of a topic that `find_topic` has found, to read or write it. ``epoch``: the
    leader's, as the client knows it (Partition.checkCurrentLeaderEpoch).

    The logs of the coordinators' topics hold no records: nobody may read them, rather than find nothing.
    """
    topic, error = found
    if topic is None:
        return Led(None, error)
    log = topic.partition(partition)
    if log is None:
        return Led(None, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.name in COORDINATORS_TOPICS:
        return Led(None, Error.TOPIC_AUTHORIZATION_FAILED)
    if topic.replicas[partition][0] != call.node:
        return Led(None, Error.NOT_LEADER_OR_FOLLOWER)
    if epoch not in (NO_EPOCH, LEADER_EPOCH):
        error = Error.UNKNOWN_LEADER_EPOCH if epoch > LEADER_EPOCH else Error.FENCED_LEADER_EPOCH
        return Led(None, error)
    return Led(log, Error.NONE)


def same_topic(asked: Any) -> dict[str, Any]:
    """Name and id of the request, for the response's fields of the same names."""
    return {"name": getattr(asked, "name", ""), "topic_id": getattr(asked, "topic_id", None)}


def topic_key(asked: Any) -> TopicKey:
    """The name of a topic in a request, or its id if the version has no names."""
    key: TopicKey = asked.name if hasattr(asked, "name") else asked.topic_id
    return key


def topics_with_errors(
    call: Call, api: str, errors: Mapping[tuple[TopicKey, int], Error]
) -> Turns[tuple[Any, ...]]:
    """The topics of a response that has an error for each partition that the request names. ``api``: its
    name, as in the names of the response's structures."""
    make = call.types.make
    topics = []
    for topic in call.message.topics:
        partitions = yield from in_turns(
            make(
                f"{api}ResponsePartition",
                partition_index=one.partition_index,
                error_code=errors[topic_key(topic), one.partition_index],
            )
            for one in topic.partitions
        )
        named = {field: getattr(topic, field) for field in ("name", "topic_id") if hasattr(topic, field)}
        topics.append(make(f"{api}ResponseTopic", partitions=partitions, **named))
        yield 1
    return tuple(topics)
