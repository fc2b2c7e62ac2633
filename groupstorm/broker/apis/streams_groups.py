"""StreamsGroupHeartbeat and StreamsGroupTopologyDescriptionUpdate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from groupstorm.assignors.streams.groups import TaskIds
from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, CoordinatorsApi, Done, read
from groupstorm.broker.apis.resources import READ_GROUP, may, may_on_cluster, topic_error
from groupstorm.broker.apis.topics import (
    COST_OF_PARTITION,
    COST_OF_TOPIC,
    EXCESSIVE,
    checked_configs,
    replication_factor,
)
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.log.topics import INTERNAL_TOPICS, MAX_PARTITIONS_PER_REQUEST, check_name
from groupstorm.broker.state import BrokerState, CreationError
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.streams.messages import (
    EndpointPartitions,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    UpdateTopologyDescription,
)
from groupstorm.coordinator.streams.topology import CopartitionGroup, Status, Subtopology, TopicInfo, Topology
from groupstorm.javahash import hash_order
from groupstorm.protocol.codec.plain_values import fields_of
from groupstorm.turns import Turns


def _read_heartbeat(call: Call) -> StreamsGroupHeartbeat:
    message = call.message
    endpoint, tags = message.user_endpoint, message.client_tags
    return read(
        StreamsGroupHeartbeat,
        message,
        call.version,
        call.client_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=None if tags is None else _pairs(tags),
        topology=None if message.topology is None else _topology(message.topology),
        active=_tasks(message.active_tasks),
        standby=_tasks(message.standby_tasks),
        warmup=_tasks(message.warmup_tasks),
        task_offsets=_offsets(message.task_offsets),
        task_end_offsets=_offsets(message.task_end_offsets),
        client_host=call.client_host,
    )


def streams_group_heartbeat(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """StreamsGroupHeartbeat (key 88), versions 0-1 (KIP-1071).

    * v1: the acceptable recovery lag, whether the topology's description is wanted, MISSING_CLIENT_TAGS.
    * A member needs READ on its group and DESCRIBE on each topic of its topology. The broker creates the
      internal topics that the group lacks if the member may create them (`_create_missing`).
    """
    topology = call.message.topology
    yield 0 if topology is None else len(topology.subtopologies)
    request = _read_heartbeat(call)

    def finish(answers: Sequence[StreamsGroupHeartbeatResponse]) -> Turns[Any]:
        (answer,) = answers
        statuses = yield from _create_missing(state, call, answer)
        return _response(call, answer._replace(statuses=statuses))

    if request.topology is not None:
        yield len(request.topology.subtopologies)
        names = list(dict.fromkeys(_topics(request.topology)))
        try:
            yield from _check_names(names)
            for name in names:
                yield 2
                if topic_error(state, call, name) is not Error.NONE:
                    return Done(_response(call, _refused(Error.TOPIC_AUTHORIZATION_FAILED)))
        except Refused as problem:
            return Done(_response(call, _refused(problem.error, str(problem))))
        if call.size_bytes > state.config.message_max_bytes:
            # the topology's record would be too large, which the coordinator finds out only at the end
            return Done(_response(call, _refused(Error.UNKNOWN_SERVER_ERROR)))
    return AskCoordinator((request,), finish)


def _refused(error: Error, sentence: str | None = None) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error, error_message=sentence)


def _topics(topology: Topology) -> Iterable[str]:
    """The topics of a topology, in the order in which Kafka looks at them."""
    for one in topology.subtopologies:
        yield from (*one.sources, *one.sinks)
        yield from (topic.name for topic in (*one.repartition, *one.changelogs))


def _topology(sent: Any) -> Topology:
    subtopologies = (
        Subtopology(
            one.subtopology_id,
            one.source_topics,
            one.source_topic_regex,
            one.repartition_sink_topics,
            tuple(map(_topic, one.repartition_source_topics)),
            tuple(map(_topic, one.state_changelog_topics)),
            tuple(
                CopartitionGroup(
                    group.source_topics, group.source_topic_regex, group.repartition_source_topics
                )
                for group in one.copartition_groups
            ),
        )
        for one in sent.subtopologies
    )
    return Topology(sent.epoch, tuple(subtopologies))


def _topic(sent: Any) -> TopicInfo:
    return TopicInfo(sent.name, sent.partitions, sent.replication_factor, _pairs(sent.topic_configs))


def _pairs(sent: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one.key, one.value) for one in sent)


def _tasks(sent: Any) -> TaskIds | None:
    return None if sent is None else tuple((one.subtopology_id, one.partitions) for one in sent)


def _offsets(sent: Any) -> tuple[tuple[str, int, int], ...] | None:
    return None if sent is None else tuple((one.subtopology_id, one.partition, one.offset) for one in sent)


def _response(call: Call, answer: StreamsGroupHeartbeatResponse) -> Any:
    make = call.types.make
    endpoints = answer.endpoints
    own = {
        # version 0 has a field of another type in this place, which Kafka 4.4.0 never sets
        "acceptable_recovery_lag": answer.acceptable_recovery_lag if call.version else 0,
        "status": tuple(
            make("Status", status_code=code, status_detail=detail) for code, detail in answer.statuses
        ),
        "active_tasks": task_ids(call, answer.active),
        "standby_tasks": task_ids(call, answer.standby),
        "warmup_tasks": task_ids(call, answer.warmup),
        "partitions_by_user_endpoint": endpoints and tuple(_endpoint(call, one) for one in endpoints),
    }
    return call.types.response(**call.types.fitting(fields_of(answer)) | own)


def task_ids(call: Call, tasks: TaskIds | None) -> tuple[Any, ...] | None:
    """Lists of tasks as responses have them."""
    make = call.types.make
    if tasks is None:
        return None
    return tuple(make("TaskIds", subtopology_id=name, partitions=numbers) for name, numbers in tasks)


def _endpoint(call: Call, endpoint: EndpointPartitions) -> Any:
    make = call.types.make
    host, port, *partitions = endpoint
    active, standby = (
        tuple(make("TopicPartition", topic=topic, partitions=numbers) for topic, numbers in one.items())
        for one in partitions
    )
    return make(
        "EndpointToPartitions",
        user_endpoint=make("Endpoint", host=host, port=port),
        active_partitions=active,
        standby_partitions=standby,
    )


_DEFAULT = -1
#: So many errors are told.
_TOLD = 3

_Statuses = tuple[tuple[int, str], ...]


def _check_names(names: Sequence[str]) -> Turns[None]:
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


def _create_missing(
    state: BrokerState, call: Call, answer: StreamsGroupHeartbeatResponse
) -> Turns[_Statuses]:
    """Create the repartition and changelog topics that an answer names, and give the answer's statuses, which
    say what stands in the way.

    The group coordinator says with each heartbeat which ones are missing
    (KafkaApis.handleStreamsGroupHeartbeat, DefaultAutoTopicCreationManager.createStreamsInternalTopics of
    Kafka 4.4.0). Kafka creates them behind the answer. A topic that could not be created is left alone for
    two heartbeat intervals, and answers say why.
    """
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


def _with_detail(statuses: _Statuses, detail: str) -> _Statuses:
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


def streams_group_topology_description_update(_state: BrokerState, call: Call) -> AskCoordinator:
    """StreamsGroupTopologyDescriptionUpdate (key 93), version 0 (KIP-1331).

    There is no plugin that keeps descriptions of topologies, as in Kafka by default: the answer is
    UNSUPPORTED_VERSION, and no member is ever asked for a description. A client needs READ on the group.
    """
    request = read(UpdateTopologyDescription, call.message, call.version, call.client_id, description=None)
    return AskCoordinator(
        (request,), lambda answers: call.types.response(**call.types.fitting(fields_of(answers[0])))
    )


APIS = (
    CoordinatorsApi(
        88, "StreamsGroupHeartbeat", 0, 1, streams_group_heartbeat, older=(), needs=(READ_GROUP,),
        on_topics=Operation.DESCRIBE,
    ),
    AskingApi(
        93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, streams_group_topology_description_update,
        older=(), needs=(READ_GROUP,),
    ),
)  # fmt: skip
