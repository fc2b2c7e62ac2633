"""What a scenario's settings make of one consumer."""

from __future__ import annotations

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import PROFILES
from groupstorm.storms.settings import Settings


def consumer_config(
    settings: Settings, group: str, topics: tuple[str, ...], name: str, index: int
) -> ConsumerConfig:
    """The configuration of the process under ``name``, which is its client id, in the place ``index``."""
    own = settings.of_member(index)
    static = own.choice("group.instance.id") == "ordinal"
    return ConsumerConfig(
        group_id=group,
        client_id=name,
        topics=topics,
        group_instance_id=name if static else None,
        partition_assignment_strategy=own.names("partition.assignment.strategy"),
        session_timeout_ms=own.integer("session.timeout.ms"),
        heartbeat_interval_ms=own.integer("heartbeat.interval.ms"),
        max_poll_interval_ms=own.integer("max.poll.interval.ms"),
        request_timeout_ms=own.integer("request.timeout.ms"),
        retry_backoff_ms=own.integer("retry.backoff.ms"),
        metadata_max_age_ms=own.integer("metadata.max.age.ms"),
        enable_auto_commit=own.flag("enable.auto.commit"),
        auto_commit_interval_ms=own.integer("auto.commit.interval.ms"),
        leave_group_on_close=own.optional_flag("leave_on_close"),
        profile=PROFILES[own.names("client_profile")[0]],
    )


def strategies(settings: Settings) -> tuple[str, ...]:
    """What the members offer, all clients together; each in its order."""
    entries = [
        entry for own in settings.of_profiles() for entry in own.names("partition.assignment.strategy")
    ]
    return tuple(dict.fromkeys(entries))
