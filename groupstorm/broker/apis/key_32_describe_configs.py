"""DescribeConfigs (key 32), versions 1-4: topics, brokers, groups.

v1: synonyms, the places that a value may come from (KIP-226). v3: types and documentation (KIP-569).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import SENTENCES, group_error, may_on_cluster, topic_error
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.config_entries import (
    Entry,
    broker_entries,
    entries_of_all_brokers,
    group_entries,
    topic_entries,
)
from groupstorm.broker.dynamic_configs import ALL_BROKERS
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import Refused
from groupstorm.turns import Turns, in_turns

#: ConfigResource.Type
TOPIC, BROKER, GROUP = 2, 4, 32
#: Brokers, their loggers, and client metrics: who may do something with them may do it with the cluster.
_OF_CLUSTER = (BROKER, 8, 16)


def check_rights(state: BrokerState, call: Call, kind: int, name: str, on_brokers: Operation) -> None:
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


def broker_of(state: BrokerState, call: Call, name: str) -> str:
    """The name of a resource that is this broker, or all of them. Raises Refused for another one."""
    if name and not re.fullmatch(r"[+-]?[0-9]{1,10}", name):
        raise Refused(Error.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name and int(name) != call.node:
        sentence = f"Unexpected broker id, expected {call.node}, but received {name}"
        raise Refused(Error.INVALID_REQUEST, sentence)
    return str(int(name)) if name else ALL_BROKERS


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    results = []
    for asked in call.message.resources:
        results.append((yield from _result(state, call, asked)))
    return Done(call.types.response(results=tuple(results)))


API = Api(
    32, "DescribeConfigs", 1, 4, handle, on_topics=Operation.DESCRIBE_CONFIGS,
    on_groups=Operation.DESCRIBE_CONFIGS, errors={"resources": "results"},
)  # fmt: skip


def _result(state: BrokerState, call: Call, asked: Any) -> Turns[Any]:
    error, sentence, entries = Error.NONE, "", list[Entry]()
    try:
        names = asked.configuration_keys or None  # an empty list asks for all as well
        check_rights(state, call, asked.resource_type, asked.resource_name, Operation.DESCRIBE_CONFIGS)
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
        if not broker_of(state, call, name):
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
