"""CreateTopics (key 19), versions 2-7.

* v4: -1 partitions or replicas ask for the broker's defaults. v5: the answer holds numbers of
  partitions and replicas, and the configuration. v7: the topic id.
* A client needs CREATE on the cluster or on the topic. It sees partitions, replicas and configuration of what
  it has created only if it may describe the topic's configurations.
* The checks are those of ReplicationControlManager and LogConfig. Replicas are names only: every partition is
  there once, and its leader never fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import EACH_TOPIC, Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import may, topic_error
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.config_entries import topic_entries
from groupstorm.broker.log.topics import MAX_PARTITIONS_PER_REQUEST, Topic
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config_options import ConfigError, check
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns, in_turns

_DEFAULT = -1
#: Kafka's sentence about a request that would create too many partitions.
EXCESSIVE = "Excessively large number of partitions per request."
#: The work of making a topic, and each of its partitions.
COST_OF_TOPIC, COST_OF_PARTITION = 20, 3
_FIRST_WITH_CONFIGS = 5


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    times_asked = Counter((yield from in_turns(asked.name for asked in call.message.topics)))
    numbers = yield from in_turns(_partitions(state, asked) for asked in call.message.topics)
    is_excessive = sum(numbers) > MAX_PARTITIONS_PER_REQUEST
    results = []
    for asked in call.message.topics:
        yield 10
        try:
            if is_excessive:
                raise Refused(Error.POLICY_VIOLATION, EXCESSIVE)
            if times_asked[asked.name] > 1:
                raise Refused(Error.INVALID_REQUEST, f"topic {asked.name} is there more than once")
            error = topic_error(state, call, asked.name)
            if error is not Error.NONE:
                raise Refused(error, "Authorization failed.")
            topic, partitions, factor = _create(state, call, asked)
            yield COST_OF_TOPIC + partitions * COST_OF_PARTITION
            results.append(_created(state, call, asked, topic, partitions, factor))
        except Refused as problem:
            results.append(_refused(call, asked, problem))
    return Done(call.types.response(topics=tuple(results)))


API = Api(
    19, "CreateTopics", 2, 7, handle, on_topics=Operation.CREATE, on_all_topics=Operation.CREATE,
    errors=EACH_TOPIC,
)  # fmt: skip


def _partitions(state: BrokerState, asked: Any) -> int:
    """The number of partitions that the request wants for the topic
    (ReplicationControlManager.validateTotalNumberOfPartitions)."""
    return len(asked.assignments) if asked.assignments else max(0, _wanted_partitions(state, asked))


def _wanted_partitions(state: BrokerState, asked: Any) -> int:
    return state.config.num_partitions if asked.num_partitions == _DEFAULT else int(asked.num_partitions)


def _create(state: BrokerState, call: Call, asked: Any) -> tuple[Topic | None, int, int]:
    """The topic (none if the request is for validation only), its partitions and replicas of each."""
    replicas = assigned_replicas(state, asked.assignments)
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


def assigned_replicas(state: BrokerState, assignments: Any, first: int = 0) -> list[tuple[int, ...]]:
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
