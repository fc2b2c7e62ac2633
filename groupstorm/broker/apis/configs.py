"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import SENTENCES, group_error, may_on_cluster, on_cluster, topic_error
from groupstorm.broker.authorization import Operation
from groupstorm.broker.changes import BrokerConfigured, TopicConfigured
from groupstorm.broker.described_configs import (
    ALL_BROKERS,
    DYNAMIC_OPTIONS,
    Entry,
    broker_entries,
    entries_of_all_brokers,
    group_entries,
    kept_option,
    topic_entries,
)
from groupstorm.broker.state import BrokerState
from groupstorm.broker.topic_configs import TOPIC_OPTIONS, default_of
from groupstorm.coordinator.config_options import (
    ConfigError,
    ConfigType,
    Option,
    check,
    check_group,
    group_options,
)
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.turns import Turns, in_turns

#: ConfigResource.Type
TOPIC, BROKER, GROUP = 2, 4, 32
#: Brokers, their loggers, and client metrics: who may do something with them may do it with the cluster.
_OF_CLUSTER = (BROKER, 8, 16)


def _check_rights(state: BrokerState, call: Call, kind: int, name: str, on_brokers: Operation) -> None:
    """Raises Refused if the client may not do this to the configurations of the resource."""
    error = Error.NONE
    if kind == TOPIC:
        error = topic_error(state, call, name)
    elif kind == GROUP:
        error = group_error(state, call, name)
    elif kind in _OF_CLUSTER and not may_on_cluster(state, call, on_brokers):
        error = Error.CLUSTER_AUTHORIZATION_FAILED
    if error is not Error.NONE:
        raise Refused(error, SENTENCES[error])


def _broker_of(state: BrokerState, call: Call, name: str) -> str:
    """The name of a resource that is this broker, or all of them. Raises Refused for another one."""
    if name and not re.fullmatch(r"[+-]?[0-9]{1,10}", name):
        raise Refused(Error.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name and int(name) != call.node:
        sentence = f"Unexpected broker id, expected {call.node}, but received {name}"
        raise Refused(Error.INVALID_REQUEST, sentence)
    return str(int(name)) if name else ALL_BROKERS


def describe_configs(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeConfigs (key 32), versions 1-4: topics, brokers, groups.

    v1: synonyms, the places that a value may come from (KIP-226). v3: types and documentation (KIP-569).
    """
    results = []
    for asked in call.message.resources:
        results.append((yield from _result(state, call, asked)))
    return Done(call.types.response(results=tuple(results)))


def _result(state: BrokerState, call: Call, asked: Any) -> Turns[Any]:
    error, sentence, entries = Error.NONE, "", list[Entry]()
    try:
        names = asked.configuration_keys or None  # an empty list asks for all as well
        _check_rights(state, call, asked.resource_type, asked.resource_name, Operation.DESCRIBE_CONFIGS)
        entries = [entry for entry in _entries(state, call, asked) if names is None or entry.name in names]
    except Refused as problem:
        error, sentence = problem.error, str(problem)
    configs = yield from in_turns((_entry(call, entry) for entry in entries), work=3)
    yield 1
    return call.types.make(
        "DescribeConfigsResult",
        error_code=error,
        error_message=sentence,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=configs,
    )


def _entries(state: BrokerState, call: Call, asked: Any) -> Iterable[Entry]:
    kind, name = asked.resource_type, asked.resource_name
    if kind == TOPIC:
        if not name:
            sentence = "Topic name is invalid: the empty string is not allowed"
            raise Refused(Error.INVALID_TOPIC_EXCEPTION, sentence)
        topic = state.topics.get(name)
        if topic is None:
            raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
        return topic_entries(topic.configs, state.dynamic_configs)
    if kind == GROUP:
        if not name:
            raise Refused(Error.INVALID_REQUEST, "Group name must not be empty")
        return group_entries(state.group_configs.get(name, {}), state.coordinator_config)
    if kind == BROKER:
        if not _broker_of(state, call, name):
            return entries_of_all_brokers(state.dynamic_configs)
        return broker_entries(state.dynamic_configs, state.coordinator_config, _of_node(state, call))
    raise Refused(Error.INVALID_REQUEST, f"resources of type {kind} are not served")


def _of_node(state: BrokerState, call: Call) -> dict[str, str]:
    """The settings of the broker that was asked which the others of the process have for themselves."""
    node, rack = call.node, state.cluster.rack(call.node)
    protocol = state.cluster.protocol
    at = state.cluster.endpoint(node, call.reached_at, None)
    advertised = state.cluster.endpoint(node, call.reached_at, state.config.advertised_listeners)
    return {
        "node.id": str(node),
        "broker.id": str(node),
        "listeners": f"{protocol}://{at.host}:{at.port}",
        "advertised.listeners": f"{protocol}://{advertised.host}:{advertised.port}",
        **({} if rack is None else {"broker.rack": rack}),
    }


def _entry(call: Call, entry: Entry) -> Any:
    synonyms = entry.synonyms if call.message.include_synonyms else ()
    return call.types.make(
        "DescribeConfigsResourceResult",
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(
            call.types.make(
                "DescribeConfigsSynonym",
                name=one.name,
                value=None if entry.is_sensitive else one.value,
                source=one.source,
            )
            for one in synonyms
        ),
        config_type=entry.kind,
        documentation=entry.documentation if getattr(call.message, "include_documentation", False) else None,
    )


#: Gives the configurations of a resource after its changes, unchecked: of the resource's options, its present
#: configurations, and the changes. Raises Refused.
_Changing = Callable[[BrokerState, Mapping[str, Option], Mapping[str, str], Any], dict[str, str]]


def _change_configs(state: BrokerState, call: Call, changing: _Changing) -> Turns[Done]:
    """Answer for each resource; a wrong change leaves its resource as it is.

    Source: ConfigAdminManager and ConfigurationControlManager.
    """
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


def _check_values(values: Mapping[str, str | None]) -> dict[str, str]:
    """Raises Refused if one is null."""
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise Refused(Error.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")
    return {name: value for name, value in values.items() if value is not None}


def _change(state: BrokerState, call: Call, asked: Any, changing: _Changing) -> None:
    kind, name = asked.resource_type, asked.resource_name
    if kind == BROKER and not may_on_cluster(state, call, Operation.ALTER_CONFIGS):
        raise Refused(Error.CLUSTER_AUTHORIZATION_FAILED, "")  # Kafka 4.4.0 says nothing about it
    _check_rights(state, call, kind, name, Operation.ALTER_CONFIGS)
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


def _change_topic(state: BrokerState, call: Call, asked: Any, changing: _Changing) -> None:
    name = asked.resource_name
    if not name:
        raise Refused(Error.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic = state.topics.get(name)
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
    changed = changing(state, TOPIC_OPTIONS, topic.configs, asked.configs)
    configs = {key: check(TOPIC_OPTIONS, "topic", key, value) for key, value in changed.items()}
    if not call.message.validate_only:
        state.carry_out(TopicConfigured(name, configs))


def _change_broker(state: BrokerState, call: Call, asked: Any, changing: _Changing) -> None:
    name = _broker_of(state, call, asked.resource_name)
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
        state.carry_out(BrokerConfigured(name, configs))


def alter_configs(state: BrokerState, call: Call) -> Turns[Done]:
    """AlterConfigs (key 33), versions 0-2: all configurations of a resource are replaced (KIP-133)."""
    return _change_configs(state, call, _replaced)


def _replaced(
    _state: BrokerState, _options: Mapping[str, Option], _present: Mapping[str, str], configs: Any
) -> dict[str, str]:
    return _check_values({one.name: one.value for one in configs})


#: AlterConfigOp.OpType
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def incremental_alter_configs(state: BrokerState, call: Call) -> Turns[Done]:
    """IncrementalAlterConfigs (key 44), versions 0-1: of topics, groups and brokers (KIP-339).

    * Operations: set, delete, and for lists append and subtract. A wrong one leaves its resource unchanged.
    * Of brokers the settings of `DYNAMIC_OPTIONS` can change.
    """
    return _change_configs(state, call, _changed)


def _changed(
    state: BrokerState, options: Mapping[str, Option], present: Mapping[str, str], changes: Any
) -> dict[str, str]:
    values = _check_values({one.name: one.value for one in changes if one.config_operation != _DELETE})
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


_LOGGERS, _CLIENT_METRICS = 8, 16


def list_config_resources(state: BrokerState, call: Call) -> Turns[Done]:
    """ListConfigResources (key 74), versions 0-1: the resources with configurations (KIP-714, KIP-1142).

    Needs DESCRIBE_CONFIGS on the cluster. v0: client metrics alone, of which there are none here. v1: topics,
    brokers, their loggers, and groups that have a configuration of their own.
    """
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


APIS = (
    Api(
        32, "DescribeConfigs", 1, 4, describe_configs, on_topics=Operation.DESCRIBE_CONFIGS,
        on_groups=Operation.DESCRIBE_CONFIGS, errors={"resources": "results"},
    ),
    Api(
        33, "AlterConfigs", 0, 2, alter_configs, on_topics=Operation.ALTER_CONFIGS,
        on_groups=Operation.ALTER_CONFIGS, errors={"resources": "responses"},
    ),
    Api(
        44, "IncrementalAlterConfigs", 0, 1, incremental_alter_configs, on_topics=Operation.ALTER_CONFIGS,
        on_groups=Operation.ALTER_CONFIGS, errors={"resources": "responses"},
    ),
    Api(
        74, "ListConfigResources", 0, 1, list_config_resources, older=(None, 0),
        needs=(on_cluster(Operation.DESCRIBE_CONFIGS, None),),
    ),
)  # fmt: skip
