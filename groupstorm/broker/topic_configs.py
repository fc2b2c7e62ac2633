"""Configurations of topics: names, types, defaults and bounds, and the effect of those that have one.

Sources: TopicConfig, LogConfig. Configurations that mean nothing to a log in memory are
checked, kept and described, because tools set them (Kafka Streams, Connect), and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.broker.config import INT64_MAX, BrokerConfig
from groupstorm.broker.config_options import ConfigType, Option, flag, integer, long

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
    "delete.retention.ms": long(86_400_000),
    "file.delete.delay.ms": long(60_000),
    "flush.messages": long(INT64_MAX, 1),
    "flush.ms": long(INT64_MAX),
    "follower.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "index.interval.bytes": integer(4096),
    "leader.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "local.retention.bytes": long(-2, -2),
    "local.retention.ms": long(-2, -2),
    "max.compaction.lag.ms": long(INT64_MAX, 1),
    "max.message.bytes": integer(1_048_588, broker="message.max.bytes"),
    "message.timestamp.after.max.ms": long(3_600_000),
    "message.timestamp.before.max.ms": long(INT64_MAX),
    "message.timestamp.type": Option(ConfigType.STRING, "CreateTime", values=("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Option(ConfigType.DOUBLE, "0.5", 0, 1),
    "min.compaction.lag.ms": long(0),
    "min.insync.replicas": integer(1, 1),
    "preallocate": flag(default=False),
    "remote.log.copy.disable": flag(default=False),
    "remote.log.delete.on.disable": flag(default=False),
    "remote.storage.enable": flag(default=False),
    "retention.bytes": long(-1, -1, broker="log.retention.bytes"),
    "retention.ms": long(604_800_000, -1, broker="log.retention.ms"),
    "segment.bytes": integer(1_073_741_824, 1_048_576),  # KIP-1030 has raised the least value to 1 MiB
    "segment.index.bytes": integer(10_485_760, 4),
    "segment.jitter.ms": long(0),
    "segment.ms": long(604_800_000, 1),
    "unclean.leader.election.enable": flag(default=False),
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
