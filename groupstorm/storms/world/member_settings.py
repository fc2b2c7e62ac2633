"""The configuration of one consumer from a scenario's settings."""

from __future__ import annotations

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import PROFILES, GroupProtocol
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.scenario.consistency import commit_ns, commits_of
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.setting_names import BATCH, COMMIT_INTERVAL, INTERVAL, NEVER, RECORD, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_work import Machines
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes, SlowRecordTimes

#: A look of the poll loop hands out several polls, if these are short: so much work at most, and records.
_LOOK_US = 500_000
_LOOK_RECORDS = 500

#: Real client libraries commit in the background, so often, in the place of an application by hand.
BY_HAND_MS = 100


def consumer_config(
    settings: Settings,
    group: str,
    topics: tuple[str, ...],
    name: str,
    index: int,
    instance: str | None = None,
) -> ConsumerConfig:
    """The configuration of the consumer ``name`` (its client id), which has the place ``index``.

    ``instance``: its group.instance.id if it is static and no rule gives it one; None: ``name``.
    """
    own = settings.of_member(index)
    assignor = own.choice("group.remote.assignor")
    static = own.choice("group.instance.id") in ("ordinal", "podname")
    return ConsumerConfig(
        group_id=group,
        client_id=name,
        topics=topics,
        topic_pattern=own.optional_text("topic_pattern"),
        group_instance_id=own.instance or ((instance or name) if static else None),
        partition_assignment_strategy=own.names("partition.assignment.strategy"),
        session_timeout_ms=own.integer("session.timeout.ms"),
        heartbeat_interval_ms=own.integer("heartbeat.interval.ms"),
        max_poll_interval_ms=own.integer("max.poll.interval.ms"),
        request_timeout_ms=own.integer("request.timeout.ms"),
        retry_backoff_ms=own.integer("retry.backoff.ms"),
        metadata_max_age_ms=own.integer("metadata.max.age.ms"),
        enable_auto_commit=commits_of(own) not in (INTERVAL, NEVER),
        auto_commit_interval_ms=_commit_interval_ms(own),
        group_protocol=GroupProtocol(own.choice("group.protocol")),
        group_remote_assignor=None if assignor == "none" else assignor,
        leave_group_on_close=own.optional_flag("leave_on_close"),
        profile=PROFILES[own.names("client_profile")[0]],
    )


def _commit_interval_ms(own: Settings) -> int:
    commits = commits_of(own)
    if commits in (BATCH, RECORD):
        return BY_HAND_MS
    return own.integer(COMMIT_INTERVAL if commits == INTERVAL else "auto.commit.interval.ms")


def poll_loop(
    settings: Settings,
    logs: RecordLogs,
    seed: int,
    index: int,
    name: str,
    incarnation: int,
    steps: bool,
    slow: SlowRecordTimes | None = None,
) -> PollLoop:
    """The poll loop of an incarnation of the process ``name``; ``steps``: each look one by one."""
    own = settings.of_member(index)
    stream = Stream(seed, "records", name, incarnation)
    times = RecordTimes(
        own.distribution("process_ms"),
        own.integer("concurrency"),
        stream,
        factor=settings.of_type("machines", Machines).factor(index),
        slow=slow,
        commit_ns=commit_ns(own),
    )
    poll_records = own.integer("max.poll.records")
    record_us = max(1, times.mean_us(1_000) // 1_000)
    streams = own.choice("application") == STREAMS
    commit_us = (own.integer("commit.interval.ms") if streams else _commit_interval_ms(own)) * 1000
    commit_us += commit_us * abs(own.integer("clock_drift_ppm")) // 500_000
    return PollLoop(
        logs,
        PollSettings(
            poll_records,
            max(poll_records, min(_LOOK_RECORDS, _LOOK_US // record_us)),
            max(1, own.integer("max.partition.fetch.bytes") // own.integer("record_bytes")),
            own.distribution("poll_interval_ms"),
            commit_us + 2 * own.distribution("net_latency_ms").largest_us,
        ),
        times,
        steps,
    )


def strategies(settings: Settings) -> tuple[str, ...]:
    """The assignors that members offer, those of all clients together, each client's in its order."""
    entries = [
        entry for own in settings.of_profiles() for entry in own.names("partition.assignment.strategy")
    ]
    return tuple(dict.fromkeys(entries))
