"""DescribeCluster (key 60), versions 0-2 (KIP-700).

v1: endpoint type; controllers' endpoints are refused (UNSUPPORTED_ENDPOINT_TYPE), because there are no
controllers apart from the brokers. v2: fenced brokers; there are none.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import cluster_operations
from groupstorm.coordinator.errors import Error

_BROKERS = 1
_NO_NODE = -1


def handle(state: BrokerState, call: Call) -> Done:
    endpoint_type = getattr(call.message, "endpoint_type", _BROKERS)
    known = endpoint_type == _BROKERS
    asked = call.message.include_cluster_authorized_operations
    response = call.types.response(
        error_code=Error.NONE if known else Error.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=None if known else f"endpoint type {endpoint_type}: only brokers (1) are described",
        endpoint_type=endpoint_type,
        cluster_id=state.cluster_id,
        controller_id=state.cluster.controller if known else _NO_NODE,
        brokers=tuple(_broker(state, call, node) for node in state.cluster.nodes) if known else (),
        cluster_authorized_operations=cluster_operations(state, call, asked),
    )
    return Done(response)


API = Api(60, "DescribeCluster", 0, 2, handle, older=(0, 1))


def _broker(state: BrokerState, call: Call, node: int) -> Any:
    endpoint = state.endpoint(node, call)
    return call.types.make(
        "DescribeClusterBroker",
        broker_id=node,
        host=endpoint.host,
        port=endpoint.port,
        rack=state.cluster.rack(node),
        is_fenced=False,
    )
