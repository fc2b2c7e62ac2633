"""ListConfigResources (key 74), versions 0-1: the resources with configurations (KIP-714, KIP-1142).

Needs DESCRIBE_CONFIGS on the cluster. v0: client metrics alone, of which there are none here. v1: topics,
brokers, their loggers, and groups that have a configuration of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.key_32_describe_configs import BROKER, GROUP, TOPIC
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_LOGGERS, _CLIENT_METRICS = 8, 16


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    nodes = [str(node) for node in state.cluster.nodes]
    names: Mapping[int, Iterable[str]] = {
        _CLIENT_METRICS: (),
        GROUP: [group for group, configs in state.group_configs.items() if configs],
        _LOGGERS: nodes,
        BROKER: nodes,
        TOPIC: (topic.name for topic in state.topics),
    }
    kinds = getattr(call.message, "resource_types", (_CLIENT_METRICS,)) or tuple(names)
    if not set(kinds) <= names.keys():
        return Done(call.types.response(error_code=Error.UNSUPPORTED_VERSION, config_resources=()))
    found = yield from in_turns(
        call.types.make("ConfigResource", resource_name=name, resource_type=kind)
        for kind in names
        if kind in kinds
        for name in names[kind]
    )
    return Done(call.types.response(error_code=Error.NONE, config_resources=found))


API = Api(
    74, "ListConfigResources", 0, 1, handle, older=(None, 0),
    needs=(on_cluster(Operation.DESCRIBE_CONFIGS, None),),
)  # fmt: skip
