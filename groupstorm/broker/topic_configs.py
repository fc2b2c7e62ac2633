"""Configurations of topics: names, types, defaults and bounds, and the effect of those that have one.

Sources: TopicConfig, LogConfig. Configurations that mean nothing to a log in memory are
checked, kept and described, because tools set them (Kafka Streams, Connect), and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.broker.config import INT64_MAX, BrokerConfig
from groupstorm.coordinator.config_options import ConfigType, Option, flag, integer, long

TOPIC_OPTIONS: Mapping[str, Option] = {
    "cleanup.policy": Option(
        ConfigType.LIST, "delete", values=("compact", "delete"), broker="log.cleanup.policy"
    ),
    "compression.gzip.level": Option(ConfigType.INT, "-1", -1, 9),
    "compression.lz4.level": Option(ConfigType.INT, "9", 1, 17),
    "compression.type": Option(
        ConfigType.STRING, "producer", values=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": Option(ConfigType.INT, "3", -131072, 22),
    "delete.retention.ms": long(86_400_000, broker="log.cleaner.delete.retention.ms"),
    "errors.deadletterqueue.group.enable": flag(default=False),
    "file.delete.delay.ms": long(60_000),
    "flush.messages": long(INT64_MAX, 1),
    "flush.ms": long(INT64_MAX),
    "follower.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "index.interval.bytes": integer(4096),
    "leader.replication.throttled.replicas": Option(ConfigType.LIST, ""),
    "local.retention.bytes": long(-2, -2),
    "local.retention.ms": long(-2, -2),
    "max.compaction.lag.ms": long(INT64_MAX, 1, broker="log.cleaner.max.compaction.lag.ms"),
    "max.decompressed.message.bytes": Option(ConfigType.INT, "2147483639", 1, 2147483639),
    "max.message.bytes": integer(1_048_588, broker="message.max.bytes"),
    "message.timestamp.after.max.ms": long(3_600_000, broker="log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": long(INT64_MAX, broker="log.message.timestamp.before.max.ms"),
    "message.timestamp.type": Option(ConfigType.STRING, "CreateTime", values=("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Option(
        ConfigType.DOUBLE, "0.5", 0, 1, broker="log.cleaner.min.cleanable.ratio"
    ),
    "min.compaction.lag.ms": long(0, broker="log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": integer(1, 1),
    "preallocate": flag(default=False),
    "remote.copy.lag.bytes": long(-1, -1),
    "remote.copy.lag.ms": long(0, -1),
    "remote.log.copy.disable": flag(default=False),
    "remote.log.delete.on.disable": flag(default=False),
    "remote.storage.enable": flag(default=False),
    "retention.bytes": long(-1, -1, broker="log.retention.bytes"),
    "retention.ms": long(604_800_000, -1, broker="log.retention.ms"),
    "segment.bytes": integer(1_073_741_824, 1_048_576, broker="log.segment.bytes"),  # KIP-1030
    "segment.index.bytes": integer(10_485_760, 4),
    "segment.jitter.ms": long(0),
    "segment.ms": long(604_800_000, 1, broker="log.roll.ms"),
    "unclean.leader.election.enable": flag(default=False),
}


class LogSettings:
    """The configurations that a partition's log reads at every append."""

    def __init__(self, configs: Mapping[str, str] | None = None, broker: BrokerConfig | None = None) -> None:
        self.update(configs or {}, broker or BrokerConfig())

    def update(self, configs: Mapping[str, str], broker: BrokerConfig) -> None:
        """Take the topic's configurations, and for all others the broker's settings."""

        def text(name: str) -> str:
            return configs[name] if name in configs else default_of(TOPIC_OPTIONS[name], broker)

        def number(name: str) -> int:
            return int(text(name))

        self.retention_bytes = number("retention.bytes")
        self.retention_ms = number("retention.ms")
        self.max_message_bytes = number("max.message.bytes")
        self.min_insync_replicas = number("min.insync.replicas")
        self.log_append_time = configs.get("message.timestamp.type") == "LogAppendTime"
        policies = {policy.strip() for policy in text("cleanup.policy").split(",")}
        self.is_compacted = "compact" in policies
        self.is_deleted = "delete" in policies
        self.min_cleanable_dirty_ratio = float(text("min.cleanable.dirty.ratio"))
        self.min_compaction_lag_ms = number("min.compaction.lag.ms")
        self.max_compaction_lag_ms = number("max.compaction.lag.ms")
        self.delete_retention_ms = number("delete.retention.ms")
        self.segment_bytes = number("segment.bytes")
        self.longest_segment_ms = number("segment.ms")
        if self.is_compacted:  # LogConfig.maxSegmentMs: the active segment is not compacted
            self.longest_segment_ms = min(self.longest_segment_ms, self.max_compaction_lag_ms)
        self.timestamp_before_max_ms = number("message.timestamp.before.max.ms")
        self.timestamp_after_max_ms = number("message.timestamp.after.max.ms")


def default_of(option: Option, broker: BrokerConfig) -> str:
    """The value of an option that is not configured: the broker's setting, or Kafka's default."""
    if option.broker is None:
        return option.default
    value = getattr(broker, option.broker.replace(".", "_"))
    return ",".join(value) if isinstance(value, tuple) else str(value)
