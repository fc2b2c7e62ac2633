"""Metadata (key 3), versions 0-13.

* v0: an empty list asks for all topics. From v1 on null does, and an empty list asks for none, which
  librdkafka and aiokafka ask first.
* v4: allow_auto_topic_creation; before, unknown topics are always created if the broker allows it.
* v8-10 / v8+: authorized operations of cluster / topics when asked for, else INT32_MIN.
* v10: topic ids in the response. v12: topics may be asked for by id, with a null name; the answer to an
  id that nobody has is UNKNOWN_TOPIC_ID.
* A topic that is created on demand is answered UNKNOWN_TOPIC_OR_PARTITION this once, as in Kafka, which
  creates it meanwhile (DefaultAutoTopicCreationManager); clients ask again.
* The encoded answer is kept until the topics change: a hundred topics of a hundred partitions take
  longer to build than to write.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from groupstorm.broker.apis.api import (
    COORDINATORS_TOPICS,
    Api,
    BrokerState,
    Call,
    Encoded,
    authorized_operations,
)
from groupstorm.broker.apis.internal_topics import ensure_internal_topic
from groupstorm.broker.log.partition import LEADER_EPOCH
from groupstorm.broker.log.topics import Topic, TopicError, check_name
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import encoder

#: AclOperation codes that exist for a topic and for the cluster (AclEntry.supportedOperations).
TOPIC_OPERATIONS = (3, 4, 5, 6, 7, 8, 10, 11)
CLUSTER_OPERATIONS = (5, 7, 8, 9, 10, 11, 12)
_ANSWERS_KEPT = 64
#: Of all kept answers; 100,000 topics are answered with 6 MB, and the key takes as much.
_BYTES_KEPT = 8 * 1024 * 1024
#: A kept answer's version, address, number of changes of the topics, request and topics.
_Key = tuple[object, ...]
_CHANGES = 2


def handle(state: BrokerState, call: Call) -> Encoded:
    found = list(_find(state, call))
    key = (call.version, call.reached_at, state.topics.changes, _asked_for(call.message), tuple(found))
    body = state.metadata_cache.get(key)
    if body is None:
        body = [b"".join(encoder(call.types.root)(_response(state, call, found)))]
        _keep(state.metadata_cache, key, body)
    return Encoded(body)


API = Api(3, "Metadata", 0, 13, handle)


def _keep(kept: dict[_Key, list[bytes]], key: _Key, body: list[bytes]) -> None:
    """Keep an answer: few ones and small ones, and none of before a change of the topics."""
    size = sum(len(chunk) for one in (*kept.values(), body) for chunk in one)
    is_outdated = any(one[_CHANGES] != key[_CHANGES] for one in kept)
    if is_outdated or len(kept) >= _ANSWERS_KEPT or size > _BYTES_KEPT:
        kept.clear()
    if sum(map(len, body)) <= _BYTES_KEPT:
        kept[key] = body


#: A topic's name, its id, and the error.
_Found = tuple[str | None, uuid.UUID | None, Error]


def _asked_for(message: Any) -> tuple[bool, bool]:
    return (
        getattr(message, "include_cluster_authorized_operations", False),
        getattr(message, "include_topic_authorized_operations", False),
    )


def _find(state: BrokerState, call: Call) -> Iterator[_Found]:
    asked = call.message.topics
    if asked is None or (call.version == 0 and not asked):
        yield from ((topic.name, topic.topic_id, Error.NONE) for topic in state.topics)
        return
    may_create = state.config.auto_create_topics_enable and getattr(
        call.message, "allow_auto_topic_creation", True
    )
    for one in asked:
        topic_id = getattr(one, "topic_id", None)
        if one.name is None:
            yield _by_id(state, call.version, topic_id)
        else:
            yield _by_name(state, one.name, may_create)


def _by_id(state: BrokerState, version: int, topic_id: uuid.UUID | None) -> _Found:
    topic = state.topics.get_by_id(topic_id)
    if topic is not None and version >= 12:
        return topic.name, topic.topic_id, Error.NONE
    if version >= 12:
        return None, topic_id, Error.UNKNOWN_TOPIC_ID
    return "", topic_id, Error.INVALID_REQUEST  # 10 and 11 have the field but Kafka never served it


def _by_name(state: BrokerState, name: str, may_create: bool) -> _Found:
    topic = state.topics.get(name)
    if topic is not None:
        return name, topic.topic_id, Error.NONE
    try:
        check_name(name)
        if may_create and name in COORDINATORS_TOPICS:
            ensure_internal_topic(state, name)
        elif may_create:
            config = state.config
            replicas = min(config.default_replication_factor, len(state.cluster.nodes))
            state.create_topic(name, config.num_partitions, replicas)
        return name, None, Error.UNKNOWN_TOPIC_OR_PARTITION
    except TopicError as problem:
        return name, None, problem.error


def _response(state: BrokerState, call: Call, found: list[_Found]) -> Any:
    cluster_asked, topics_asked = _asked_for(call.message)
    operations = authorized_operations(topics_asked, TOPIC_OPERATIONS)
    return call.types.response(
        brokers=tuple(_broker(state, call, node) for node in state.cluster.nodes),
        cluster_id=state.cluster_id,
        controller_id=state.cluster.controller,
        topics=tuple(_topic(state, call, one, operations) for one in found),
        cluster_authorized_operations=authorized_operations(cluster_asked, CLUSTER_OPERATIONS),
        error_code=Error.NONE,
    )


def _broker(state: BrokerState, call: Call, node: int) -> Any:
    endpoint = state.endpoint(node, call)
    return call.types.make(
        "MetadataResponseBroker",
        node_id=node,
        host=endpoint.host,
        port=endpoint.port,
        rack=state.config.broker_rack,
    )


def _topic(state: BrokerState, call: Call, found: _Found, operations: int) -> Any:
    name, topic_id, error = found
    topic = None if error is not Error.NONE else state.topics.get_by_id(topic_id)
    return call.types.make(
        "MetadataResponseTopic",
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=topic is not None and topic.is_internal,
        partitions=() if topic is None else _partitions(state, call, topic),
        topic_authorized_operations=operations,
    )


def _partitions(state: BrokerState, call: Call, topic: Topic) -> tuple[Any, ...]:
    make = call.types.make
    return tuple(
        make(
            "MetadataResponsePartition",
            error_code=Error.NONE,
            partition_index=index,
            leader_id=replicas[0],
            leader_epoch=LEADER_EPOCH,
            replica_nodes=replicas,
            isr_nodes=replicas,
            offline_replicas=(),
        )
        for index in range(len(topic.partitions))
        for replicas in (topic.replicas[index],)
    )
