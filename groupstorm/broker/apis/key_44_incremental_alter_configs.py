"""IncrementalAlterConfigs (key 44), versions 0-1: of topics and groups (KIP-339).

* Operations: set, delete, and for lists append and subtract. A wrong one leaves its resource unchanged.
* Brokers keep the settings that they were started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.key_32_describe_configs import (
    BROKER,
    GROUP,
    TOPIC,
    ResourceError,
    check_rights,
)
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.config_options import ConfigError, ConfigType, Option, check
from groupstorm.broker.group_configs import GROUP_OPTIONS, check_group
from groupstorm.broker.topic_configs import TOPIC_OPTIONS, default_of
from groupstorm.coordinator.errors import Error

#: AlterConfigOp.OpType
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def handle(state: BrokerState, call: Call) -> Done:
    responses = []
    for asked in call.message.resources:
        error, sentence = Error.NONE, None
        try:
            _alter(state, call, asked)
        except ResourceError as problem:
            error, sentence = problem.error, str(problem) or None
        except ConfigError as problem:
            error, sentence = Error.INVALID_CONFIG, str(problem)
        response = call.types.make(
            "AlterConfigsResourceResponse",
            error_code=error,
            error_message=sentence,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        responses.append(response)
    return Done(call.types.response(responses=tuple(responses)))


API = Api(44, "IncrementalAlterConfigs", 0, 1, handle)


def _alter(state: BrokerState, call: Call, asked: Any) -> None:
    kind, name = asked.resource_type, asked.resource_name
    check_rights(state, call, kind, name, Operation.ALTER_CONFIGS)
    if len({one.name for one in asked.configs}) < len(asked.configs):
        raise ResourceError(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [one.name for one in asked.configs if one.value is None and one.config_operation != _DELETE]
    if missing:
        raise ResourceError(Error.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")
    if kind == TOPIC:
        topic = state.topics.get(name)
        if topic is None:
            raise ResourceError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
        changed = _changed(state, TOPIC_OPTIONS, topic.configs, asked.configs)
        configs = {key: check(TOPIC_OPTIONS, "topic", key, value) for key, value in changed.items()}
        if not call.message.validate_only:
            state.configure_topic(topic, configs)
    elif kind == GROUP:
        if not name:
            raise ResourceError(Error.INVALID_REQUEST, "Default group resources are not allowed.")
        changed = _changed(state, GROUP_OPTIONS, state.group_configs.get(name, {}), asked.configs)
        configs = check_group(changed, state.coordinator_config.consumer)
        if not call.message.validate_only:
            state.configure_group(name, configs)
    else:
        what = "brokers keep their settings" if kind == BROKER else f"resources of type {kind}: not served"
        raise ResourceError(Error.INVALID_REQUEST, what)


def _changed(
    state: BrokerState, options: Mapping[str, Option], present: Mapping[str, str], changes: Any
) -> dict[str, str]:
    """The configurations after the operations, unchecked. Raises ResourceError."""
    configs = dict(present)
    for one in changes:
        if one.config_operation == _DELETE:
            configs.pop(one.name, None)
        elif one.config_operation == _SET:
            configs[one.name] = one.value
        elif one.config_operation in (_APPEND, _SUBTRACT):
            option = options.get(one.name)
            is_append = one.config_operation == _APPEND
            if option is None or option.kind is not ConfigType.LIST:
                verb = "APPEND" if is_append else "SUBTRACT"
                raise ResourceError(
                    Error.INVALID_CONFIG, f"Can't {verb} to key {one.name} because its type is not LIST."
                )
            before = configs.get(one.name) or default_of(option, state.config)
            configs[one.name] = ",".join(_parts(before, one.value, is_append))
        else:
            raise ResourceError(Error.UNKNOWN_SERVER_ERROR, "")
    return configs


def _parts(before: str, value: str, is_append: bool) -> list[str]:
    parts = [part.strip() for part in before.split(",") if part.strip()]
    named = [part.strip() for part in value.split(",") if part.strip()]
    if is_append:
        return list(dict.fromkeys([*parts, *named]))
    return [part for part in parts if part not in named]
