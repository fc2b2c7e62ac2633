"""Whether a client has the rights that an API needs, and the error without them (KafkaApis, ControllerApis,
AclApis of Kafka 4.3).

A request that is about one resource is refused as a whole, before its handler is called. A request that names
several resources is answered with an error for each that its client may not use. Without an authorizer every
client may do everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.broker.apis.api import Call, Right
from groupstorm.broker.authorization import CLUSTER_NAME, Operation, ResourceType, Who
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error

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
