"""Configurations as DescribeConfigs and CreateTopics show them, with their values, types and sources.

`kafka_configs` has those of Kafka, `DynamicConfigs` those that change while brokers run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from groupstorm.broker.config import (
    INT32_MAX,
    INT64_MAX,
    OPTIONS,
    BrokerConfig,
    KafkaConfig,
    kafka_configs,
    shown,
)
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config import FIELDS, CoordinatorConfig
from groupstorm.coordinator.config_options import (
    INTERNAL_OPTIONS,
    ConfigType,
    Option,
    broker_value,
    group_options,
    integer,
    long,
)
from groupstorm.coordinator.modern.config import ModernConfig

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
    """The settings that can change while the brokers run (DynamicBrokerConfig, KIP-226). ``static``: what the
    brokers were started with.

    An administrator sets one for a broker, or for all of them (the broker without a name). The broker's own
    value counts before the one of all, and this before what the brokers were started with. Several brokers of
    one process share their settings: only those of all brokers can change there. Kafka keeps and describes
    any other setting that can change, and so does this broker, on which it has no effect.
    """

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


def _static_synonyms(name: str, value: str) -> list[Synonym]:
    """The sources of a setting that a broker was started with."""
    return [Synonym(name, value, ConfigSource.STATIC_BROKER), *_default(name)]


def _source(broker: str) -> ConfigSource:
    return ConfigSource.DYNAMIC_DEFAULT_BROKER if broker == ALL_BROKERS else ConfigSource.DYNAMIC_BROKER


class Entry(NamedTuple):
    """``value``: None if there is none, or if it is not told. ``synonyms``: the sources of the value."""

    name: str
    value: str | None
    kind: ConfigType
    read_only: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None = None
    is_sensitive: bool = False

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


def topic_entries(configs: Mapping[str, str], broker: DynamicConfigs) -> Iterator[Entry]:
    """All configurations of a topic, by name."""

    def synonyms(name: str, option: Option) -> list[Synonym]:
        if option.broker is not None:
            return broker.synonyms(option.broker)
        of_broker = known[name].synonym
        return [] if of_broker is None else [Synonym(of_broker, option.default, ConfigSource.DEFAULT)]

    known = kafka_configs("topic")
    return _entries(TOPIC_OPTIONS, configs, ConfigSource.TOPIC, synonyms, known)


def group_entries(configs: Mapping[str, str], config: CoordinatorConfig) -> Iterator[Entry]:
    """All configurations of a group, by name."""

    def synonyms(name: str, option: Option) -> list[Synonym]:
        value, found = broker_value(option, config), list[Synonym]()
        if value != option.default and option.broker is not None:
            found.append(Synonym(option.broker, value, ConfigSource.STATIC_BROKER))
        return [*found, Synonym(option.broker or name, option.default, ConfigSource.DEFAULT)]

    options = {
        name: option
        for name, option in group_options(config.compatibility).items()
        if name not in INTERNAL_OPTIONS
    }
    return _entries(options, configs, ConfigSource.GROUP, synonyms, kafka_configs("group"))


def _entries(
    options: Mapping[str, Option],
    configs: Mapping[str, str],
    own: ConfigSource,
    synonyms_of: Callable[[str, Option], list[Synonym]],
    known: Mapping[str, KafkaConfig],
) -> Iterator[Entry]:
    """``synonyms_of``: where the value of an option comes from that the resource does not have."""
    for name, option in options.items():
        synonyms = synonyms_of(name, option)
        if name in configs:
            synonyms.insert(0, Synonym(name, configs[name], own))
        value = synonyms[0].value if synonyms else option.default
        yield Entry(name, value, option.kind, False, tuple(synonyms), known[name].documentation)


def _entries_of_groups(config: ModernConfig) -> Iterator[Entry]:
    """The settings of a kind of group that Kafka describes."""
    defaults = type(config)()
    for field in sorted(config.__match_args__):
        value, default = _text(getattr(config, field)), _text(getattr(defaults, field))
        name = f"group.{config.kind}.{field.replace('_', '.')}"
        if name in kafka_configs("broker"):
            yield _fixed(name, value, default)


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def broker_entries(
    broker: DynamicConfigs, coordinator: CoordinatorConfig, of_node: Mapping[str, str]
) -> list[Entry]:
    """All settings of a broker. ``of_node``: those that each broker of the process has for itself."""
    known = kafka_configs("broker")
    found = {entry.name: entry for entry in _coordinator_entries(coordinator)}
    for name in {*OPTIONS, *known, *broker.changed()} - found.keys():
        synonyms = _static_synonyms(name, of_node[name]) if name in of_node else broker.synonyms(name)
        found[name] = _broker_entry(name, synonyms)
    documented = (
        entry._replace(documentation=known[name].documentation) if name in known else entry
        for name, entry in found.items()
    )
    return sorted(documented, key=lambda entry: entry.name)


def _broker_entry(name: str, synonyms: list[Synonym]) -> Entry:
    """A setting that Kafka does not know is sensitive: it may be a password of a plug-in."""
    known = kafka_configs("broker").get(name)
    if name in OPTIONS:
        kind = known.kind if known else _kind(getattr(BrokerConfig(), name.replace(".", "_")))
        read_only, is_sensitive = name not in DYNAMIC_OPTIONS, False
    else:
        kind = known.kind if known else ConfigType.STRING
        read_only, is_sensitive = kept_option(name) is None, known is None or known.is_sensitive
    value = synonyms[0].value if synonyms and not is_sensitive else None
    return Entry(name, value, kind, read_only, tuple(synonyms), None, is_sensitive)


def entries_of_all_brokers(broker: DynamicConfigs) -> Iterator[Entry]:
    """The settings that were changed for all brokers."""
    for name, value in broker.by_broker.get(ALL_BROKERS, {}).items():
        yield _broker_entry(name, [Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)])


def _coordinator_entries(coordinator: CoordinatorConfig) -> Iterator[Entry]:
    defaults = CoordinatorConfig()
    for name, (field, one) in FIELDS.items():
        value, default = getattr(coordinator, field) // one, getattr(defaults, field) // one
        yield _fixed(name, str(value), str(default))
    yield from _entries_of_groups(coordinator.consumer)
    yield from _entries_of_groups(coordinator.share)
    yield from _entries_of_groups(coordinator.streams)


def _fixed(name: str, value: str, default: str) -> Entry:
    """A setting that the broker was started with."""
    synonyms = [Synonym(name, default, ConfigSource.DEFAULT)]
    if value != default:
        synonyms.insert(0, Synonym(name, value, ConfigSource.STATIC_BROKER))
    return Entry(name, value, kafka_configs("broker")[name].kind, True, tuple(synonyms))


def _kind(value: object) -> ConfigType:
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, float):
        return ConfigType.DOUBLE
    return ConfigType.LONG if isinstance(value, int) else ConfigType.STRING
