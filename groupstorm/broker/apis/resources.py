"""The topics and groups that requests name, and the rights of clients on them (KafkaApis, ControllerApis,
AclApis of Kafka 4.3).

A request that is about one resource is refused as a whole, before its handler is called. A request that names
several resources is answered with an error for each that its client may not use. Without an authorizer every
client may do everything. Topics have a name, or an id in the versions of KIP-516 and KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from groupstorm.broker.apis.api import Call, Done, Right
from groupstorm.broker.authorization import CLUSTER_NAME, Operation, ResourceType, Who
from groupstorm.broker.log.partition import LEADER_EPOCH, PartitionLog
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, Topic
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset
from groupstorm.turns import Turns, in_turns

NO_AUTHORIZED_OPERATIONS = -(2**31)
"""The client did not ask for them (MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED)."""

#: Type of a resource -> the error without a right on it, and Kafka's sentence (Errors).
_DENIED: Mapping[ResourceType, tuple[Error, str]] = {
    ResourceType.TOPIC: (Error.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (Error.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (Error.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}
SENTENCES: Mapping[Error, str] = dict(_DENIED.values())

READ_GROUP = Right(Operation.READ, ResourceType.GROUP, "group_id")
WRITE_TRANSACTIONAL_ID = Right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")


def on_cluster(
    operation: Operation, sentence: str | None = "Request {api} needs {operation} permission."
) -> Right:
    """A right on the cluster. The sentence is AuthHelper.authorizeClusterOperation's, unless an API has
    another one, or none."""
    return Right(operation, ResourceType.CLUSTER, None, sentence)


_OF_ALL = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
#: AclOperation codes of authorized operations (AclEntry.supportedOperations).
_SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        *(Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, *_OF_ALL),
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, *_OF_ALL),
    ResourceType.CLUSTER: (
        *(Operation.CREATE, Operation.ALTER, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE, *_OF_ALL),
    ),
}


def may(state: BrokerState, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    """Whether the client may do this with one resource."""
    if state.authorizer is None:
        return True
    return state.authorizer.allows(_who(call), operation, resource_type, name)


def may_on_cluster(state: BrokerState, call: Call, operation: Operation) -> bool:
    return may(state, call, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def may_write_anywhere(state: BrokerState, call: Call) -> bool:
    """Whether the client may be an idempotent producer (KIP-679): WRITE on any topic, or IDEMPOTENT_WRITE."""
    if state.authorizer is None or may_on_cluster(state, call, Operation.IDEMPOTENT_WRITE):
        return True
    return state.authorizer.allows_some(_who(call), Operation.WRITE, ResourceType.TOPIC)


def missing_right(state: BrokerState, call: Call) -> tuple[Error, str | None] | None:
    """The error, and Kafka's sentence, of a client without a right that the whole request needs."""
    if state.authorizer is None:
        return None
    for right in call.api.needs:
        name = CLUSTER_NAME if right.field is None else getattr(call.message, right.field)
        if name is not None and not may(state, call, right.operation, right.resource_type, name):
            about = {"api": call.api.name, "operation": right.operation.name}
            return _DENIED[right.resource_type][0], right.sentence and right.sentence.format(**about)
    return None


def error_without(
    state: BrokerState, call: Call, operation: Operation, resource_type: ResourceType, name: str
) -> Error:
    """The error of a resource with which the client may not do this."""
    may_use = may(state, call, operation, resource_type, name)
    return Error.NONE if may_use else _DENIED[resource_type][0]


def topic_error(state: BrokerState, call: Call, name: str) -> Error:
    """The error of a topic that the client may not use in this way, whether or not there is one."""
    on_topics, on_all = call.api.on_topics, call.api.on_all_topics
    assert on_topics is not None
    error = error_without(state, call, on_topics, ResourceType.TOPIC, name)
    is_on_all = error is not Error.NONE and on_all is not None and may_on_cluster(state, call, on_all)
    return Error.NONE if is_on_all else error


def may_describe_topic(state: BrokerState, call: Call, name: str) -> bool:
    return may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, name)


def group_error(state: BrokerState, call: Call, name: str) -> Error:
    """The error of a group that the client may not use in this way."""
    assert call.api.on_groups is not None
    return error_without(state, call, call.api.on_groups, ResourceType.GROUP, name)


def authorized_operations(
    state: BrokerState, call: Call, asked: bool, resource_type: ResourceType, name: str
) -> int:
    """The bit field of the operations that the client may do with a resource, if it has asked for them."""
    if not asked:
        return NO_AUTHORIZED_OPERATIONS
    return sum(1 << one for one in _SUPPORTED[resource_type] if may(state, call, one, resource_type, name))


def cluster_operations(state: BrokerState, call: Call, asked: bool) -> int:
    """The operations that the client may do with the cluster: none if it may not describe the cluster."""
    if asked and not may_on_cluster(state, call, Operation.DESCRIBE):
        return 0
    return authorized_operations(state, call, asked, ResourceType.CLUSTER, CLUSTER_NAME)


def _who(call: Call) -> Who:
    return Who(call.principal, call.client_host.removeprefix("/"))


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


class NamedPartitions(NamedTuple):
    """The partitions that a request names. ``errors``: of each, by its topic's name or id; ``known``: those
    that exist, by name, as the request has them; ``keys``: name -> how the request calls the topic."""

    errors: dict[tuple[TopicKey, int], Error]
    known: dict[str, dict[int, Any]]
    keys: dict[str, TopicKey]

    @property
    def offsets(self) -> dict[str, dict[int, CommittedOffset]]:
        """The offsets that a client commits for the known partitions."""
        return {
            name: {number: _offset(asked) for number, asked in partitions.items()}
            for name, partitions in self.known.items()
        }


def _offset(asked: Any) -> CommittedOffset:
    leader_epoch = getattr(asked, "committed_leader_epoch", -1)
    return CommittedOffset(asked.committed_offset, leader_epoch, asked.committed_metadata or "")


def _topic_key(asked: Any) -> TopicKey:
    """The name of a topic in a request, or its id if the version has no names."""
    key: TopicKey = asked.name if hasattr(asked, "name") else asked.topic_id
    return key


def named_partitions(state: BrokerState, call: Call) -> Turns[NamedPartitions]:
    """Look for the partitions that a request names."""
    named = NamedPartitions({}, {}, {})
    for topic in call.message.topics:
        found = known, _ = find_topic(state, call, topic)
        name, key = "" if known is None else known.name, _topic_key(topic)
        named.keys[name] = key
        yield 1
        for one in topic.partitions:
            yield 2
            number = one.partition_index
            error = named.errors[key, number] = partition_error(found, number)
            if error is Error.NONE:
                named.known.setdefault(name, {})[number] = one
    return named


def answer_named(call: Call, api: str, named: NamedPartitions, answers: Sequence[Any]) -> Turns[Any]:
    """The response with an error for each partition that the request names. ``api``: its name, as in the
    names of the response's structures; ``answers``: the group coordinator's, if it was asked."""
    for answer in answers:
        named.errors.update({(named.keys[name], number): error for name, number, error in answer.partitions})
    make = call.types.make
    topics = []
    for topic in call.message.topics:
        key = _topic_key(topic)
        partitions = yield from in_turns(
            make(
                f"{api}ResponsePartition",
                partition_index=one.partition_index,
                error_code=named.errors[key, one.partition_index],
            )
            for one in topic.partitions
        )
        shown = {field: getattr(topic, field) for field in ("name", "topic_id") if hasattr(topic, field)}
        topics.append(make(f"{api}ResponseTopic", partitions=partitions, **shown))
        yield 1
    values = {"error_code": Error.NONE, "topics": tuple(topics)}
    return call.types.response(**call.types.fitting(values))
