"""Settings and steps without effect in a share group, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.group_protocol_settings import GROUP_PROTOCOL, SHARE
from groupstorm.storms.scenario.setting_names import (
    ACKNOWLEDGEMENT,
    COMMIT_INTERVAL,
    COMMITS,
    EXPLICIT,
    KEDA,
    OFFSET_RESET,
    SHARE_HEARTBEAT,
    SHARE_OFFSET_RESET,
    SHARE_SESSION_TIMEOUT,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_work import OF_SHARE_GROUPS, SlowRecordList
from groupstorm.storms.scenario.steps import Step

_NO_LISTENER: Final = "a share consumer has no rebalance listener: leave it out"
_NO_OWNER: Final = "a partition of a share group has no owner: leave it out"
_BROKER_ASSIGNS: Final = "the broker assigns the partitions of a share group: leave it out"
_ACKNOWLEDGES: Final = f"a share consumer commits no positions: use {ACKNOWLEDGEMENT}"
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
    "session.timeout.ms": f"use {SHARE_SESSION_TIMEOUT}",
    "heartbeat.interval.ms": f"use {SHARE_HEARTBEAT}",
    OFFSET_RESET: f"use {SHARE_OFFSET_RESET}",
    COMMITS: _ACKNOWLEDGES,
    COMMIT_INTERVAL: _ACKNOWLEDGES,
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
    "drain_ms": f"use stop_grace_ms, and {ACKNOWLEDGEMENT}: explicit to acknowledge what is done",
}
_REFUSED_STEPS: Final = frozenset(
    {"partition", "slow-appends", "failing-appends", "coordinator-failover", "create-topic", "delete-topic"}
)


def is_shared(settings: Settings) -> bool:
    """Whether the scenario's consumers are members of a share group."""
    return settings.choice(GROUP_PROTOCOL) == SHARE


def check_share_group(source: str, settings: Settings, steps: Sequence[Step]) -> None:
    """Raise InputError for settings and steps that do nothing in a share group, or that only one has."""
    if any(
        (own.choice(GROUP_PROTOCOL) == SHARE) is not is_shared(settings) for own in settings.of_profiles()
    ):
        raise InputError(
            f"{GROUP_PROTOCOL}: share beside another protocol: a share group has share consumers alone; put "
            f"{GROUP_PROTOCOL} into settings or a variant, not into a rule or a release"
        )
    slow = settings.of_type("slow_records", SlowRecordList).records
    outcomes = {one.outcome for one in slow if one.outcome in OF_SHARE_GROUPS}
    if not is_shared(settings):
        if outcomes:
            raise InputError(
                f"slow_records: then: {min(outcomes)!r} needs {GROUP_PROTOCOL}: share, expected skip, "
                "dead-letter or crash"
            )
        return
    if any(own.choice("autoscaler") == KEDA for own in settings.of_profiles()):
        raise InputError(f"autoscaler: {KEDA!r} with {GROUP_PROTOCOL}: share: {KEDA_SEES_NO_LAG}")
    for name, written in settings.changed(_INSTEAD):
        raise InputError(f"{name}: {written!r} has no effect with {GROUP_PROTOCOL}: share: {_INSTEAD[name]}")
    if outcomes and settings.choice(ACKNOWLEDGEMENT) != EXPLICIT:
        raise InputError(
            f"slow_records: then: {min(outcomes)!r} needs {ACKNOWLEDGEMENT}: explicit: implicit "
            "acknowledgement accepts every record"
        )
    for number, step in enumerate(steps, start=1):
        if step.do in _REFUSED_STEPS:
            raise InputError(
                f"{source}: steps: {number}: do: {step.do!r} is not simulated with {GROUP_PROTOCOL}: share; "
                "its consumers crash, stop, restart, pause, disconnect and are deployed"
            )
