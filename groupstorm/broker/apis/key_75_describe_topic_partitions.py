"""DescribeTopicPartitions (key 75), version 0: topics in order of their names, a page at a time (KIP-966)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from typing import Any

from groupstorm.broker.apis.api import EACH_TOPIC, Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import NO_AUTHORIZED_OPERATIONS, authorized_operations, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.log.partition import LEADER_EPOCH
from groupstorm.broker.log.topics import Topic
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

#: max.request.partition.size.limit
PARTITIONS_DESCRIBED = 2000
#: So many names are looked through in the time of a unit of work.
_SCANNED_PER_WORK = 20
_SORTED_AT_ONCE = 5_000


def handle(state: BrokerState, call: Call) -> Turns[Done]:
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
            topics.append(_topic(call, name, error, operations=operations))
            continue
        begin = max(0, first) if name == start else 0
        numbers = range(begin, min(len(topic.partitions), begin + left))
        left -= len(numbers)
        topics.append(_topic(call, name, Error.NONE, topic, numbers, operations))
        if numbers.stop < len(topic.partitions):
            next_cursor = call.types.make("Cursor", topic_name=name, partition_index=numbers.stop)
            break
    # the topics that the client may not describe come last, whether or not there are any
    topics += [_topic(call, name, Error.TOPIC_AUTHORIZATION_FAILED) for name in hidden]
    return Done(call.types.response(topics=tuple(topics), next_cursor=next_cursor))


API = Api(
    75, "DescribeTopicPartitions", 0, 0, handle, older=(), on_topics=Operation.DESCRIBE, errors=EACH_TOPIC
)


def _topic(
    call: Call,
    name: str,
    error: Error,
    topic: Topic | None = None,
    numbers: Iterable[int] = (),
    operations: int = NO_AUTHORIZED_OPERATIONS,
) -> Any:
    return call.types.make(
        "DescribeTopicPartitionsResponseTopic",
        error_code=error,
        name=name,
        topic_id=None if topic is None else topic.topic_id,
        is_internal=topic is not None and topic.is_internal,
        partitions=() if topic is None else tuple(_partition(call, topic, number) for number in numbers),
        topic_authorized_operations=operations,
    )


def _partition(call: Call, topic: Topic, number: int) -> Any:
    replicas = topic.replicas[number]
    return call.types.make(
        "DescribeTopicPartitionsResponsePartition",
        error_code=Error.NONE,
        partition_index=number,
        leader_id=replicas[0],
        leader_epoch=LEADER_EPOCH,
        replica_nodes=replicas,
        isr_nodes=replicas,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=(),
    )
