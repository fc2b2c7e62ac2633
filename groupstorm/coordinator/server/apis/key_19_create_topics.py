"""CreateTopics (key 19), versions 2-7.

* v4: -1 partitions or replicas ask for the broker's defaults. v5: the answer holds numbers of
  partitions and replicas, and the configuration. v7: the topic id.
* The checks are those of ReplicationControlManager. There is one broker: more than one replica gets
  INVALID_REPLICATION_FACTOR, an assignment to another broker INVALID_REPLICA_ASSIGNMENT.
* Topic configurations have no effect here and are not kept: a request that has some succeeds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done
from groupstorm.coordinator.server.log.topics import Topic, TopicError

_DEFAULT = -1
_REPLICAS = 1


def handle(state: BrokerState, call: Call) -> Done:
    times_asked = Counter(asked.name for asked in call.message.topics)
    results = []
    for asked in call.message.topics:
        try:
            if times_asked[asked.name] > 1:
                raise TopicError(Error.INVALID_REQUEST, f"topic {asked.name} is there more than once")
            results.append(_created(call, asked, *_create(state, call, asked)))
        except TopicError as problem:
            results.append(_refused(call, asked, problem))
    return Done(call.types.response(topics=tuple(results)))


API = Api(19, "CreateTopics", 2, 7, handle)


def _create(state: BrokerState, call: Call, asked: Any) -> tuple[Topic | None, int]:
    """The topic (none if the request is for validation only) and its number of partitions."""
    partitions = _partitions(state, asked)
    if call.message.validate_only:
        state.topics.check_new(asked.name, partitions)
        return None, partitions
    return state.topics.create(asked.name, partitions), partitions


def _partitions(state: BrokerState, asked: Any) -> int:
    if asked.assignments:
        return _assigned_partitions(state, asked)
    if asked.replication_factor not in (_DEFAULT, _REPLICAS):
        raise TopicError(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {asked.replication_factor}: there is {_REPLICAS} broker",
        )
    return state.config.num_partitions if asked.num_partitions == _DEFAULT else int(asked.num_partitions)


def _assigned_partitions(state: BrokerState, asked: Any) -> int:
    if asked.num_partitions != _DEFAULT or asked.replication_factor != _DEFAULT:
        raise TopicError(
            Error.INVALID_REQUEST, "with a replica assignment, partitions and replication factor must be -1"
        )
    indexes = sorted(assignment.partition_index for assignment in asked.assignments)
    if indexes != list(range(len(indexes))):
        raise TopicError(
            Error.INVALID_REPLICA_ASSIGNMENT, "partitions of an assignment count from 0, no gaps"
        )
    if any(assignment.broker_ids != (state.config.node_id,) for assignment in asked.assignments):
        raise TopicError(
            Error.INVALID_REPLICA_ASSIGNMENT, f"the only broker is {state.config.node_id}: one replica, there"
        )
    return len(indexes)


def _created(call: Call, asked: Any, topic: Topic | None, partitions: int) -> Any:
    return call.types.make(
        "CreatableTopicResult",
        name=asked.name,
        topic_id=None if topic is None else topic.topic_id,
        error_code=Error.NONE,
        error_message=None,
        num_partitions=partitions,
        replication_factor=_REPLICAS,
        configs=(),
    )


def _refused(call: Call, asked: Any, problem: TopicError) -> Any:
    return call.types.make(
        "CreatableTopicResult",
        name=asked.name,
        topic_id=None,
        error_code=problem.error,
        error_message=str(problem),
        configs=(),
    )
