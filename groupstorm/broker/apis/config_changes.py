"""Changes of configurations, for AlterConfigs and IncrementalAlterConfigs.

Source: ConfigAdminManager and ConfigurationControlManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from groupstorm.broker.apis.api import BrokerState, Call, Done
from groupstorm.broker.apis.key_32_describe_configs import BROKER, GROUP, TOPIC, broker_of, check_rights
from groupstorm.broker.apis.rights import may_on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.dynamic_configs import DYNAMIC_OPTIONS, kept_option
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config_options import ConfigError, Option, check
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.coordinator.group_configs import check_group, group_options
from groupstorm.turns import Turns, in_turns

#: Gives the configurations of a resource after its changes, unchecked: of the resource's options, its present
#: configurations, and the changes. Raises Refused.
Changing = Callable[[BrokerState, Mapping[str, Option], Mapping[str, str], Any], dict[str, str]]


def change_configs(state: BrokerState, call: Call, changing: Changing) -> Turns[Done]:
    """Answer for each resource; a wrong change leaves its resource as it is."""
    times = Counter(
        (yield from in_turns((asked.resource_type, asked.resource_name) for asked in call.message.resources))
    )
    responses = []
    for asked in call.message.resources:
        error, sentence = Error.NONE, None
        try:
            if times[asked.resource_type, asked.resource_name] > 1:
                raise Refused(Error.INVALID_REQUEST, "Each resource must appear at most once.")
            _change(state, call, asked, changing)
        except Refused as problem:
            error, sentence = problem.error, str(problem) or None
        except ConfigError as problem:
            is_broker = asked.resource_type == BROKER
            error, sentence = Error.INVALID_REQUEST if is_broker else Error.INVALID_CONFIG, str(problem)
        response = call.types.make(
            "AlterConfigsResourceResponse",
            error_code=error,
            error_message=sentence,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        responses.append(response)
        yield 20 + len(asked.configs)
    return Done(call.types.response(responses=tuple(responses)))


def check_values(values: Mapping[str, str | None]) -> dict[str, str]:
    """Raises Refused if one is null."""
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise Refused(Error.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")
    return {name: value for name, value in values.items() if value is not None}


def _change(state: BrokerState, call: Call, asked: Any, changing: Changing) -> None:
    kind, name = asked.resource_type, asked.resource_name
    if kind == BROKER and not may_on_cluster(state, call, Operation.ALTER_CONFIGS):
        raise Refused(Error.CLUSTER_AUTHORIZATION_FAILED, "")  # Kafka 4.4.0 says nothing about it
    check_rights(state, call, kind, name, Operation.ALTER_CONFIGS)
    if len({one.name for one in asked.configs}) < len(asked.configs):
        raise Refused(Error.INVALID_REQUEST, "Error due to duplicate config keys")
    if kind == TOPIC:
        _change_topic(state, call, asked, changing)
    elif kind == GROUP:
        if not name:
            raise Refused(Error.INVALID_REQUEST, "Default group resources are not allowed.")
        config = state.coordinator_config
        options = group_options(config.compatibility)
        changed = changing(state, options, state.group_configs.get(name, {}), asked.configs)
        configs = check_group(changed, config)
        if not call.message.validate_only:
            state.configure_group(name, configs)
    elif kind == BROKER:
        _change_broker(state, call, asked, changing)
    else:
        raise Refused(Error.INVALID_REQUEST, f"Unknown resource type {kind}")


def _change_topic(state: BrokerState, call: Call, asked: Any, changing: Changing) -> None:
    name = asked.resource_name
    if not name:
        raise Refused(Error.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic = state.topics.get(name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
    changed = changing(state, TOPIC_OPTIONS, topic.configs, asked.configs)
    configs = {key: check(TOPIC_OPTIONS, "topic", key, value) for key, value in changed.items()}
    if not call.message.validate_only:
        state.configure_topic(topic, configs)


def _change_broker(state: BrokerState, call: Call, asked: Any, changing: Changing) -> None:
    name = broker_of(state, call, asked.resource_name)
    present = state.dynamic_configs.by_broker.get(name, {})
    changed = changing(state, DYNAMIC_OPTIONS, present, asked.configs)
    options = {key: DYNAMIC_OPTIONS.get(key) or kept_option(key) for key in changed}
    fixed = [key for key, option in options.items() if option is None]
    if fixed:
        sentence = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        raise Refused(Error.INVALID_REQUEST, sentence)
    known = {key: option for key, option in options.items() if option is not None}
    configs = {key: check(known, "broker", key, value) for key, value in changed.items()}
    if name and len(state.cluster.nodes) > 1 and configs != present:
        sentence = "several brokers of one process share their settings: change those of all, without a name"
        raise Refused(Error.INVALID_REQUEST, sentence)
    if not call.message.validate_only:
        state.configure_broker(name, configs)
