"""AlterConfigs (key 33), versions 0-2: all configurations of a resource are replaced (KIP-133)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.config_changes import change_configs, check_values
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.config_options import Option
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    return change_configs(state, call, _replaced)


API = Api(
    33, "AlterConfigs", 0, 2, handle, on_topics=Operation.ALTER_CONFIGS, on_groups=Operation.ALTER_CONFIGS,
    errors={"resources": "responses"},
)  # fmt: skip


def _replaced(
    _state: BrokerState, _options: Mapping[str, Option], _present: Mapping[str, str], configs: Any
) -> dict[str, str]:
    return check_values({one.name: one.value for one in configs})
