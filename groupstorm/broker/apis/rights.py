"""What each API needs, and the error without it (KafkaApis, ControllerApis, AclApis of Kafka 4.3).

A request that is about one resource is refused as a whole, before its handler is called. A request that names
several resources is answered with an error for each that its client may not use. Without an authorizer every
client may do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import NO_AUTHORIZED_OPERATIONS, Api, BrokerState, Call
from groupstorm.broker.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from groupstorm.broker.authorization.authorizer import Who
from groupstorm.coordinator.errors import Error

#: The error without a right, by the type of the resource.
DENIED: Mapping[ResourceType, Error] = MappingProxyType(
    {
        ResourceType.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
        ResourceType.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
        ResourceType.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
        ResourceType.TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


#: Kafka's sentences for them (Errors).
SENTENCES: Mapping[Error, str] = MappingProxyType(
    {
        Error.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
        Error.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
        Error.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    }
)


class Right(NamedTuple):
    """``name``: the resource that a request is about; None: the request needs no right on such a one."""

    operation: Operation
    resource_type: ResourceType
    name: Callable[[Any], str | None]


def _cluster(_message: Any) -> str:
    return CLUSTER_NAME


def _group(message: Any) -> str:
    name: str = message.group_id
    return name


def _transactional_id(message: Any) -> str | None:
    name: str | None = message.transactional_id
    return name


_READ_GROUP = Right(Operation.READ, ResourceType.GROUP, _group)
_WRITE_TRANSACTIONAL_ID = Right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, _transactional_id)


def _on_cluster(operation: Operation) -> Right:
    return Right(operation, ResourceType.CLUSTER, _cluster)


#: API key -> the rights that the whole request needs, in the order in which Kafka checks them.
#: Produce needs that for transactional records alone, InitProducerId without a transactional id needs another
#: right, AddPartitionsToTxn of brokers as well: their handlers say so.
OF_REQUEST: Mapping[int, tuple[Right, ...]] = MappingProxyType(
    {
        8: (_READ_GROUP,),
        11: (_READ_GROUP,),
        12: (_READ_GROUP,),
        13: (_READ_GROUP,),
        14: (_READ_GROUP,),
        22: (_WRITE_TRANSACTIONAL_ID,),
        25: (_WRITE_TRANSACTIONAL_ID, _READ_GROUP),
        26: (_WRITE_TRANSACTIONAL_ID,),
        28: (_WRITE_TRANSACTIONAL_ID, _READ_GROUP),
        29: (_on_cluster(Operation.DESCRIBE),),
        30: (_on_cluster(Operation.ALTER),),
        31: (_on_cluster(Operation.ALTER),),
        47: (Right(Operation.DELETE, ResourceType.GROUP, _group),),
        48: (_on_cluster(Operation.DESCRIBE_CONFIGS),),
        49: (_on_cluster(Operation.ALTER_CONFIGS),),
        50: (_on_cluster(Operation.DESCRIBE),),
        51: (_on_cluster(Operation.ALTER),),
        68: (_READ_GROUP,),
    }
)

#: API key -> what a client needs on each topic that a request names, or that an answer shows.
ON_TOPIC: Mapping[int, Operation] = MappingProxyType(
    {
        0: Operation.WRITE,
        1: Operation.READ,
        2: Operation.DESCRIBE,
        3: Operation.DESCRIBE,
        8: Operation.READ,
        9: Operation.DESCRIBE,
        19: Operation.CREATE,
        20: Operation.DELETE,
        21: Operation.DELETE,
        23: Operation.DESCRIBE,
        24: Operation.WRITE,
        28: Operation.READ,
        32: Operation.DESCRIBE_CONFIGS,
        33: Operation.ALTER_CONFIGS,
        37: Operation.ALTER,
        44: Operation.ALTER_CONFIGS,
        47: Operation.READ,
        68: Operation.DESCRIBE,
        69: Operation.DESCRIBE,
        75: Operation.DESCRIBE,
    }
)

#: API key -> a right on the cluster that stands for the one on every topic.
ON_ALL_TOPICS: Mapping[int, Operation] = MappingProxyType(
    {19: Operation.CREATE, 20: Operation.DELETE, 23: Operation.CLUSTER_ACTION}
)

#: API key -> what a client needs on each group that a request names, or that an answer shows.
ON_GROUP: Mapping[int, Operation] = MappingProxyType(
    {
        9: Operation.DESCRIBE,
        10: Operation.DESCRIBE,
        15: Operation.DESCRIBE,
        16: Operation.DESCRIBE,
        32: Operation.DESCRIBE_CONFIGS,
        33: Operation.ALTER_CONFIGS,
        42: Operation.DELETE,
        44: Operation.ALTER_CONFIGS,
        69: Operation.DESCRIBE,
    }
)

#: AclOperation codes of authorized operations (AclEntry.supportedOperations).
SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.CLUSTER: (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        ),
    }
)


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


def missing_right(state: BrokerState, api: Api, call: Call) -> Right | None:
    """The right without which a request is refused as a whole; None if its client has all that it needs."""
    if state.authorizer is None:
        return None
    for right in OF_REQUEST.get(api.key, ()):
        name = right.name(call.message)
        if name is not None and not may(state, call, right.operation, right.resource_type, name):
            return right
    return None


#: Kafka's sentence about a missing right on the cluster, of APIs that have another one, or none.
_OTHER_SENTENCES: Mapping[int, str | None] = MappingProxyType(
    {48: None, 49: SENTENCES[Error.CLUSTER_AUTHORIZATION_FAILED], 50: None}
)


def sentence_of(api: Api, right: Right) -> str | None:
    """Kafka's sentence about a missing right on the cluster (AuthHelper.authorizeClusterOperation)."""
    if right.resource_type is not ResourceType.CLUSTER:
        return None
    sentence = f"Request {api.name} needs {right.operation.name} permission."
    return _OTHER_SENTENCES.get(api.key, sentence)


def topic_error(state: BrokerState, call: Call, name: str) -> Error:
    """The error of a topic that the client may not use in this way, whether or not there is one."""
    if state.authorizer is None:
        return Error.NONE
    api_key = call.types.root.__api_key__
    if may(state, call, ON_TOPIC[api_key], ResourceType.TOPIC, name):
        return Error.NONE
    on_all = ON_ALL_TOPICS.get(api_key)
    if on_all is not None and may_on_cluster(state, call, on_all):
        return Error.NONE
    return Error.TOPIC_AUTHORIZATION_FAILED


def may_describe_topic(state: BrokerState, call: Call, name: str) -> bool:
    return may(state, call, Operation.DESCRIBE, ResourceType.TOPIC, name)


def group_error(state: BrokerState, call: Call, name: str) -> Error:
    """The error of a group that the client may not use in this way."""
    if state.authorizer is None:
        return Error.NONE
    operation = ON_GROUP[call.types.root.__api_key__]
    known = may(state, call, operation, ResourceType.GROUP, name)
    return Error.NONE if known else Error.GROUP_AUTHORIZATION_FAILED


def authorized_operations(
    state: BrokerState, call: Call, asked: bool, resource_type: ResourceType, name: str
) -> int:
    """The bit field of the operations that the client may do with a resource, if it has asked for them."""
    if not asked:
        return NO_AUTHORIZED_OPERATIONS
    return _bits(one for one in SUPPORTED[resource_type] if may(state, call, one, resource_type, name))


def cluster_operations(state: BrokerState, call: Call, asked: bool) -> int:
    """The same of the cluster: none for a client that may not describe it."""
    if asked and not may_on_cluster(state, call, Operation.DESCRIBE):
        return 0
    return authorized_operations(state, call, asked, ResourceType.CLUSTER, CLUSTER_NAME)


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << code for code in operations)


def _who(call: Call) -> Who:
    return Who(call.principal, call.client_host.removeprefix("/"))
