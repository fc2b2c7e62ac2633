"""IncrementalAlterConfigs (key 44), versions 0-1: of topics and groups (KIP-339).

* Operations: set, delete, and for lists append and subtract. A wrong one leaves its resource unchanged.
* Brokers keep the settings that they were started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.key_32_describe_configs import BROKER, GROUP, TOPIC, ResourceError
from groupstorm.broker.topic_configs import (
    GROUP_OPTIONS,
    TOPIC_OPTIONS,
    ConfigError,
    ConfigType,
    Option,
    check,
    default_of,
)
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
            error, sentence = problem.error, str(problem)
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
    if len({one.name for one in asked.configs}) < len(asked.configs):
        raise ResourceError(Error.INVALID_REQUEST, "a configuration is there more than once")
    if kind == TOPIC:
        topic = state.topics.get(name)
        if topic is None:
            raise ResourceError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
        configs = _changed(state, TOPIC_OPTIONS, "topic", topic.configs, asked.configs)
        if not call.message.validate_only:
            state.configure_topic(topic, configs)
    elif kind == GROUP:
        if not name:
            raise ResourceError(Error.INVALID_REQUEST, "a group has a name")
        configs = _changed(state, GROUP_OPTIONS, "group", state.group_configs.get(name, {}), asked.configs)
        if not call.message.validate_only:
            state.configure_group(name, configs)
    else:
        what = "brokers keep their settings" if kind == BROKER else f"resources of type {kind}: not served"
        raise ResourceError(Error.INVALID_REQUEST, what)


def _changed(
    state: BrokerState, options: Mapping[str, Option], what: str, present: Mapping[str, str], changes: Any
) -> dict[str, str]:
    """The configurations after the operations. Raises ConfigError, ResourceError."""
    configs = dict(present)
    for one in changes:
        if one.config_operation == _DELETE:
            if one.name not in options:
                raise ConfigError(f"Unknown {what} config name: {one.name[:100]}")
            configs.pop(one.name, None)
        elif one.config_operation == _SET:
            configs[one.name] = check(options, what, one.name, one.value)
        elif one.config_operation in (_APPEND, _SUBTRACT):
            option = options.get(one.name)
            if option is not None and option.kind is not ConfigType.LIST:
                raise ResourceError(Error.INVALID_CONFIG, f"{one.name} is no list: it can only be set")
            before = configs.get(one.name) or ("" if option is None else default_of(option, state.config))
            parts = _parts(before, one.value or "", one.config_operation == _APPEND)
            configs[one.name] = check(options, what, one.name, ",".join(parts))
        else:
            raise ResourceError(Error.INVALID_REQUEST, f"operation {one.config_operation} does not exist")
    return configs


def _parts(before: str, value: str, is_append: bool) -> list[str]:
    parts = [part.strip() for part in before.split(",") if part.strip()]
    named = [part.strip() for part in value.split(",") if part.strip()]
    if is_append:
        return list(dict.fromkeys([*parts, *named]))
    return [part for part in parts if part not in named]
