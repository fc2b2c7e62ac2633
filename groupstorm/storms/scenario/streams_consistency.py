"""Checks of several settings, and of the steps, together: those of Kafka Streams applications."""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.assignors.streams.model import Strategy
from groupstorm.clients.profiles import JAVA
from groupstorm.problems import InputError
from groupstorm.storms.scenario.record_rates import mean_rate
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.scenario.streams_settings import CONSUMER, STREAMS_SETTINGS

#: Steps for instances of a Streams application only, and steps for consumers only.
STREAMS_STEPS = frozenset({"lose-host", "lose-zone", "restore-zone", "rolling-upgrade"})
CONSUMER_STEPS = frozenset(
    {
        "pause",
        "busy",
        "disconnect",
        "reconnect-storm",
        "partition",
        "slow-appends",
        "failing-appends",
        "add-partitions",
        "create-topic",
        "delete-topic",
        "coordinator-failover",
    }
)

#: Settings of consumers only.
OF_PLAIN_CONSUMERS = frozenset(
    {
        "member_settings",
        "topic_partitions",
        "releases",
        "topic_pattern",
        "slow_records",
        "gc_pause_ms",
        "clock_drift_ppm",
        "restart_failed",
    }
)


def check_application(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    """Raise InputError for settings and steps that have no effect on this application."""
    if settings.choice("application") == CONSUMER:
        _check_no_streams(source, settings, steps)
        return
    for number, step in enumerate(steps, start=1):
        if step.do in CONSUMER_STEPS:
            raise InputError(
                f"{source}: steps: {number}: do: {step.do!r} is not for application: streams; "
                "its instances crash, stop, restart, lose hosts and are upgraded"
            )
        if step.settings:
            raise InputError(f"{source}: steps: {number}: settings: not for application: streams")
    defaults = dict(Settings().written())
    for name, written in settings.written():
        if name in OF_PLAIN_CONSUMERS and written != defaults.get(name):
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
    own = {row.name for row in STREAMS_SETTINGS}
    defaults = dict(Settings().written())
    for name, written in settings.written():
        if name in own and written != defaults[name]:
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
