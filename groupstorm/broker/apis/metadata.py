"""Metadata, DescribeCluster and DescribeTopicPartitions: brokers, topics and their partitions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from heapq import merge
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import EACH_TOPIC, Api, Call, Done, Encoded
from groupstorm.broker.apis.coordinators import ensure_internal_topic
from groupstorm.broker.apis.resources import (
    NO_AUTHORIZED_OPERATIONS,
    authorized_operations,
    cluster_operations,
    may,
    may_on_cluster,
    topic_error,
)
from groupstorm.broker.apis.topics import COST_OF_PARTITION, COST_OF_TOPIC
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.log.partition import LEADER_EPOCH
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, MAX_PARTITIONS_PER_REQUEST, Topic, check_name
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.protocol.codec import encode_in_turns
from groupstorm.turns import Turns, in_turns

#: Versions that may name a topic by its id.
_FIRST_BY_ID = 12
_ANSWERS_KEPT = 64
#: Topics and partitions of one kept answer. Longer ones are encoded in turns.
_KEPT_AT_MOST = 20_000
#: The limit of all kept answers.
_BYTES_KEPT = 8 * 1024 * 1024
#: A kept answer's version, address, number of changes of the topics, the cluster's operations, and topics.
_Key = tuple[object, ...]
_CHANGES = 2


def metadata(state: BrokerState, call: Call) -> Turns[Done | Encoded]:
    """Metadata (key 3), versions 0-13.

    * v0: an empty list asks for all topics. From v1 on null does, and an empty list asks for none, which
      librdkafka and aiokafka ask first.
    * v4: allow_auto_topic_creation; before, unknown topics are always created if the broker allows it.
    * v8-10 / v8+: authorized operations of cluster / topics when asked for, else INT32_MIN.
    * v10: topic ids in the response. v12: topics may be asked for by id, with a null name; the answer to an
      id that nobody has is UNKNOWN_TOPIC_ID.
    * A topic that is created on demand is answered UNKNOWN_TOPIC_OR_PARTITION this once, as in Kafka, which
      creates it meanwhile (DefaultAutoTopicCreationManager); clients ask again.
    * Topics that the client may not describe are left out of all topics. If they are named, the answer is
      TOPIC_AUTHORIZATION_FAILED whether or not there is one: by name without the id, by id without the name.
      A topic is created on demand for those who may create topics, or this one.
    * The encoded answer is kept until the topics change: a hundred topics of a hundred partitions take
      longer to build than to write.
    """
    found = yield from _find(state, call)
    cluster_asked = getattr(call.message, "include_cluster_authorized_operations", False)
    operations = cluster_operations(state, call, cluster_asked)
    key = (call.version, call.reached_at, state.topics.changes, operations, tuple(found))
    partitions = (len(topic.partitions) for one in found if (topic := state.topics.get_by_id(one.topic_id)))
    is_kept = len(found) + sum(partitions) <= _KEPT_AT_MOST
    body = state.metadata_cache.get(key) if is_kept else None
    if body is None:
        response = yield from _response(state, call, found, operations)
        if not is_kept:
            return Done(response)
        body = [b"".join((yield from encode_in_turns(response)))]
        if state.topics.changes == key[_CHANGES]:
            _keep(state.metadata_cache, key, body)
    return Encoded(body)


def _keep(kept: dict[_Key, list[bytes]], key: _Key, body: list[bytes]) -> None:
    """Keep an answer: few ones and small ones, and none of before a change of the topics."""
    size = sum(len(chunk) for one in (*kept.values(), body) for chunk in one)
    is_outdated = any(one[_CHANGES] != key[_CHANGES] for one in kept)
    if is_outdated or len(kept) >= _ANSWERS_KEPT or size > _BYTES_KEPT:
        kept.clear()
    if sum(map(len, body)) <= _BYTES_KEPT:
        kept[key] = body


class _Found(NamedTuple):
    """A topic of the answer."""

    name: str | None
    topic_id: uuid.UUID | None
    error: Error
    operations: int = NO_AUTHORIZED_OPERATIONS


def _find(state: BrokerState, call: Call) -> Turns[list[_Found]]:
    asked = call.message.topics
    found = []
    if asked is None or (call.version == 0 and not asked):
        for topic in tuple(state.topics):
            if topic_error(state, call, topic.name) is Error.NONE:
                found.append(_known(state, call, topic))
            yield 1
        return found
    may_create = yield from _may_create(state, call)
    for one in asked:
        topic_id = getattr(one, "topic_id", None)
        before = state.topics.changes
        found.append(
            _by_id(state, call, topic_id) if one.name is None else _by_name(state, call, one.name, may_create)
        )
        has_created = state.topics.changes != before
        yield COST_OF_TOPIC + state.config.num_partitions * COST_OF_PARTITION if has_created else 1
    return found


def _may_create(state: BrokerState, call: Call) -> Turns[bool]:
    """Whether unknown topics are created: Kafka asks the controller to create all of them with one request,
    which has its limit (DefaultAutoTopicCreationManager, ReplicationControlManager)."""
    if not state.config.auto_create_topics_enable or not getattr(
        call.message, "allow_auto_topic_creation", True
    ):
        return False
    unknown = set()
    for one in call.message.topics:
        if state.topics.get(one.name or "") is None:
            unknown.add(one.name)
        if len(unknown) * state.config.num_partitions > MAX_PARTITIONS_PER_REQUEST:
            return False
        yield 1
    return True


def _known(state: BrokerState, call: Call, topic: Topic) -> _Found:
    asked = getattr(call.message, "include_topic_authorized_operations", False)
    operations = authorized_operations(state, call, asked, ResourceType.TOPIC, topic.name)
    return _Found(topic.name, topic.topic_id, Error.NONE, operations)


def _by_id(state: BrokerState, call: Call, topic_id: uuid.UUID | None) -> _Found:
    if call.version < _FIRST_BY_ID:
        return _Found("", topic_id, Error.INVALID_REQUEST)  # 10 and 11 have the field, Kafka never served it
    topic = state.topics.get_by_id(topic_id)
    if topic is None:
        return _Found(None, topic_id, Error.UNKNOWN_TOPIC_ID)
    error = topic_error(state, call, topic.name)
    return _known(state, call, topic) if error is Error.NONE else _Found(None, topic_id, error)


def _by_name(state: BrokerState, call: Call, name: str, may_create: bool) -> _Found:
    error = topic_error(state, call, name)
    if error is not Error.NONE:
        return _Found(name, None, error)
    topic = state.topics.get(name)
    if topic is not None:
        return _known(state, call, topic)
    if may_create and not (
        may_on_cluster(state, call, Operation.CREATE)
        or may(state, call, Operation.CREATE, ResourceType.TOPIC, name)
    ):
        return _Found(name, None, Error.TOPIC_AUTHORIZATION_FAILED)
    try:
        check_name(name)
        if may_create and name in COORDINATORS_TOPICS:
            ensure_internal_topic(state, name)
        elif may_create:
            config = state.config
            replicas = min(config.default_replication_factor, len(state.cluster.nodes))
            state.create_topic(name, config.num_partitions, replicas)
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    except Refused as problem:
        error = problem.error
    asked = getattr(call.message, "include_topic_authorized_operations", False)
    return _Found(name, None, error, authorized_operations(state, call, asked, ResourceType.TOPIC, name))


def _response(state: BrokerState, call: Call, found: list[_Found], operations: int) -> Turns[Any]:
    topics = []
    for one in found:
        topics.append((yield from _metadata_topic(state, call, one)))
    return call.types.response(
        brokers=tuple(
            call.types.make(
                "MetadataResponseBroker",
                **call.types.fitting(state.address(node, call.reached_at), "MetadataResponseBroker"),
            )
            for node in state.cluster.nodes
        ),
        cluster_id=state.cluster_id,
        controller_id=state.cluster.controller,
        topics=tuple(topics),
        cluster_authorized_operations=operations,
        error_code=Error.NONE,
    )


def _metadata_topic(state: BrokerState, call: Call, found: _Found) -> Turns[Any]:
    name, topic_id, error, operations = found
    topic = None if error is not Error.NONE else state.topics.get_by_id(topic_id)
    partitions: tuple[Any, ...] = ()
    if topic is not None:
        partitions = yield from in_turns(
            _partition(call, "MetadataResponsePartition", topic, index)
            for index in range(len(topic.partitions))
        )
    yield 2
    return call.types.make(
        "MetadataResponseTopic",
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=topic is not None and topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def _partition(call: Call, structure: str, topic: Topic, index: int, **others: Any) -> Any:
    replicas = topic.replicas[index]
    return call.types.make(
        structure,
        error_code=Error.NONE,
        partition_index=index,
        leader_id=replicas[0],
        leader_epoch=LEADER_EPOCH,
        replica_nodes=replicas,
        isr_nodes=replicas,
        offline_replicas=(),
        **others,
    )


_BROKERS = 1
_NO_NODE = -1


def describe_cluster(state: BrokerState, call: Call) -> Done:
    """DescribeCluster (key 60), versions 0-2 (KIP-700).

    v1: endpoint type; controllers' endpoints are refused (UNSUPPORTED_ENDPOINT_TYPE), because there are no
    controllers apart from the brokers. v2: fenced brokers; there are none.
    """
    make = call.types.make
    endpoint_type = getattr(call.message, "endpoint_type", _BROKERS)
    known = endpoint_type == _BROKERS
    asked = call.message.include_cluster_authorized_operations
    brokers = (
        make(
            "DescribeClusterBroker",
            is_fenced=False,
            **call.types.fitting(state.address(node, call.reached_at), "DescribeClusterBroker"),
        )
        for node in state.cluster.nodes
    )
    response = call.types.response(
        error_code=Error.NONE if known else Error.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=None if known else f"endpoint type {endpoint_type}: only brokers (1) are described",
        endpoint_type=endpoint_type,
        cluster_id=state.cluster_id,
        controller_id=state.cluster.controller if known else _NO_NODE,
        brokers=tuple(brokers) if known else (),
        cluster_authorized_operations=cluster_operations(state, call, asked),
    )
    return Done(response)


#: max.request.partition.size.limit
PARTITIONS_DESCRIBED = 2000
#: So many names are looked through in the time of a unit of work.
_SCANNED_PER_WORK = 20
_SORTED_AT_ONCE = 5_000


def describe_topic_partitions(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeTopicPartitions (key 75), version 0: topics in order of their names, a page at a time
    (KIP-966).
    """
    cursor = call.message.cursor
    start, first = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    asked = call.message.topics or [*state.topics]
    named = set((yield from in_turns(topic.name for topic in asked)))
    errors = yield from in_turns(topic_error(state, call, name) for name in named)
    denied = {name for name, error in zip(named, errors, strict=True) if error is not Error.NONE}
    yield len(named) // _SCANNED_PER_WORK
    hidden = [name for name in sorted(denied) if call.message.topics]
    named -= denied
    left = max(1, min(call.message.response_partition_limit, PARTITIONS_DESCRIBED))
    topics, next_cursor = [], None
    waiting = [name for name in named if name >= start]
    yield len(waiting) // _SCANNED_PER_WORK
    runs = []  # to sort them all would take too long at once
    for at in range(0, len(waiting), _SORTED_AT_ONCE):
        runs.append(sorted(waiting[at : at + _SORTED_AT_ONCE]))
        yield _SORTED_AT_ONCE // _SCANNED_PER_WORK
    for name in merge(*runs):
        if left == 0:
            next_cursor = call.types.make("Cursor", topic_name=name, partition_index=0)
            break
        topic = state.topics.get(name)
        yield 3
        operations = authorized_operations(state, call, True, ResourceType.TOPIC, name)
        if topic is None:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
            topics.append(_described_topic(call, name, error, operations=operations))
            continue
        begin = max(0, first) if name == start else 0
        numbers = range(begin, min(len(topic.partitions), begin + left))
        left -= len(numbers)
        topics.append(_described_topic(call, name, Error.NONE, topic, numbers, operations))
        if numbers.stop < len(topic.partitions):
            next_cursor = call.types.make("Cursor", topic_name=name, partition_index=numbers.stop)
            break
    # the topics that the client may not describe come last, whether or not there are any
    topics += [_described_topic(call, name, Error.TOPIC_AUTHORIZATION_FAILED) for name in hidden]
    return Done(call.types.response(topics=tuple(topics), next_cursor=next_cursor))


def _described_topic(
    call: Call,
    name: str,
    error: Error,
    topic: Topic | None = None,
    numbers: Iterable[int] = (),
    operations: int = NO_AUTHORIZED_OPERATIONS,
) -> Any:
    structure = "DescribeTopicPartitionsResponsePartition"
    elr: dict[str, Any] = {"eligible_leader_replicas": (), "last_known_elr": ()}
    return call.types.make(
        "DescribeTopicPartitionsResponseTopic",
        error_code=error,
        name=name,
        topic_id=None if topic is None else topic.topic_id,
        is_internal=topic is not None and topic.is_internal,
        partitions=()
        if topic is None
        else tuple(_partition(call, structure, topic, number, **elr) for number in numbers),
        topic_authorized_operations=operations,
    )


APIS = (
    Api(3, "Metadata", 0, 13, metadata, older=(11, 12), on_topics=Operation.DESCRIBE, errors=EACH_TOPIC),
    Api(60, "DescribeCluster", 0, 2, describe_cluster, older=(0, 1)),
    Api(
        75, "DescribeTopicPartitions", 0, 0, describe_topic_partitions, older=(),
        on_topics=Operation.DESCRIBE, errors=EACH_TOPIC,
    ),
)  # fmt: skip
