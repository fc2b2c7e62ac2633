"""What a scenario's settings make of one consumer."""

from __future__ import annotations

from groupstorm.clients.config import ConsumerConfig
from groupstorm.storms.settings import Settings


def consumer_config(settings: Settings, group: str, topics: tuple[str, ...], name: str) -> ConsumerConfig:
    """The configuration of the process under ``name``, which is its client id."""
    static = settings.choice("group.instance.id") == "ordinal"
    return ConsumerConfig(
        group_id=group,
        client_id=name,
        topics=topics,
        group_instance_id=name if static else None,
        partition_assignment_strategy=settings.names("partition.assignment.strategy"),
        session_timeout_ms=settings.integer("session.timeout.ms"),
        heartbeat_interval_ms=settings.integer("heartbeat.interval.ms"),
        max_poll_interval_ms=settings.integer("max.poll.interval.ms"),
        request_timeout_ms=settings.integer("request.timeout.ms"),
        retry_backoff_ms=settings.integer("retry.backoff.ms"),
        metadata_max_age_ms=settings.integer("metadata.max.age.ms"),
        enable_auto_commit=settings.flag("enable.auto.commit"),
        auto_commit_interval_ms=settings.integer("auto.commit.interval.ms"),
        leave_group_on_close=settings.optional_flag("leave_on_close"),
    )
