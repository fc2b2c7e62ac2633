"""Configurations as DescribeConfigs and CreateTopics show them: value, type and source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from groupstorm.broker.config import OPTIONS, BrokerConfig
from groupstorm.broker.dynamic_configs import (
    ALL_BROKERS,
    DYNAMIC_OPTIONS,
    ConfigSource,
    DynamicConfigs,
    Synonym,
    kept_option,
    static_synonyms,
)
from groupstorm.broker.kafka_configs import KafkaConfig, kafka_configs
from groupstorm.broker.topic_configs import TOPIC_OPTIONS
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigType, Option
from groupstorm.coordinator.group_configs import INTERNAL_OPTIONS, broker_value, group_options
from groupstorm.coordinator.modern.config import ModernConfig


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


#: The group coordinator's settings -> field, type, and how many of the field's units are one.
_COORDINATOR_OPTIONS: Mapping[str, tuple[str, ConfigType, int]] = {
    "group.initial.rebalance.delay.ms": ("initial_rebalance_delay_ms", ConfigType.INT, 1),
    "group.max.session.timeout.ms": ("max_session_timeout_ms", ConfigType.INT, 1),
    "group.max.size": ("max_size", ConfigType.INT, 1),
    "group.min.session.timeout.ms": ("min_session_timeout_ms", ConfigType.INT, 1),
    "offset.metadata.max.bytes": ("offset_metadata_max_bytes", ConfigType.INT, 1),
    "offsets.commit.timeout.ms": ("commit_timeout_ms", ConfigType.INT, 1),
    "offsets.retention.check.interval.ms": ("offsets_retention_check_interval_ms", ConfigType.LONG, 1),
    "offsets.retention.minutes": ("offsets_retention_ms", ConfigType.INT, 60_000),
}


#: Its settings of consumer and streams groups that are not of type INT.
_GROUPS_TYPES = {
    "assignors": ConfigType.LIST,
    "migration_policy": ConfigType.STRING,
    "rack_aware_assignment_tags": ConfigType.LIST,
}


def _entries_of_groups(config: ModernConfig) -> Iterator[Entry]:
    """The settings of a kind of group that Kafka describes."""
    defaults = type(config)()
    for field in sorted(config.__match_args__):
        value, default = _text(getattr(config, field)), _text(getattr(defaults, field))
        name = f"group.{config.kind}.{field.replace('_', '.')}"
        if name in kafka_configs("broker"):
            yield _fixed(name, value, default, _GROUPS_TYPES.get(field, ConfigType.INT))


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def broker_entries(
    broker: DynamicConfigs, coordinator: CoordinatorConfig, of_node: Mapping[str, str]
) -> list[Entry]:
    """All settings of a broker. ``of_node``: those that each broker of the process has for itself."""
    known = kafka_configs("broker")
    found = {entry.name: entry for entry in _coordinator_entries(coordinator)}
    for name in {*OPTIONS, *known, *broker.changed()} - found.keys():
        synonyms = static_synonyms(name, of_node[name]) if name in of_node else broker.synonyms(name)
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
    for name, (field, kind, one) in _COORDINATOR_OPTIONS.items():
        value, default = getattr(coordinator, field) // one, getattr(defaults, field) // one
        yield _fixed(name, str(value), str(default), kind)
    yield from _entries_of_groups(coordinator.consumer)
    yield from _entries_of_groups(coordinator.share)
    yield from _entries_of_groups(coordinator.streams)


def _fixed(name: str, value: str, default: str, kind: ConfigType) -> Entry:
    """A setting that the broker was started with."""
    synonyms = [Synonym(name, default, ConfigSource.DEFAULT)]
    if value != default:
        synonyms.insert(0, Synonym(name, value, ConfigSource.STATIC_BROKER))
    return Entry(name, value, kind, True, tuple(synonyms))


def _kind(value: object) -> ConfigType:
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, float):
        return ConfigType.DOUBLE
    return ConfigType.LONG if isinstance(value, int) else ConfigType.STRING
