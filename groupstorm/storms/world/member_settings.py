"""One consumer, or a Kafka Streams application with its tasks and racks, from a scenario's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from groupstorm.assignors.streams.model import (
    Config,
    StandbyPlacement,
    Strategy,
    TagsOrRacks,
    Task,
    TaskPartition,
    TradeOff,
)
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import TaskId
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import PROFILES, GroupProtocol
from groupstorm.clients.streams.topology import Topology
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.scenario.consistency import commit_ns, commits_of
from groupstorm.storms.scenario.member_rules import Machines
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.setting_names import BATCH, INTERVAL, NEVER, RECORD, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import topic_names
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
    return own.integer("commit_interval_ms" if commits == INTERVAL else "auto.commit.interval.ms")


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
    if streams:  # behind half of max.poll.interval.ms a thread polls, whatever it has left (StreamThread)
        poll_records = max(1, min(poll_records, own.integer("max.poll.interval.ms") * 500 // record_us))
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
            streams,
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


#: The client tag that holds an instance's rack.
ZONE = "zone"
_TAGS_SETTING = "rack.aware.assignment.tags"


def rack_name(rack: int) -> str:
    return f"rack-{rack}"


def rack_of(settings: Settings, index: int) -> str | None:
    """The rack of the instance in this place; added instances go to one rack after the other."""
    racks = settings.integer("racks")
    if not racks:
        return None
    before = 0
    for rack, members in enumerate(settings.integers("members_per_rack")):
        before += members
        if index < before:
            return rack_name(rack)
    return rack_name((index - before) % racks)


def client_tags(settings: Settings, rack: str | None) -> Mapping[str, str]:
    """The client tags of an instance, if tags keep copies apart."""
    return {} if rack is None or settings.choice(_TAGS_SETTING) == "none" else {ZONE: rack}


#: Topic and partition -> the racks of its replicas, the leader's first; None if there are no racks.
Replicas = Callable[[str, int], tuple[str, ...] | None]


def replicas_of(settings: Settings, seed: int) -> Replicas:
    """The replicas of all partitions."""
    racks, replicas = settings.integer("racks"), settings.integer("replication.factor")
    is_random = settings.choice("replica_placement") == "random"

    def of(topic: str, partition: int) -> tuple[str, ...] | None:
        if not racks:
            return None
        draws = Stream(seed, "replicas", topic)
        if not is_random:
            first = (draws.at(0) * racks >> DRAW_BITS) + partition
            return tuple(rack_name((first + number) % racks) for number in range(replicas))
        order = sorted(range(racks), key=lambda rack: draws.at(1 + partition * racks + rack))
        return tuple(map(rack_name, order[:replicas]))

    return of


def topology(settings: Settings, replicas: Replicas) -> Topology:
    """A sub-topology for every topic, or with ``joins`` one for all of them; a task for each partition."""
    names = topic_names(settings)
    feeding = [names] if settings.flag("joins") else [(name,) for name in names]
    stateful = len(feeding) - settings.integer("stateless_topics")
    tasks = []
    for subtopology, topics in enumerate(feeding):
        for partition in range(settings.integer("partitions")):
            inputs = tuple(_partition(replicas, topic, partition) for topic in topics)
            changelog = _partition(replicas, f"storm-store-{subtopology}-changelog", partition)
            is_stateful = subtopology < stateful
            task = TaskId("", subtopology, partition)
            tasks.append(Task(task, is_stateful, inputs, (changelog,) if is_stateful else ()))
    return Topology(tuple(tasks))


def _partition(replicas: Replicas, topic: str, partition: int) -> TaskPartition:
    racks = replicas(topic, partition)
    return TaskPartition(topic, partition, None if racks is None else frozenset(racks))


def assignor_config(settings: Settings) -> Config:
    """The leader's configuration."""
    return Config(
        acceptable_recovery_lag=settings.integer("acceptable.recovery.lag"),
        max_warmup_replicas=settings.integer("max.warmup.replicas"),
        num_standby_replicas=settings.integer("num.standby.replicas"),
        probing_rebalance_interval_ms=settings.integer("probing.rebalance.interval.ms"),
        rack_aware_tags=() if settings.choice(_TAGS_SETTING) == "none" else (ZONE,),
        strategy=Strategy(settings.choice("rack.aware.assignment.strategy")),
        traffic_cost=settings.optional_integer("rack.aware.assignment.traffic_cost"),
        non_overlap_cost=settings.optional_integer("rack.aware.assignment.non_overlap_cost"),
        standby_placement=StandbyPlacement(settings.choice("standby_placement")),
        reliable_standbys=settings.integer("reliable_standbys"),
        trade_off=TradeOff(settings.choice("trade_off")),
        near_zero_gap=settings.optional_integer("near_zero_gap"),
        tags_or_racks=TagsOrRacks(settings.choice("tags_or_racks")),
    )


def thread_config(
    settings: Settings, group: str, topics: Sequence[str], name: str, rack: str | None
) -> ConsumerConfig:
    """A thread's main consumer: Kafka Streams' own defaults over the consumer's (StreamsConfig).

    A thread of the classic protocol leaves the group on close only if `leave_on_close` says so: its instance
    is expected back. A thread of a streams group leaves unless `leave_on_close` forbids it (StreamThread).
    """
    config = consumer_config(settings, group, tuple(topics), name, 0)
    leaves = settings.optional_flag("leave_on_close")
    if config.group_protocol is GroupProtocol.CLASSIC:
        leaves = bool(leaves)
    return replace(
        config,
        enable_auto_commit=True,
        auto_commit_interval_ms=settings.integer("commit.interval.ms"),
        leave_group_on_close=leaves,
        client_rack=rack,
    )


def racks_of(
    replicas: Replicas, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[str, ...]]:
    """The replicas of each partition, if there are racks."""
    found = {part: replicas(*part) for part in partitions}
    return {part: racks for part, racks in found.items() if racks is not None}
