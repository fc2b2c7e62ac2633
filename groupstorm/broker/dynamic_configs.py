"""The settings that can change while the brokers run (DynamicBrokerConfig, KIP-226).

An administrator sets one for a broker, or for all of them (the broker without a name). The broker's own value
counts before the one of all, and this before what the brokers were started with. Several brokers of one
process share their settings: only those of all brokers can change there. Kafka keeps and describes any
other setting that can change, and so does this broker, on which it has no effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from groupstorm.broker.config import INT32_MAX, INT64_MAX, OPTIONS, BrokerConfig, shown
from groupstorm.broker.kafka_configs import kafka_configs
from groupstorm.coordinator.config_options import ConfigType, Option, integer, long

#: The name of all brokers.
ALL_BROKERS = ""

#: The settings that Kafka can change as well, and which have an effect here.
DYNAMIC_OPTIONS: Mapping[str, Option] = {
    "log.retention.bytes": long(-1, -1),
    "log.retention.ms": long(604_800_000, -1),
    "max.connections": integer(INT32_MAX),
    "message.max.bytes": integer(1_048_588),
    "sasl.enabled.mechanisms": Option(
        ConfigType.LIST,
        "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        values=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    ),
}


class ConfigSource(IntEnum):
    """DescribeConfigsResponse.ConfigSource."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """One of the sources of a value; the first one with a value counts."""

    name: str
    value: str
    source: ConfigSource


class DynamicConfigs:
    """``static``: what the brokers were started with."""

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        #: By the broker's name.
        self.by_broker: dict[str, dict[str, str]] = {}

    def effective(self) -> BrokerConfig:
        """The settings that count."""
        values: dict[str, Any] = {
            name.replace(".", "_"): OPTIONS[name](name, self.synonyms(name)[0].value)
            for _, configs in self._counting()
            for name in configs
            if name in DYNAMIC_OPTIONS
        }
        return dataclasses.replace(self._static, **values)

    def changed(self) -> set[str]:
        """The names of the settings that were changed."""
        return {name for _, configs in self._counting() for name in configs}

    def _counting(self) -> list[tuple[str, dict[str, str]]]:
        """The changes of this broker, then those of all."""
        names = (str(self._static.node_id), ALL_BROKERS)
        return [(name, self.by_broker[name]) for name in names if name in self.by_broker]

    def synonyms(self, name: str) -> list[Synonym]:
        """The sources of a setting's value; the first one counts."""
        found = [
            Synonym(name, configs[name], _source(broker))
            for broker, configs in self._counting()
            if name in configs
        ]
        if name not in OPTIONS:
            return [*found, *_default(name)]
        field = name.replace(".", "_")
        value, default = shown(getattr(self._static, field)), shown(getattr(BrokerConfig(), field))
        if value != default:
            found.append(Synonym(name, value, ConfigSource.STATIC_BROKER))
        if not default:
            return [*found, *_default(name)]
        return [*found, Synonym(name, default, ConfigSource.DEFAULT)]


def kept_option(name: str) -> Option | None:
    """A configuration of Kafka's that can change while a broker runs, and has no effect here; a name that
    Kafka does not know counts as one: it may be that of a plug-in. None: one that cannot change."""
    if name in OPTIONS or name.startswith("group."):
        return None
    known = kafka_configs("broker").get(name)
    if known is None:
        return Option(ConfigType.STRING, "")
    return Option(known.kind, known.default or "", -INT64_MAX) if known.changes else None


def _default(name: str) -> list[Synonym]:
    known = kafka_configs("broker").get(name)
    if known is None or known.default is None:
        return []
    return [Synonym(name, known.default, ConfigSource.DEFAULT)]


def static_synonyms(name: str, value: str) -> list[Synonym]:
    """The sources of a setting that a broker was started with."""
    return [Synonym(name, value, ConfigSource.STATIC_BROKER), *_default(name)]


def _source(broker: str) -> ConfigSource:
    return ConfigSource.DYNAMIC_DEFAULT_BROKER if broker == ALL_BROKERS else ConfigSource.DYNAMIC_BROKER
