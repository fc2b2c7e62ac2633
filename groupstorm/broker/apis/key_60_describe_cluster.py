"""DescribeCluster (key 60), versions 0-2 (KIP-700).

v1: endpoint type; controllers' endpoints are refused (UNSUPPORTED_ENDPOINT_TYPE), because there are no
controllers apart from the brokers. v2: fenced brokers; there are none.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import cluster_operations
from groupstorm.coordinator.errors import Error

_BROKERS = 1
_NO_NODE = -1


def handle(state: BrokerState, call: Call) -> Done:
    make = call.types.make
    endpoint_type = getattr(call.message, "endpoint_type", _BROKERS)
    known = endpoint_type == _BROKERS
    asked = call.message.include_cluster_authorized_operations
    brokers = (
        make("DescribeClusterBroker", broker_id=node, rack=rack, is_fenced=False, **state.address(node, call))
        for node in state.cluster.nodes
        for rack in (state.cluster.rack(node),)
    )
    response = call.types.response(
        error_code=Error.NONE if known else Error.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=None if known else f"endpoint type {endpoint_type}: only brokers (1) are described",
        endpoint_type=endpoint_type,
        cluster_id=state.cluster_id,
        controller_id=state.cluster.controller if known else _NO_NODE,
        brokers=tuple(brokers) if known else (),
        cluster_authorized_operations=cluster_operations(state, call, asked),
    )
    return Done(response)


API = Api(60, "DescribeCluster", 0, 2, handle, older=(0, 1))
