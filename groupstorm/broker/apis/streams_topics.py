"""The repartition and changelog topics of streams groups: who may name and create them, and their creation.

The group coordinator says with each heartbeat which ones are missing (KafkaApis.handleStreamsGroupHeartbeat,
DefaultAutoTopicCreationManager.createStreamsInternalTopics of Kafka 4.4.0). Kafka creates them behind the
answer. A topic that could not be created is left alone for two heartbeat intervals, and answers say why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.broker.apis.api import BrokerState, Call, CreationError
from groupstorm.broker.apis.key_19_create_topics import (
    COST_OF_PARTITION,
    COST_OF_TOPIC,
    EXCESSIVE,
    checked_configs,
    replication_factor,
)
from groupstorm.broker.apis.rights import may, may_on_cluster
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.broker.log.topics import INTERNAL_TOPICS, MAX_PARTITIONS_PER_REQUEST, check_name
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.streams.configuration import Status
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.topology import TopicInfo
from groupstorm.javahash import hash_order
from groupstorm.turns import Turns

_DEFAULT = -1
#: So many errors are told.
_TOLD = 3

Statuses = tuple[tuple[int, str], ...]


def check_names(names: Sequence[str]) -> Turns[None]:
    """Raises Refused if a topology names topics that it must not have, or that nobody can have."""
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise _invalid(
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        )
    illegal = []
    for name in names:
        yield 1
        try:
            check_name(name)
        except Refused:
            illegal.append(name)
    if illegal:
        raise _invalid(f"Topic names {','.join(illegal)} are not valid topic names.")


def _invalid(sentence: str) -> Refused:
    return Refused(Error.STREAMS_INVALID_TOPOLOGY, sentence)


def create_missing(state: BrokerState, call: Call, answer: StreamsGroupHeartbeatResponse) -> Turns[Statuses]:
    """Create the internal topics that an answer names, and give the answer's statuses, which say what stands
    in the way."""
    missing = answer.to_create
    if not missing:
        return answer.statuses
    denied = [] if may_on_cluster(state, call, Operation.CREATE) else _denied(state, call, missing)
    if denied:
        return _with_detail(answer.statuses, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
    known = state.creation_errors
    known = state.creation_errors = {
        name: error for name, error in known.items() if call.now_ms < error.until_ms
    }
    told = [f"{name} ({known[name].sentence})" for name in hash_order(missing) if name in known]
    wanted = {name: topic for name, topic in missing.items() if name not in known}
    yield from _create(state, wanted, call.now_ms + 2 * answer.heartbeat_interval_ms)
    if not told:
        return answer.statuses
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return _with_detail(answer.statuses, f"Creation failed: {', '.join(told[:_TOLD])}{more}.")


def _denied(state: BrokerState, call: Call, topics: Mapping[str, TopicInfo]) -> list[str]:
    return [name for name in topics if not may(state, call, Operation.CREATE, ResourceType.TOPIC, name)]


def _with_detail(statuses: Statuses, detail: str) -> Statuses:
    """The status of the missing topics says this, too."""
    missing = Status.MISSING_INTERNAL_TOPICS
    return tuple((code, f"{said}; {detail}" if code == missing else said) for code, said in statuses)


def _create(state: BrokerState, topics: Mapping[str, TopicInfo], until_ms: int) -> Turns[None]:
    """Create topics as one CreateTopics request does, and keep the errors for so long."""
    is_excessive = sum(topic.partitions for topic in topics.values()) > MAX_PARTITIONS_PER_REQUEST
    for name, topic in topics.items():
        try:
            if is_excessive:
                raise Refused(Error.POLICY_VIOLATION, EXCESSIVE)
            factor = replication_factor(state, topic.replication or _DEFAULT)
            state.create_topic(name, topic.partitions, factor, checked_configs(topic.configs))
        except Refused as problem:
            state.creation_errors[name] = CreationError(str(problem), until_ms)
        yield COST_OF_TOPIC + topic.partitions * COST_OF_PARTITION
