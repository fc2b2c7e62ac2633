"""DescribeQuorum (key 55), versions 0-2: the controllers and their log (KIP-595).

Needs DESCRIBE on the cluster. The controller is the only voter, the other brokers observe. There is no
metadata log: its offsets are 0. v1: times. v2: the listeners of the voters.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import SENTENCES, on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error

_METADATA_TOPIC = "__cluster_metadata"
_UNKNOWN = "This server does not host this topic-partition."


def handle(state: BrokerState, call: Call) -> Done:
    make = call.types.make
    topics = tuple(
        make(
            "TopicData",
            topic_name=topic.topic_name,
            partitions=tuple(_partition(state, call, topic.topic_name, one) for one in topic.partitions),
        )
        for topic in call.message.topics
    )
    controller = state.cluster.controller
    listener = (
        make("Listener", name="CONTROLLER", **state.address(controller, call)) if call.version > 1 else None
    )
    nodes = () if listener is None else (make("Node", node_id=controller, listeners=(listener,)),)
    values = {"error_code": Error.NONE, "error_message": "", "topics": topics, "nodes": nodes}
    return Done(make(call.types.root.__name__, **values))  # it has no throttle time


API = Api(
    55,
    "DescribeQuorum",
    0,
    2,
    handle,
    older=(None, 2),
    needs=(on_cluster(Operation.DESCRIBE, SENTENCES[Error.CLUSTER_AUTHORIZATION_FAILED]),),
)


def _partition(state: BrokerState, call: Call, topic: str, asked: Any) -> Any:
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
