"""Checks of several settings, and of the steps, together; those of a share group say what to do instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from groupstorm.assignors.streams.model import Strategy
from groupstorm.clients.profiles import JAVA, PROFILES, GroupProtocol
from groupstorm.problems import InputError
from groupstorm.storms.scenario.member_rules import OF_SHARE_GROUPS, SlowRecordList
from groupstorm.storms.scenario.setting_names import (
    BACKGROUND,
    BATCH,
    CLASSIC,
    CONSUMER,
    EARLIEST,
    EXPLICIT,
    IDLE_IN_STREAMS_GROUPS,
    KEDA,
    OF_CLASSIC_GROUPS,
    RECORD,
    SHARE,
    STATEFUL_SET,
    STREAMS,
    STREAMS_PROTOCOL,
    STREAMS_SETTINGS,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import CONSUMER_STEPS, STREAMS_STEPS, Step
from groupstorm.storms.scenario.topics import mean_rate

#: Settings of consumers only.
OF_PLAIN_CONSUMERS = frozenset(
    {
        "member_settings",
        "partition.assignment.strategy",
        "topic_partitions",
        "releases",
        "topic_pattern",
        "slow_records",
        "gc_pause_ms",
        "clock_drift_ppm",
        "restart_failed",
        "members_per_pod",
        "commits",
        "commit_interval_ms",
        "enable.auto.commit",
        "auto.commit.interval.ms",
    }
)
#: Settings of Kafka Streams, or what to do, in the place of settings of consumers only.
_IN_STREAMS: Final = {
    "topic_partitions": "use topics and partitions",
    "enable.auto.commit": "its threads commit every commit.interval.ms",
    "auto.commit.interval.ms": "use commit.interval.ms",
}


def check_consistency(settings: Settings) -> None:
    """Raise InputError for settings that do not go together. ``settings``: those of one client."""
    _check_group_protocol(settings)
    heartbeat = of_protocol(settings, "heartbeat.interval.ms")
    for name in (heartbeat, "auto.commit.interval.ms", "commit_interval_ms"):
        largest_us = settings.distribution("net_latency_ms").largest_us
        if largest_us * (1_000_000 + settings.integer("clock_drift_ppm")) >= settings.integer(name) * 10**9:
            raise InputError(f"net_latency_ms: up to {largest_us / 1000:g} ms must stay below {name}")
    each = settings.integer("members_per_pod")
    if settings.integer("members") % each:
        members = settings.integer("members")
        raise InputError(f"members: {members}: expected a multiple of members_per_pod ({each})")
    if each > 1 and settings.names_members:
        why = "consumers are named after their pod; here members have names (member_settings, or a trace)"
        raise InputError(f"members_per_pod: {each}: {why}: expected 1")
    if settings.pods("max_surge").number == 0 and settings.pods("max_unavailable").number == 0:
        raise InputError("max_unavailable: 0 with max_surge 0: then no process can ever be replaced")
    if settings.choice("deployment") == STATEFUL_SET and settings.pods("max_surge").number:
        surge = settings.pods("max_surge").as_written
        raise InputError(
            f"max_surge: {surge} with deployment statefulset: a StatefulSet has no surge, expected 0"
        )


def stopping_ms(settings: Settings) -> tuple[int, int | None]:
    """The times of a preStop hook, and from its end (SIGTERM) until SIGKILL; None: there is none.

    Source: the kubelet's killContainer, which leaves 2 s behind a hook (minimumGracePeriodInSeconds).
    """
    hook_ms, grace_ms = settings.integer("pre_stop_ms"), settings.optional_integer("termination_grace_ms")
    if grace_ms is None or not hook_ms:
        return hook_ms, grace_ms
    hook_ms = min(hook_ms, grace_ms)
    return hook_ms, max(grace_ms - hook_ms, 2_000)


def _check_group_protocol(settings: Settings) -> None:
    _check_heartbeats(settings, "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms")
    _check_heartbeats(settings, "group.streams.heartbeat.interval.ms", "group.streams.session.timeout.ms")
    protocol = GroupProtocol(settings.choice("group.protocol"))
    if protocol is GroupProtocol.CLASSIC:
        _check_heartbeats(settings, "heartbeat.interval.ms", "session.timeout.ms")
        _check_session(settings)
        return
    if (protocol is GroupProtocol.STREAMS) is not (settings.choice("application") == STREAMS):
        raise InputError(
            f"group.protocol: {protocol}: plain consumers speak classic, consumer or share, the threads of "
            "Kafka Streams (application: streams) classic or streams"
        )
    profile = PROFILES[settings.names("client_profile")[0]]
    if protocol is GroupProtocol.SHARE and protocol not in profile.group_protocols:
        raise InputError(
            f"client_profile: {profile.name}: group.protocol: share has Java's share consumers, expected "
            f"{JAVA.name}"
        )
    if protocol not in profile.group_protocols:
        raise InputError(
            f"group.protocol: {protocol}: the members of client_profile {profile.name} speak the classic "
            "protocol only"
        )


def _check_heartbeats(settings: Settings, heartbeat: str, session: str) -> None:
    heartbeat_ms, session_ms = settings.integer(heartbeat), settings.integer(session)
    if heartbeat_ms >= session_ms:
        raise InputError(f"{heartbeat}: {heartbeat_ms} must be lower than {session} ({session_ms})")


def _check_session(settings: Settings) -> None:
    """The broker has bounds for the sessions of classic members, who choose their own."""
    least = settings.integer("group.min.session.timeout.ms")
    most = settings.integer("group.max.session.timeout.ms")
    session_ms = settings.integer("session.timeout.ms")
    if not least <= session_ms <= most:
        raise InputError(
            f"session.timeout.ms: {session_ms}: the broker allows {least} to {most} "
            "(group.min.session.timeout.ms, group.max.session.timeout.ms)"
        )
    if session_ms > (interval_ms := longest_session_ms(settings)):
        raise InputError(
            f"max.poll.interval.ms: {interval_ms}: librdkafka does not start with less than "
            f"session.timeout.ms ({session_ms})"
        )


def longest_session_ms(settings: Settings) -> int:
    """The longest session.timeout.ms that the broker takes and with which members start (rd_kafka_new)."""
    is_bound = settings.names("client_profile")[0] == "librdkafka"
    names = ("group.max.session.timeout.ms", *(["max.poll.interval.ms"] if is_bound else []))
    return min(map(settings.integer, names))


def of_protocol(settings: Settings, name: str) -> str:
    """The setting ``name`` of the classic protocol, or what members of these settings have in its place."""
    return UNSUPPORTED[settings.choice("group.protocol")].get(name, name)


def commits_of(own: Settings) -> str:
    """Who commits the positions of a member with these settings: a value of `commits`."""
    commits = own.choice("commits")
    if commits == BACKGROUND and not own.flag("enable.auto.commit"):
        return BATCH
    return commits


def commit_ns(own: Settings) -> int:
    """The part of a commit's round trip that one record of a full batch takes, in nanoseconds."""
    commits = commits_of(own)
    if commits not in (BATCH, RECORD):
        return 0
    mean_ns, _ = own.distribution("net_latency_ms").mean_and_variance()
    return 2 * mean_ns // (own.integer("max.poll.records") if commits == BATCH else 1)


def unused_settings(settings: Settings, given: Collection[str]) -> dict[str, str]:
    """Return the settings ``given`` on the command line that no member has, with their replacements.

    No member has them because all members speak one protocol. For a streams group the settings of the
    scenario's file count, too.
    """
    protocols = {own.choice("group.protocol") for own in settings.of_profiles()}
    if protocols == {STREAMS_PROTOCOL}:
        given = {*given, *dict(settings.changed(IDLE_IN_STREAMS_GROUPS))}
        return {name: instead for name, instead in IDLE_IN_STREAMS_GROUPS.items() if name in given}
    if len(protocols) > 1:
        return {}
    protocol = protocols.pop()
    others = {} if protocol == CLASSIC else OF_CLASSIC_GROUPS
    idle = {**UNSUPPORTED[protocol], **{name: one.format(protocol) for name, one in others.items()}}
    return {name: instead for name, instead in idle.items() if name in given}


def refuse_idle(settings: Settings, overlays: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Raise InputError for a setting of these overlays that does nothing in a streams group, and has not its
    default."""
    if any(own.choice("group.protocol") != STREAMS_PROTOCOL for own in settings.of_profiles()):
        return
    idle = unused_settings(settings, ())
    for where, overlay in overlays:
        for name in overlay:
            if name in idle:
                raise InputError(
                    f"{where}{name}: {overlay[name]!r}: has no effect with group.protocol "
                    f"{STREAMS_PROTOCOL}: use {idle[name]}"
                )


def check_application(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    """Raise InputError for settings and steps that have no effect on this application."""
    if settings.choice("application") == CONSUMER:
        _check_no_streams(source, settings, steps)
        return
    instead = "its instances crash, stop, restart, lose hosts and are upgraded"
    _refuse_steps(source, steps, CONSUMER_STEPS, f"is not for application: streams; {instead}")
    for number, step in enumerate(steps, start=1):
        if step.settings and set(step.settings) != {"group.protocol"}:
            raise InputError(
                f"{source}: steps: {number}: settings: a step of application: streams changes "
                f"group.protocol alone"
            )
    for name, written in settings.changed(OF_PLAIN_CONSUMERS):
        use = f"; {_IN_STREAMS[name]}" if name in _IN_STREAMS else ""
        raise InputError(f"{name}: {written!r} is not for application: streams{use}")
    reset = settings.choice("auto.offset.reset")
    if settings.gives("auto.offset.reset") and reset != EARLIEST:
        raise InputError(f"auto.offset.reset: {reset!r} is not simulated in Kafka Streams: use {EARLIEST}")
    profiles = settings.names("client_profile")
    if profiles != (JAVA.name,):
        raise InputError(
            f"client_profile: {', '.join(profiles)}: Kafka Streams runs on the Java client, "
            f"expected {JAVA.name}"
        )
    _check_tasks(settings)
    _check_racks(settings)


def _check_no_streams(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    for name, written in settings.changed({row.name for row in STREAMS_SETTINGS}):
        raise InputError(f"{name}: {written!r} has no effect without application: streams")
    _refuse_steps(source, steps, STREAMS_STEPS, "needs application: streams")


def _refuse_steps(source: str, steps: Sequence[Step], kinds: Collection[str], why: str) -> None:
    for number, step in enumerate(steps, start=1):
        if step.do in kinds:
            raise InputError(f"{source}: steps: {number}: do: {step.do!r} {why}")


def _check_tasks(settings: Settings) -> None:
    feeding = 1 if settings.flag("joins") else settings.integer("topics")
    stateless = settings.integer("stateless_topics")
    if stateless > feeding:
        raise InputError(f"stateless_topics: {stateless}: there are {feeding} sub-topologies")

    follow = mean_rate(settings) * settings.integer("standby_lag_ms") // 1000
    near = settings.optional_integer("near_zero_gap")
    if near is not None and near < follow:
        raise InputError(
            f"near_zero_gap: {near}: standbys follow {follow} records behind (record_rate, standby_lag_ms): "
            "no gap would ever be close to zero"
        )


def _check_racks(settings: Settings) -> None:
    racks, replicas = settings.integer("racks"), settings.integer("replication.factor")
    spread = settings.integers("members_per_rack")
    if racks == 0:
        for name, without in (
            ("rack.aware.assignment.strategy", Strategy.NONE.value),
            ("rack.aware.assignment.tags", "none"),
        ):
            if settings.choice(name) != without:
                raise InputError(f"{name}: {settings.choice(name)!r} needs racks: set racks to two or more")
        if spread:
            raise InputError(f"members_per_rack: {list(spread)} needs racks: set racks to {len(spread)}")
        return
    if replicas > racks:
        raise InputError(
            f"replication.factor: {replicas}: each replica has a rack of its own, of {racks} racks"
        )
    if spread and len(spread) != racks:
        raise InputError(f"members_per_rack: {list(spread)}: expected {racks} numbers, one for each rack")
    if spread and sum(spread) != settings.integer("members"):
        members = settings.integer("members")
        raise InputError(
            f"members_per_rack: {list(spread)}: their sum is {sum(spread)}, members is {members}"
        )


def check_member_names(settings: Settings) -> None:
    """Raise InputError if a rule gives a process the name that another one has by its place."""
    if not settings.names_members:
        return
    places: dict[str, int] = {}
    for index in range(settings.integer("members")):
        name = settings.member_name(index)
        other = places.setdefault(name, index)
        if other != index:
            raise InputError(
                f"member_settings: name: {name!r}: members {other} and {index} have this name: every process "
                "has a name of its own"
            )


_NO_LISTENER: Final = "a share consumer has no rebalance listener: leave it out"
_NO_OWNER: Final = "a partition of a share group has no owner: leave it out"
_BROKER_ASSIGNS: Final = "the broker assigns the partitions of a share group: leave it out"
_ACKNOWLEDGES: Final = "a share consumer commits no positions: use share.acknowledgement.mode"
_NOT_SIMULATED: Final = "it is not simulated with share groups: leave it out"

#: KEDA: getLagForPartition of pkg/scalers/kafka_scaler.go, where no offset is committed.
KEDA_SEES_NO_LAG: Final = (
    "KEDA's Kafka scaler reads committed offsets, and a share group has none: it takes each partition for "
    "one record of lag (with offsetResetPolicy earliest for its whole log), however many wait; use hpa, on a "
    "metric of the share group's lag, with up to max_replicas consumers, more than partitions, too"
)

_INSTEAD: Final[Mapping[str, str]] = {
    "partition.assignment.strategy": _BROKER_ASSIGNS,
    "group.remote.assignor": _BROKER_ASSIGNS,
    "session.timeout.ms": "use group.share.session.timeout.ms",
    "heartbeat.interval.ms": "use group.share.heartbeat.interval.ms",
    "auto.offset.reset": "use share.auto.offset.reset",
    "commits": _ACKNOWLEDGES,
    "commit_interval_ms": _ACKNOWLEDGES,
    "enable.auto.commit": _ACKNOWLEDGES,
    "auto.commit.interval.ms": _ACKNOWLEDGES,
    "group.instance.id": "a share group has no static members: leave it out",
    "leave_on_close": "a share consumer leaves whenever it closes: leave it out",
    "revoke_callback_ms": _NO_LISTENER,
    "assign_callback_ms": _NO_LISTENER,
    "restore_ms": _NO_OWNER,
    "joins": _NO_OWNER,
    "topic_pattern": "a share consumer subscribes to names: leave it out",
    "members_per_pod": "put each share consumer into a pod of its own: leave it out",
    "gc_pause_ms": "use steps with do: pause",
    "clock_drift_ppm": _NOT_SIMULATED,
    "drain_ms": "use stop_grace_ms, and share.acknowledgement.mode: explicit to acknowledge what is done",
}
_REFUSED_STEPS: Final = frozenset(
    {"partition", "slow-appends", "failing-appends", "coordinator-failover", "create-topic", "delete-topic"}
)


def is_shared(settings: Settings) -> bool:
    """Whether the scenario's consumers are members of a share group."""
    return settings.choice("group.protocol") == SHARE


def check_share_group(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    """Raise InputError for settings and steps that do nothing in a share group, or that only one has."""
    if any(
        (own.choice("group.protocol") == SHARE) is not is_shared(settings) for own in settings.of_profiles()
    ):
        raise InputError(
            "group.protocol: share beside another protocol: a share group has share consumers alone; put "
            "group.protocol into settings or a variant, not into a rule or a release"
        )
    slow = settings.of_type("slow_records", SlowRecordList).records
    outcomes = {one.outcome for one in slow if one.outcome in OF_SHARE_GROUPS}
    if not is_shared(settings):
        if outcomes:
            raise InputError(
                f"slow_records: then: {min(outcomes)!r} needs group.protocol: share, expected skip, "
                "dead-letter or crash"
            )
        return
    if any(own.choice("autoscaler") == KEDA for own in settings.of_profiles()):
        raise InputError(f"autoscaler: {KEDA!r} with group.protocol: share: {KEDA_SEES_NO_LAG}")
    for name, written in settings.changed(_INSTEAD):
        raise InputError(f"{name}: {written!r} has no effect with group.protocol: share: {_INSTEAD[name]}")
    if outcomes and settings.choice("share.acknowledgement.mode") != EXPLICIT:
        raise InputError(
            f"slow_records: then: {min(outcomes)!r} needs share.acknowledgement.mode: explicit: implicit "
            "acknowledgement accepts every record"
        )
    instead = "its consumers crash, stop, restart, pause, disconnect and are deployed"
    why = f"is not simulated with group.protocol: share; {instead}"
    _refuse_steps(source, steps, _REFUSED_STEPS, why)
