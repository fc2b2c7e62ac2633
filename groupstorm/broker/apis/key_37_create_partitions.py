"""CreatePartitions (key 37), versions 0-3: a topic grows (KIP-195); the checks are
ReplicationControlManager's."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from groupstorm.broker.apis.api import COORDINATORS_TOPICS, Api, BrokerState, Call, Done
from groupstorm.broker.apis.key_19_create_topics import COST_OF_PARTITION, assigned_replicas
from groupstorm.broker.apis.rights import topic_error
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    times = Counter((yield from in_turns(asked.name for asked in call.message.topics)))
    results = []
    for asked in call.message.topics:
        error, sentence = Error.NONE, None
        try:
            if times[asked.name] > 1:
                raise Refused(Error.INVALID_REQUEST, f"topic {asked.name} is there more than once")
            error = topic_error(state, call, asked.name)
            if error is Error.NONE:
                _grow(state, call, asked)
        except Refused as problem:
            error, sentence = problem.error, str(problem)
        result = call.types.make(
            "CreatePartitionsTopicResult", name=asked.name, error_code=error, error_message=sentence
        )
        results.append(result)
        yield 2 + (max(0, asked.count) * COST_OF_PARTITION if error is Error.NONE else 0)
    return Done(call.types.response(results=tuple(results)))


API = Api(37, "CreatePartitions", 0, 3, handle, on_topics=Operation.ALTER, errors={"topics": "results"})


def _grow(state: BrokerState, call: Call, asked: Any) -> None:
    topic = state.topics.get(asked.name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {asked.name} does not exist")
    if topic.name in COORDINATORS_TOPICS:
        sentence = (
            f"topic {topic.name} keeps its partitions: groups and transactional ids are spread over them"
        )
        raise Refused(Error.POLICY_VIOLATION, sentence)
    state.topics.check_grown(topic, asked.count)
    replicas = None
    if asked.assignments is not None:
        present = len(topic.partitions)
        placed = [
            SimpleNamespace(partition_index=present + index, broker_ids=one.broker_ids)
            for index, one in enumerate(asked.assignments)
        ]
        replicas = assigned_replicas(state, placed, present)
        if len(replicas) != asked.count - present:
            sentence = f"{len(replicas)} assignments for {asked.count - present} new partitions"
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    if not call.message.validate_only:
        state.grow_topic(topic, asked.count, replicas)
