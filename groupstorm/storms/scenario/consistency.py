"""Checks of several settings, and of the steps, together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from groupstorm.assignors.streams.model import Strategy
from groupstorm.clients.profiles import JAVA, PROFILES, GroupProtocol
from groupstorm.problems import InputError
from groupstorm.storms.scenario.group_protocol_settings import (
    CONSUMER_SESSION_TIMEOUT,
    GROUP_PROTOCOL,
    IDLE_IN_STREAMS_GROUPS,
    STREAMS_HEARTBEAT,
    STREAMS_PROTOCOL,
    STREAMS_SESSION_TIMEOUT,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.setting_names import (
    BACKGROUND,
    BATCH,
    COMMIT_INTERVAL,
    COMMITS,
    OFFSET_RESET,
    RECORD,
    STATEFUL_SET,
    STREAMS,
)
from groupstorm.storms.scenario.setting_names import CONSUMER as PLAIN_CONSUMERS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.settings_table import STREAMS_SETTINGS
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
        COMMITS,
        COMMIT_INTERVAL,
        OFFSET_RESET,
    }
)


def check_consistency(settings: Settings) -> None:
    """Raise InputError for settings that do not go together. ``settings``: those of one client."""
    _check_group_protocol(settings)
    heartbeat = of_protocol(settings, "heartbeat.interval.ms")
    for name in (heartbeat, "auto.commit.interval.ms", COMMIT_INTERVAL):
        largest_us = settings.distribution("net_latency_ms").largest_us
        if largest_us * (1_000_000 + settings.integer("clock_drift_ppm")) >= settings.integer(name) * 10**9:
            raise InputError(f"net_latency_ms: up to {largest_us / 1000:g} ms must stay below {name}")
    each = settings.integer("members_per_pod")
    if settings.integer("members") % each:
        members = settings.integer("members")
        raise InputError(f"members: {members}: expected a multiple of members_per_pod ({each})")
    if each > 1 and settings.names_members:
        raise InputError("member_settings: name: a consumer of several in a pod is named after its pod")
    if settings.pods("max_surge").number == 0 and settings.pods("max_unavailable").number == 0:
        raise InputError("max_unavailable: 0 with max_surge 0: then no process can ever be replaced")
    if settings.choice("deployment") == STATEFUL_SET and settings.pods("max_surge").number:
        surge = settings.pods("max_surge").as_written
        raise InputError(
            f"max_surge: {surge} with deployment statefulset: a StatefulSet has no surge, expected 0"
        )


def _check_group_protocol(settings: Settings) -> None:
    _check_heartbeats(settings, "group.consumer.heartbeat.interval.ms", CONSUMER_SESSION_TIMEOUT)
    _check_heartbeats(settings, STREAMS_HEARTBEAT, STREAMS_SESSION_TIMEOUT)
    protocol = GroupProtocol(settings.choice(GROUP_PROTOCOL))
    if protocol is GroupProtocol.CLASSIC:
        _check_heartbeats(settings, "heartbeat.interval.ms", "session.timeout.ms")
        _check_session(settings)
        return
    if (protocol is GroupProtocol.STREAMS) is not (settings.choice("application") == STREAMS):
        raise InputError(
            f"{GROUP_PROTOCOL}: {protocol}: plain consumers speak classic, consumer or share, the threads of "
            "Kafka Streams (application: streams) classic or streams"
        )
    profile = PROFILES[settings.names("client_profile")[0]]
    if protocol is GroupProtocol.SHARE and protocol not in profile.group_protocols:
        raise InputError(
            f"client_profile: {profile.name}: {GROUP_PROTOCOL}: share has Java's share consumers, expected "
            f"{JAVA.name}"
        )
    if protocol not in profile.group_protocols:
        raise InputError(
            f"{GROUP_PROTOCOL}: {protocol}: the members of client_profile {profile.name} speak the classic "
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


def of_protocol(settings: Settings, name: str) -> str:
    """The setting ``name`` of the classic protocol, or what members of these settings have in its place."""
    return UNSUPPORTED[settings.choice(GROUP_PROTOCOL)].get(name, name)


def commits_of(own: Settings) -> str:
    """Who commits the positions of a member with these settings: a value of `commits`."""
    commits = own.choice(COMMITS)
    if commits == BACKGROUND and not own.flag("enable.auto.commit") and own.choice("application") != STREAMS:
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
    protocols = {own.choice(GROUP_PROTOCOL) for own in settings.of_profiles()}
    if protocols == {STREAMS_PROTOCOL}:
        given = {*given, *dict(settings.changed(IDLE_IN_STREAMS_GROUPS))}
        return {name: instead for name, instead in IDLE_IN_STREAMS_GROUPS.items() if name in given}
    if len(protocols) > 1:
        return {}
    return {name: instead for name, instead in UNSUPPORTED[protocols.pop()].items() if name in given}


def refuse_idle(settings: Settings, overlays: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Raise InputError for a setting of these overlays that does nothing in a streams group, and has not its
    default."""
    if any(own.choice(GROUP_PROTOCOL) != STREAMS_PROTOCOL for own in settings.of_profiles()):
        return
    idle = unused_settings(settings, ())
    for where, overlay in overlays:
        for name in overlay:
            if name in idle:
                raise InputError(
                    f"{where}{name}: {overlay[name]!r}: has no effect with {GROUP_PROTOCOL} "
                    f"{STREAMS_PROTOCOL}: use {idle[name]}"
                )


def check_application(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    """Raise InputError for settings and steps that have no effect on this application."""
    if settings.choice("application") == PLAIN_CONSUMERS:
        _check_no_streams(source, settings, steps)
        return
    for number, step in enumerate(steps, start=1):
        if step.do in CONSUMER_STEPS:
            raise InputError(
                f"{source}: steps: {number}: do: {step.do!r} is not for application: streams; "
                "its instances crash, stop, restart, lose hosts and are upgraded"
            )
        if step.settings and set(step.settings) != {GROUP_PROTOCOL}:
            raise InputError(
                f"{source}: steps: {number}: settings: a step of application: streams changes "
                f"{GROUP_PROTOCOL} alone"
            )
    for name, written in settings.changed(OF_PLAIN_CONSUMERS):
        raise InputError(f"{name}: {written!r} is not for application: streams")
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
    for number, step in enumerate(steps, start=1):
        if step.do in STREAMS_STEPS:
            raise InputError(f"{source}: steps: {number}: do: {step.do!r} needs application: streams")


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
