"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from groupstorm.broker.apis.api import EACH_TOPIC, Api, Call, Done
from groupstorm.broker.apis.resources import SENTENCES, may, topic_error
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.changes import TopicDeleted
from groupstorm.broker.described_configs import topic_entries
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, MAX_PARTITIONS_PER_REQUEST, Topic
from groupstorm.broker.state import BrokerState
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config_options import ConfigError, check
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.turns import Turns, in_turns

_DEFAULT = -1
#: Kafka's sentence about a request that would create too many partitions.
EXCESSIVE = "Excessively large number of partitions per request."
#: The work of making a topic, and each of its partitions.
COST_OF_TOPIC, COST_OF_PARTITION = 20, 3
_FIRST_WITH_CONFIGS = 5
_TWICE = "Duplicate topic name."


def create_topics(state: BrokerState, call: Call) -> Turns[Done]:
    """CreateTopics (key 19), versions 2-7.

    * v4: -1 partitions or replicas ask for the broker's defaults. v5: the answer holds numbers of
      partitions and replicas, and the configuration. v7: the topic id.
    * A client needs CREATE on the cluster or on the topic. It sees partitions, replicas and configuration of
      what it has created only if it may describe the topic's configurations.
    * The checks are those of ReplicationControlManager and LogConfig. Replicas are names only: every
      partition is there once, and its leader never fails.
    """
    times_asked = Counter((yield from in_turns(asked.name for asked in call.message.topics)))
    numbers = yield from in_turns(_partitions(state, asked) for asked in call.message.topics)
    is_excessive = sum(numbers) > MAX_PARTITIONS_PER_REQUEST
    results = []
    for asked in call.message.topics:
        yield 10
        times = times_asked.pop(asked.name, 0)
        if not times:
            continue  # a topic that is asked for twice is answered once
        try:
            if is_excessive:
                raise Refused(Error.POLICY_VIOLATION, EXCESSIVE)
            if times > 1:
                raise Refused(Error.INVALID_REQUEST, _TWICE)
            error = topic_error(state, call, asked.name)
            if error is not Error.NONE:
                raise Refused(error, "Authorization failed.")
            topic, partitions, factor = _create(state, call, asked)
            yield COST_OF_TOPIC + partitions * COST_OF_PARTITION
            results.append(_created(state, call, asked, topic, partitions, factor))
        except Refused as problem:
            results.append(_refused(call, asked, problem))
    return Done(call.types.response(topics=tuple(results)))


def _partitions(state: BrokerState, asked: Any) -> int:
    """The number of partitions that the request wants for the topic
    (ReplicationControlManager.validateTotalNumberOfPartitions)."""
    return len(asked.assignments) if asked.assignments else max(0, _wanted_partitions(state, asked))


def _wanted_partitions(state: BrokerState, asked: Any) -> int:
    return state.config.num_partitions if asked.num_partitions == _DEFAULT else int(asked.num_partitions)


def _create(state: BrokerState, call: Call, asked: Any) -> tuple[Topic | None, int, int]:
    """The topic (none if the request is for validation only), its partitions and replicas of each."""
    replicas = _assigned_replicas(state, asked.assignments)
    configs = _configs(asked)
    if replicas:
        if asked.num_partitions != _DEFAULT or asked.replication_factor != _DEFAULT:
            sentence = "with a replica assignment, partitions and replication factor must be -1"
            raise Refused(Error.INVALID_REQUEST, sentence)
        partitions, factor = len(replicas), len(replicas[0])
    else:
        partitions, factor = (
            _wanted_partitions(state, asked),
            replication_factor(state, asked.replication_factor),
        )
    if call.message.validate_only:
        state.topics.check_new(asked.name, partitions)
        return None, partitions, factor
    return state.create_topic(asked.name, partitions, factor, configs, replicas), partitions, factor


def replication_factor(state: BrokerState, asked: int) -> int:
    """The replicas of each partition of a new topic; -1: the broker's default. Raises Refused."""
    brokers, factor = len(state.cluster.nodes), asked
    if factor == _DEFAULT:
        factor = state.config.default_replication_factor
    if factor < 1:
        sentence = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, sentence)
    if factor > brokers:
        raise Refused(
            Error.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            f"cannot be reached because only {brokers} broker(s) are registered or some brokers have all "
            "their log directories cordoned.",
        )
    return factor


def _assigned_replicas(state: BrokerState, assignments: Any, first: int = 0) -> list[tuple[int, ...]]:
    """The replicas that a request names, by partition from ``first`` on; [] if it names none.

    Raises Refused for gaps, unknown brokers, and unequal numbers of replicas.
    """
    by_index = {one.partition_index: tuple(one.broker_ids) for one in assignments or ()}
    if sorted(by_index) != list(range(first, first + len(assignments or ()))):
        sentence = f"partitions of an assignment count from {first}, no gaps"
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    replicas = [by_index[index] for index in sorted(by_index)]
    for one in replicas:
        if not one or len(set(one)) < len(one) or not set(one) <= set(state.cluster.nodes):
            nodes = ", ".join(map(str, state.cluster.nodes))
            sentence = f"replicas {list(one)}: expected different ones of the brokers {nodes}"
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    if len(set(map(len, replicas))) > 1:
        sentence = "the partitions of an assignment have one number of replicas"
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    return replicas


def _configs(asked: Any) -> dict[str, str]:
    return checked_configs([(one.name, one.value) for one in asked.configs])


def checked_configs(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """The configurations of a new topic. Raises Refused (ControllerConfigurationValidator)."""
    without_value = [name for name, value in configs if value is None]
    if without_value:
        sentence = f"Null value not supported for topic configs: {','.join(without_value)}"
        raise Refused(Error.INVALID_CONFIG, sentence)
    try:
        return {name: check(TOPIC_OPTIONS, "topic", name, value or "") for name, value in configs}
    except ConfigError as problem:
        raise Refused(Error.INVALID_CONFIG, str(problem)) from problem


def _created(
    state: BrokerState, call: Call, asked: Any, topic: Topic | None, partitions: int, factor: int
) -> Any:
    shown: dict[str, Any] = {"topic_config_error_code": Error.TOPIC_AUTHORIZATION_FAILED, "configs": ()}
    if may(state, call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, asked.name):
        shown = {
            "num_partitions": partitions,
            "replication_factor": factor,
            "configs": _entries(state, call, asked),
        }
    return call.types.make(
        "CreatableTopicResult",
        name=asked.name,
        topic_id=None if topic is None else topic.topic_id,
        error_code=Error.NONE,
        error_message=None,
        **shown,
    )


def _entries(state: BrokerState, call: Call, asked: Any) -> tuple[Any, ...]:
    if call.version < _FIRST_WITH_CONFIGS:
        return ()
    return tuple(
        call.types.make(
            "CreatableTopicConfigs",
            name=entry.name,
            value=entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in topic_entries(_configs(asked), state.dynamic_configs)
    )


def _refused(call: Call, asked: Any, problem: Refused) -> Any:
    return call.types.make(
        "CreatableTopicResult",
        name=asked.name,
        topic_id=None,
        error_code=problem.error,
        error_message=str(problem),
        configs=(),
    )


_FIRST_WITH_IDS = 6
_FIRST_SAYING_DISABLED = 3


def delete_topics(state: BrokerState, call: Call) -> Turns[Done]:
    """DeleteTopics (key 20), versions 1-6.

    * v3: TOPIC_DELETION_DISABLED has a name of its own; before, INVALID_REQUEST. v5: error messages. v6:
      topics may be named by id (KIP-516).
    * A client needs DELETE on the cluster or on the topic. Without it, an answer to an id has the topic's
      name only for those who may describe the topic (ControllerApis.deleteTopics).
    * The topics of the coordinators cannot be deleted (POLICY_VIOLATION). In Kafka they can, with all groups.
    * The broker deletes the records at once, and with them the offsets that groups have committed for them.
    """
    times = Counter((yield from in_turns(_asked(call))))
    responses = []
    for name, topic_id in times:
        topic, error = _find(state, call, name, topic_id)
        if times[name, topic_id] > 1:
            error = Error.INVALID_REQUEST
        if topic is not None and topic.name in COORDINATORS_TOPICS:
            error = Error.POLICY_VIOLATION
        if topic is not None and error is Error.NONE:
            state.carry_out(TopicDeleted(topic.name))
        responses.append(_response(state, call, name, topic_id, topic, error))
        yield 5 if topic is None else 5 + len(topic.partitions)
    return Done(call.types.response(responses=tuple(responses)))


def _asked(call: Call) -> Iterator[tuple[str | None, Any]]:
    if call.version < _FIRST_WITH_IDS:
        return ((name, None) for name in call.message.topic_names)
    return ((one.name, one.topic_id) for one in call.message.topics)


def _find(state: BrokerState, call: Call, name: str | None, topic_id: Any) -> tuple[Topic | None, Error]:
    if not state.config.delete_topic_enable:
        told = call.version >= _FIRST_SAYING_DISABLED
        return None, Error.TOPIC_DELETION_DISABLED if told else Error.INVALID_REQUEST
    if (name is None) == (topic_id is None):
        return None, Error.INVALID_REQUEST
    if name is None:
        topic = state.topics.get_by_id(topic_id)
        return topic, Error.UNKNOWN_TOPIC_ID if topic is None else topic_error(state, call, topic.name)
    topic = state.topics.get(name)
    if topic is None and may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
        return None, Error.UNKNOWN_TOPIC_OR_PARTITION
    error = topic_error(state, call, name)
    if topic is None and error is Error.NONE:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    return topic, error


def _response(
    state: BrokerState, call: Call, name: str | None, topic_id: Any, topic: Topic | None, error: Error
) -> Any:
    known = topic is not None and (
        error is Error.NONE
        or (
            error is Error.TOPIC_AUTHORIZATION_FAILED
            and name is None
            and may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        )
    )
    return call.types.make(
        "DeletableTopicResult",
        name=topic.name if topic is not None and known else name,
        topic_id=topic.topic_id if topic is not None and known else topic_id,
        error_code=error,
        error_message=None if error is Error.NONE else SENTENCES.get(error, error.name),
    )


def create_partitions(state: BrokerState, call: Call) -> Turns[Done]:
    """CreatePartitions (key 37), versions 0-3: a topic grows (KIP-195); the checks are
    ReplicationControlManager's.
    """
    times_asked = Counter((yield from in_turns(asked.name for asked in call.message.topics)))
    results = []
    for asked in call.message.topics:
        times = times_asked.pop(asked.name, 0)
        if not times:
            continue
        error, sentence = Error.NONE, None
        try:
            if times > 1:
                raise Refused(Error.INVALID_REQUEST, _TWICE)
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
        replicas = _assigned_replicas(state, placed, present)
        if len(replicas) != asked.count - present:
            sentence = f"{len(replicas)} assignments for {asked.count - present} new partitions"
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    if not call.message.validate_only:
        state.grow_topic(topic, asked.count, replicas)


APIS = (
    Api(
        19, "CreateTopics", 2, 7, create_topics, on_topics=Operation.CREATE, on_all_topics=Operation.CREATE,
        errors=EACH_TOPIC,
    ),
    Api(
        20, "DeleteTopics", 1, 6, delete_topics, on_topics=Operation.DELETE, on_all_topics=Operation.DELETE,
        errors={"topic_names": "responses", "topics": "responses"},
    ),
    Api(
        37, "CreatePartitions", 0, 3, create_partitions, on_topics=Operation.ALTER,
        errors={"topics": "results"},
    ),
)  # fmt: skip
