"""DescribeClientQuotas (key 48), versions 0-1: the quotas that a filter finds (KIP-546).

Needs DESCRIBE_CONFIGS on the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.quotas.entities import Component, Entity, check_filter, is_found
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    message = call.message
    components = [Component(one.entity_type, one.match_type, one.match) for one in message.components]
    try:
        check_filter(components)
    except Refused as problem:
        return Done(call.types.response(error_code=problem.error, error_message=str(problem), entries=None))
    entries = []
    for entity, values in [*state.quotas]:
        if values and is_found(entity, components, message.strict):
            entries.append(_entry(call, entity, values))
        yield 3
    return Done(call.types.response(error_code=Error.NONE, error_message=None, entries=tuple(entries)))


API = Api(48, "DescribeClientQuotas", 0, 1, handle, needs=(on_cluster(Operation.DESCRIBE_CONFIGS, None),))


def _entry(call: Call, entity: Entity, values: Mapping[str, float]) -> Any:
    make = call.types.make
    return make(
        "EntryData",
        entity=tuple(make("EntityData", entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(make("ValueData", key=key, value=value) for key, value in values.items()),
    )
