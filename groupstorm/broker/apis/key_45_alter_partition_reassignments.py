"""AlterPartitionReassignments (key 45), versions 0-1: partitions get other brokers, at once (KIP-455).

Needs ALTER on the cluster. Replicas are names only: a reassignment ends before it is answered, and the first
replica leads. v1: whether the number of replicas may change (KIP-860).
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import COORDINATORS_TOPICS, Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns

_MANUAL = "The manual partition assignment includes"


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    make, responses = call.types.make, []
    may_change_factor = getattr(call.message, "allow_replication_factor_change", True)
    for asked in call.message.topics:
        partitions = []
        for one in asked.partitions:
            error, sentence = Error.NONE, None
            try:
                _reassign(state, asked.name, one, may_change_factor)
            except Refused as problem:
                error, sentence = problem.error, str(problem) or None
            index = one.partition_index
            about = {"partition_index": index, "error_code": error, "error_message": sentence}
            partitions.append(make("ReassignablePartitionResponse", **about))
            yield 2
        responses.append(make("ReassignableTopicResponse", name=asked.name, partitions=tuple(partitions)))
    response = call.types.response(
        allow_replication_factor_change=may_change_factor,
        error_code=Error.NONE,
        error_message=None,
        responses=tuple(responses),
    )
    return Done(response)


API = Api(
    45, "AlterPartitionReassignments", 0, 1, handle, older=(0, 0), needs=(on_cluster(Operation.ALTER),),
    errors={"topics.partitions": "responses.partitions"},
)  # fmt: skip


def _reassign(state: BrokerState, name: str, asked: Any, may_change_factor: bool) -> None:
    """Raises Refused (ReplicationControlManager.alterPartitionReassignment)."""
    topic, index, replicas = state.topics.get(name), asked.partition_index, asked.replicas
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if topic.partition(index) is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:  # there is never one to cancel
        raise Refused(Error.NO_REASSIGNMENT_IN_PROGRESS, "")
    if not replicas:
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"{_MANUAL} an empty replica list.")
    for broker in sorted(replicas):
        if broker not in state.cluster.nodes:
            sentence = f"{_MANUAL} broker {broker}, but no such broker is registered."
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
        if replicas.count(broker) > 1:
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"{_MANUAL} the broker {broker} more than once.")
    if not may_change_factor and len(replicas) != len(topic.replicas[index]):
        present = len(topic.replicas[index])
        sentence = f"The replication factor is changed from {present} to {len(replicas)}"
        raise Refused(Error.INVALID_REPLICATION_FACTOR, sentence)
    if topic.name in COORDINATORS_TOPICS and tuple(replicas) != topic.replicas[index]:
        sentence = "The coordinators' topics follow the coordinators, which a signal moves (SIGUSR1)"
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, sentence)
    state.place_partition(topic, index, tuple(replicas))
