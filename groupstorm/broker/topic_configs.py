"""Configurations of topics and groups: names, types, defaults and bounds, and the effect of those that have
one.

Sources: TopicConfig, LogConfig and GroupConfig. Configurations that mean nothing to a log in memory are
checked, kept and described, because tools set them (Kafka Streams, Connect), and have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.broker.config import INT32_MAX, INT64_MAX, BrokerConfig


class ConfigType(IntEnum):
    """As DescribeConfigs names them (DescribeConfigsResponse.ConfigType)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigError(ValueError):
    """A configuration that Kafka refuses; the sentence says which."""


class Option(NamedTuple):
    """One configuration. ``broker``: the broker's setting that is its default."""

    kind: ConfigType
    default: str
    least: float = 0
    most: float = INT64_MAX
    values: tuple[str, ...] = ()
    broker: str | None = None


def _long(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.LONG, str(default), least, broker=broker)


def _int(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.INT, str(default), least, INT32_MAX, broker=broker)


def _flag(default: bool) -> Option:
    return Option(ConfigType.BOOLEAN, str(default).lower())


#: These have an effect: on retention, on the batches that are accepted, on their timestamps.
EFFECTIVE = frozenset(
    ("retention.bytes", "retention.ms", "max.message.bytes", "message.timestamp.type", "min.insync.replicas")
)

TOPIC_OPTIONS: Mapping[str, Option] = {
    "cleanup.policy": Option(ConfigType.LIST, "delete", values=("compact", "delete")),
    "compression.gzip.level": Option(ConfigType.INT, "-1", -1, 9),
    "compression.lz4.level": Option(ConfigType.INT, "9", 1, 17),
    "compression.type": Option(
        ConfigType.STRING, "producer", values=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": Option(ConfigType.INT, "3", -131072, 22),
    "delete.retention.ms": _long(86_400_000),
    "file.delete.delay.ms": _long(60_000),
    "flush.messages": _long(INT64_MAX, 1),
    "flush.ms": _long(INT64_MAX),
    "follower.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "index.interval.bytes": _int(4096),
    "leader.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "local.retention.bytes": _long(-2, -2),
    "local.retention.ms": _long(-2, -2),
    "max.compaction.lag.ms": _long(INT64_MAX, 1),
    "max.message.bytes": _int(1_048_588, broker="message.max.bytes"),
    "message.timestamp.after.max.ms": _long(3_600_000),
    "message.timestamp.before.max.ms": _long(INT64_MAX),
    "message.timestamp.type": Option(ConfigType.STRING, "CreateTime", values=("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Option(ConfigType.DOUBLE, "0.5", 0, 1),
    "min.compaction.lag.ms": _long(0),
    "min.insync.replicas": _int(1, 1),
    "preallocate": _flag(default=False),
    "remote.log.copy.disable": _flag(default=False),
    "remote.log.delete.on.disable": _flag(default=False),
    "remote.storage.enable": _flag(default=False),
    "retention.bytes": _long(-1, -1, broker="log.retention.bytes"),
    "retention.ms": _long(604_800_000, -1, broker="log.retention.ms"),
    "segment.bytes": _int(1_073_741_824, 14),
    "segment.index.bytes": _int(10_485_760, 4),
    "segment.jitter.ms": _long(0),
    "segment.ms": _long(604_800_000, 1),
    "unclean.leader.election.enable": _flag(default=False),
}

#: For groups of the newer protocols: those of consumer groups (KIP-848) have an effect, those of share and
#: streams groups (KIP-932, KIP-1071) have none.
GROUP_OPTIONS: Mapping[str, Option] = {
    "consumer.assignment.interval.ms": _int(1_000, 0),
    "consumer.heartbeat.interval.ms": _int(5_000, 1),
    "consumer.session.timeout.ms": _int(45_000, 1),
    "share.auto.offset.reset": Option(ConfigType.STRING, "latest"),
    "share.heartbeat.interval.ms": _int(5_000, 1),
    "share.isolation.level": Option(
        ConfigType.STRING, "read_uncommitted", values=("read_committed", "read_uncommitted")
    ),
    "share.record.lock.duration.ms": _int(30_000, 1_000),
    "share.session.timeout.ms": _int(45_000, 1),
    "streams.heartbeat.interval.ms": _int(5_000, 1),
    "streams.num.standby.replicas": _int(0),
    "streams.session.timeout.ms": _int(45_000, 1),
}


class LogSettings:
    """The configurations that a partition's log reads at every append."""

    __slots__ = (
        "log_append_time",
        "max_message_bytes",
        "min_insync_replicas",
        "retention_bytes",
        "retention_ms",
    )

    def __init__(self, retention_bytes: int = -1, retention_ms: int = -1) -> None:
        self.retention_bytes = retention_bytes
        self.retention_ms = retention_ms
        self.max_message_bytes = 1_048_588
        self.log_append_time = False
        self.min_insync_replicas = 1

    def update(self, configs: Mapping[str, str], broker: BrokerConfig) -> None:
        """Take the topic's configurations, and for all others the broker's settings."""

        def number(name: str) -> int:
            return int(configs.get(name) or default_of(TOPIC_OPTIONS[name], broker))

        self.retention_bytes = number("retention.bytes")
        self.retention_ms = number("retention.ms")
        self.max_message_bytes = number("max.message.bytes")
        self.min_insync_replicas = number("min.insync.replicas")
        self.log_append_time = configs.get("message.timestamp.type") == "LogAppendTime"


def default_of(option: Option, broker: BrokerConfig) -> str:
    """The value of an option that is not configured: the broker's setting, or Kafka's default."""
    if option.broker is None:
        return option.default
    return str(getattr(broker, option.broker.replace(".", "_")))


def check(options: Mapping[str, Option], what: str, name: str, value: str | None) -> str:
    """The checked value. Raises ConfigError for a name or a value that Kafka refuses."""
    option = options.get(name)
    if option is None:
        raise ConfigError(f"Unknown {what} config name: {name}")
    if value is None:
        raise ConfigError(f"Null value not supported for {what} configs: {name}")
    if not _CHECKS[option.kind](option, value.strip()):
        raise ConfigError(f"Invalid value {value[:100]} for configuration {name}")
    return value.strip()


def _is_flag(_option: Option, value: str) -> bool:
    return value.lower() in ("true", "false")


def _is_text(option: Option, value: str) -> bool:
    return not option.values or value in option.values


def _is_list(option: Option, value: str) -> bool:
    return not option.values or all(part.strip() in option.values for part in value.split(","))


def _is_whole(option: Option, value: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]{1,19}", value)) and option.least <= int(value) <= option.most


def _is_number(option: Option, value: str) -> bool:
    is_number = re.fullmatch(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?", value)
    return bool(is_number) and option.least <= float(value) <= option.most


_CHECKS: Mapping[ConfigType, Callable[[Option, str], bool]] = {
    ConfigType.BOOLEAN: _is_flag,
    ConfigType.STRING: _is_text,
    ConfigType.LIST: _is_list,
    ConfigType.INT: _is_whole,
    ConfigType.LONG: _is_whole,
    ConfigType.DOUBLE: _is_number,
}
