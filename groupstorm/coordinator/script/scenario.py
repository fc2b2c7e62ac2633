"""A scenario: one JSON line, `{"id": ..., "config": {...}, "steps": [...]}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.coordinator.config import (
    COMPATIBILITY,
    OPTIONS,
    Compatibility,
    CoordinatorConfig,
    parse_int,
)
from groupstorm.coordinator.modern.config import GROUP_OPTIONS, STREAMS_GROUP_TEXTS
from groupstorm.problems import InputError

#: The most partitions of a topic: each takes memory.
PARTITIONS_MAX = 1_000_000


class ScenarioFailed(Exception):
    """The line is a scenario that cannot be run; the message says why."""


class Scenario(NamedTuple):
    id: str | int
    config: Mapping[str, Any]
    steps: list[dict[str, Any]]


def read_scenario(line: str, place: str) -> Scenario:
    """Parse one line; `InputError`, naming ``place``, if it is not a scenario."""
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise InputError(f"{place}: not JSON ({problem}); expected a scenario") from problem
    if not isinstance(value, dict):
        raise InputError(f'{place}: {_short(value)} is no scenario {{"id", "config", "steps"}}')
    if not isinstance(value.get("id"), str | int) or isinstance(value["id"], bool):
        raise InputError(f"{place}: id: {_short(value.get('id'))} is no name of a scenario")
    config = value.get("config", {})
    if not isinstance(config, dict):
        raise InputError(f"{place}: config: {_short(config)} is no object of options")
    steps = value.get("steps")
    if not isinstance(steps, list):
        raise InputError(f"{place}: steps: {_short(steps)} is no list of steps")
    for index, step in enumerate(steps):
        if not isinstance(step, dict):
            raise InputError(f"{place}: steps[{index}]: {_short(step)} is no object with an op")
    return Scenario(value["id"], config, steps)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def broker_config(scenario: Scenario, kafka: Compatibility) -> CoordinatorConfig:
    """The broker's options that this Kafka knows; `ScenarioFailed` if it would refuse a value."""
    options = {name: value for name, value in scenario.config.items() if name in OPTIONS}
    options[COMPATIBILITY] = kafka
    try:
        _check_own_keys(scenario.config)
        return CoordinatorConfig.from_mapping(options)
    except InputError as problem:
        raise ScenarioFailed(f"config: {problem}") from problem


def _check_own_keys(config: Mapping[str, Any]) -> None:
    for flag in ("racks", "description_plugin", "persister_log"):
        if not isinstance(config.get(flag, False), bool):
            raise InputError(f"{flag}: {_short(config[flag])} is neither true nor false")
    groups = config.get("groups", {})
    if not isinstance(groups, dict) or not all(isinstance(group, dict) for group in groups.values()):
        raise InputError(f"groups: {_short(groups)} does not give options by group")
    for group, options in groups.items():
        for name, value in options.items():
            if name in GROUP_OPTIONS:
                parse_int(f"groups: {group}: {name}", value, *GROUP_OPTIONS[name])
    if not isinstance(config.get("topologies", {}), dict):
        raise InputError(f"topologies: {_short(config['topologies'])} is no object of topologies")


def group_options_of(scenario: Scenario) -> dict[str, dict[str, int | str]]:
    """The options of single groups, by group. `broker_config` has checked them."""
    known = {*GROUP_OPTIONS, *STREAMS_GROUP_TEXTS}
    return {
        group: {
            name: str(value) if name in STREAMS_GROUP_TEXTS else int(value)
            for name, value in options.items()
            if name in known
        }
        for group, options in scenario.config.get("groups", {}).items()
    }


def initial_topics(scenario: Scenario) -> dict[str, int]:
    """Topic -> number of partitions."""
    topics = scenario.config.get("topics", {})
    try:
        return partition_counts(topics)
    except InputError as problem:
        raise ScenarioFailed(f"config: topics: {problem}") from problem


def partition_counts(topics: Any) -> dict[str, int]:
    """Check an object of topics; the `InputError` names the wrong topic."""
    if not isinstance(topics, dict):
        raise InputError(f"{_short(topics)} does not give a number of partitions by topic")
    for topic, count in topics.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{topic}: {_short(count)} is no number of partitions")
        if count > PARTITIONS_MAX:
            raise InputError(f"{topic}: {_short(count)}: expected at most {PARTITIONS_MAX:,} partitions")
    return topics
