"""IncrementalAlterConfigs (key 44), versions 0-1: of topics, groups and brokers (KIP-339).

* Operations: set, delete, and for lists append and subtract. A wrong one leaves its resource unchanged.
* Of brokers the settings of `DYNAMIC_OPTIONS` can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.config_changes import change_configs, check_values
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.topic_configs import default_of
from groupstorm.coordinator.config_options import ConfigType, Option
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns

#: AlterConfigOp.OpType
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    return change_configs(state, call, _changed)


API = Api(
    44, "IncrementalAlterConfigs", 0, 1, handle, on_topics=Operation.ALTER_CONFIGS,
    on_groups=Operation.ALTER_CONFIGS, errors={"resources": "responses"},
)  # fmt: skip


def _changed(
    state: BrokerState, options: Mapping[str, Option], present: Mapping[str, str], changes: Any
) -> dict[str, str]:
    values = check_values({one.name: one.value for one in changes if one.config_operation != _DELETE})
    configs = dict(present)
    for one in changes:
        if one.config_operation == _DELETE:
            configs.pop(one.name, None)
        elif one.config_operation == _SET:
            configs[one.name] = values[one.name]
        elif one.config_operation in (_APPEND, _SUBTRACT):
            option = options.get(one.name)
            is_append = one.config_operation == _APPEND
            if option is None or option.kind is not ConfigType.LIST:
                verb = "APPEND" if is_append else "SUBTRACT"
                raise Refused(
                    Error.INVALID_CONFIG, f"Can't {verb} to key {one.name} because its type is not LIST."
                )
            before = configs[one.name] if one.name in configs else default_of(option, state.config)
            configs[one.name] = ",".join(_parts(before, values[one.name], is_append))
        else:
            raise Refused(Error.UNKNOWN_SERVER_ERROR, "")
    return configs


def _parts(before: str, value: str, is_append: bool) -> list[str]:
    parts = [part.strip() for part in before.split(",") if part.strip()]
    named = [part.strip() for part in value.split(",") if part.strip()]
    if is_append:
        return list(dict.fromkeys([*parts, *named]))
    return [part for part in parts if part not in named]
