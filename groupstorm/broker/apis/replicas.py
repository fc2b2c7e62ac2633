"""The replicas of partitions: DescribeLogDirs, ElectLeaders, AlterPartitionReassignments,
ListPartitionReassignments and DescribeQuorum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import SENTENCES, on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.config import kafka_configs
from groupstorm.broker.log.topics import COORDINATORS_TOPICS, Topic
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.turns import Turns, in_turns

_UNKNOWN_BYTES = -1


def describe_log_dirs(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeLogDirs (key 35), versions 1-5: the sizes of a broker's partitions (KIP-113, KIP-827).

    Needs DESCRIBE on the cluster. A broker has one folder, which it calls by the default of Kafka's
    ``log.dir``. v3: an error for the whole. v4: the bytes of the disk, which are not known (-1). v5: cordoned
    folders.
    """
    make, topics = call.types.make, []
    for topic, wanted in _asked(state, call):
        partitions = yield from in_turns(
            make(
                "DescribeLogDirsPartition",
                partition_index=index,
                partition_size=topic.partitions[index].size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for index in wanted
            if topic.partition(index) is not None and call.node in topic.replicas[index]
        )
        if partitions:
            topics.append(make("DescribeLogDirsTopic", name=topic.name, partitions=partitions))
    folder = make(
        "DescribeLogDirsResult",
        error_code=Error.NONE,
        log_dir=kafka_configs("broker")["log.dir"].default,
        topics=tuple(topics),
        total_bytes=_UNKNOWN_BYTES,
        usable_bytes=_UNKNOWN_BYTES,
        is_cordoned=False,
    )
    return Done(call.types.response(error_code=Error.NONE, results=(folder,)))


def _asked(state: BrokerState, call: Call) -> Iterable[tuple[Topic, Iterable[int]]]:
    """Topics with the partitions that the request is about; null: all."""
    if call.message.topics is None:
        return [(topic, range(len(topic.partitions))) for topic in state.topics]
    found: list[tuple[Topic, Any]] = []
    for asked in call.message.topics:
        topic = state.topics.get(asked.topic)
        if topic is not None:
            found.append((topic, asked.partitions))
    return found


_ELECTIONS = (0, 1)


def elect_leaders(state: BrokerState, call: Call) -> Turns[Done]:
    """ElectLeaders (key 43), versions 0-2: the first replica of each partition leads it already (KIP-460).

    Needs ALTER on the cluster. v1: the type of the election, preferred (0) or unclean (1).
    """
    message = call.message
    if getattr(message, "election_type", 0) not in _ELECTIONS:
        return Done(call.types.response(error_code=Error.INVALID_REQUEST, replica_election_results=()))
    make, results = call.types.make, []
    if message.topic_partitions is None:
        # partitions that need no election are left out of the answer about all
        results = [
            make("ReplicaElectionResult", topic=topic.name, partition_result=()) for topic in state.topics
        ]
    for asked in message.topic_partitions or ():
        partitions = yield from in_turns(
            _elect_partition(state, call, asked.topic, one) for one in asked.partitions
        )
        results.append(make("ReplicaElectionResult", topic=asked.topic, partition_result=partitions))
    return Done(call.types.response(error_code=Error.NONE, replica_election_results=tuple(results)))


def _elect_partition(state: BrokerState, call: Call, name: str, index: int) -> Any:
    topic = state.topics.get(name)
    error, sentence = Error.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    if topic is None or topic.partition(index) is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
        sentence = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
    return call.types.make("PartitionResult", partition_id=index, error_code=error, error_message=sentence)


_MANUAL = "The manual partition assignment includes"


def alter_partition_reassignments(state: BrokerState, call: Call) -> Turns[Done]:
    """AlterPartitionReassignments (key 45), versions 0-1: partitions get other brokers, at once (KIP-455).

    Needs ALTER on the cluster. Replicas are names only: a reassignment ends before it is answered, and the
    first replica leads. v1: whether the number of replicas may change (KIP-860).
    """
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


def list_partition_reassignments(_state: BrokerState, call: Call) -> Done:
    """ListPartitionReassignments (key 46), version 0: there are none (KIP-455).

    A reassignment ends before it is answered. Needs DESCRIBE on the cluster.
    """
    return Done(call.types.response(error_code=Error.NONE, error_message=None, topics=()))


_METADATA_TOPIC = "__cluster_metadata"
_UNKNOWN = "This server does not host this topic-partition."


def describe_quorum(state: BrokerState, call: Call) -> Done:
    """DescribeQuorum (key 55), versions 0-2: the controllers and their log (KIP-595).

    Needs DESCRIBE on the cluster. The controller is the only voter, the other brokers observe. There is no
    metadata log: its offsets are 0. v1: times. v2: the listeners of the voters.
    """
    make = call.types.make
    topics = tuple(
        make(
            "TopicData",
            topic_name=topic.topic_name,
            partitions=tuple(
                _quorum_partition(state, call, topic.topic_name, one) for one in topic.partitions
            ),
        )
        for topic in call.message.topics
    )
    controller = state.cluster.controller
    nodes: tuple[Any, ...] = ()
    if call.version > 1:
        listener = make(
            "Listener",
            name="CONTROLLER",
            **call.types.fitting(state.address(controller, call.reached_at), "Listener"),
        )
        nodes = (make("Node", node_id=controller, listeners=(listener,)),)
    values = {"error_code": Error.NONE, "error_message": "", "topics": topics, "nodes": nodes}
    return Done(make(call.types.root.__name__, **values))  # it has no throttle time


def _quorum_partition(state: BrokerState, call: Call, topic: str, asked: Any) -> Any:
    is_known = topic == _METADATA_TOPIC and asked.partition_index == 0
    controller, *others = state.cluster.nodes if is_known else (0,)
    return call.types.make(
        "PartitionData",
        partition_index=asked.partition_index,
        error_code=Error.NONE if is_known else Error.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="" if is_known else _UNKNOWN,
        leader_id=controller,
        leader_epoch=int(is_known),
        high_watermark=0,
        current_voters=(_replica(call, controller),) if is_known else (),
        observers=tuple(_replica(call, node) for node in others),
    )


def _replica(call: Call, node: int) -> Any:
    return call.types.make(
        "ReplicaState",
        replica_id=node,
        replica_directory_id=None,
        log_end_offset=0,
        last_fetch_timestamp=call.now_ms,
        last_caught_up_timestamp=call.now_ms,
    )


APIS = (
    Api(
        35, "DescribeLogDirs", 1, 5, describe_log_dirs, older=(2, 4),
        needs=(on_cluster(Operation.DESCRIBE, None),),
    ),
    Api(
        43, "ElectLeaders", 0, 2, elect_leaders, needs=(on_cluster(Operation.ALTER),),
        errors={"topic_partitions.partitions": "replica_election_results.partition_result"},
    ),
    Api(
        45, "AlterPartitionReassignments", 0, 1, alter_partition_reassignments, older=(0, 0),
        needs=(on_cluster(Operation.ALTER),), errors={"topics.partitions": "responses.partitions"},
    ),
    Api(
        46, "ListPartitionReassignments", 0, 0, list_partition_reassignments,
        needs=(on_cluster(Operation.DESCRIBE),),
    ),
    Api(
        55, "DescribeQuorum", 0, 2, describe_quorum, older=(None, 2),
        needs=(on_cluster(Operation.DESCRIBE, SENTENCES[Error.CLUSTER_AUTHORIZATION_FAILED]),),
    ),
)  # fmt: skip
