"""Configurations of groups of the newer protocols: names, defaults, and the bounds that the broker sets.

Those of consumer groups (KIP-848) have an effect. Those of share and streams groups (KIP-932, KIP-1071) are
checked, kept and described. Source: GroupConfig, with the defaults of GroupCoordinatorConfig and
ShareGroupConfig for the settings that `groupstorm serve` does not have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.config_options import ConfigError, ConfigType, Option, check, flag, integer, long
from groupstorm.coordinator.consumer_config import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    ConsumerConfig,
)

#: ShareGroupAutoOffsetResetStrategy; Java's `Duration` without a sign.
_OFFSET_RESET = (
    re.compile(r"earliest|latest|by_duration:(?i:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?)"),
    "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
)


def _of_broker(name: str, default: int, least: int = 0) -> tuple[str, Option]:
    return name, integer(default, least, broker=f"group.{name}")


_OPTIONS_4_3: Mapping[str, Option] = dict(
    (
        _of_broker(ASSIGNMENT_INTERVAL, 1_000),
        _of_broker(HEARTBEAT_INTERVAL, 5_000, 1),
        _of_broker(SESSION_TIMEOUT, 45_000, 1),
        _of_broker("share.assignment.interval.ms", 1_000),
        ("share.auto.offset.reset", Option(ConfigType.STRING, "latest", pattern=_OFFSET_RESET)),
        _of_broker("share.delivery.count.limit", 5, 2),
        _of_broker("share.heartbeat.interval.ms", 5_000, 1),
        (
            "share.isolation.level",
            Option(ConfigType.STRING, "read_uncommitted", values=("read_committed", "read_uncommitted")),
        ),
        _of_broker("share.partition.max.record.locks", 2_000, 100),
        _of_broker("share.record.lock.duration.ms", 30_000, 1_000),
        ("share.renew.acknowledge.enable", flag(default=True)),
        _of_broker("share.session.timeout.ms", 45_000, 1),
        _of_broker("streams.assignment.interval.ms", 1_000),
        _of_broker("streams.heartbeat.interval.ms", 5_000, 1),
        _of_broker("streams.initial.rebalance.delay.ms", 3_000),
        _of_broker("streams.num.standby.replicas", 0),
        _of_broker("streams.session.timeout.ms", 45_000, 1),
    )
)


_KINDS = ("consumer", "share", "streams")
_TAGS = "streams.rack.aware.assignment.tags"
_ASSIGNOR = "streams.assignor.name"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
#: The task assignors of streams groups.
_ASSIGNORS = ("sticky",)
#: Options that Kafka 4.4.0 takes and does not describe.
INTERNAL_OPTIONS: Mapping[str, Option] = dict(
    (
        *(
            (f"{kind}.assignor.offload.enable", flag(default=True))
            for kind in ("consumer", "share", "streams")
        ),
        ("streams.acceptable.recovery.lag", long(10_000)),
        _of_broker("streams.num.warmup.replicas", 2),
        _of_broker("streams.task.offset.interval.ms", 60_000, 1),
    )
)
_OPTIONS_4_4: Mapping[str, Option] = {
    **_OPTIONS_4_3,
    "errors.deadletterqueue.copy.record.enable": flag(default=False),
    _DEAD_LETTERS: Option(ConfigType.STRING, ""),
    _ASSIGNOR: Option(ConfigType.STRING, _ASSIGNORS[0], broker="group.streams.assignors"),
    _TAGS: Option(ConfigType.LIST, "", broker=f"group.{_TAGS}"),
    **INTERNAL_OPTIONS,
}


def group_options(kafka: Compatibility) -> Mapping[str, Option]:
    """The options that a group may have of its own."""
    return _OPTIONS_4_4 if kafka.is_4_4 else _OPTIONS_4_3


class _Bounds(NamedTuple):
    """The values that a group may set. ``limits``: the broker's settings, with `min` or `max` in them."""

    least: int | None
    most: int | None
    limits: str

    def check(self, name: str, value: int, kafka: Compatibility) -> None:
        """Raises ConfigError with the words of that release."""
        too_small = self.least is not None and value < self.least
        too_large = self.most is not None and value > self.most
        if not (too_small or too_large):
            return
        if kafka.is_4_4 and self.least is not None and self.most is not None:
            raise ConfigError(f"{name} must be in the range {self.least} to {self.most} inclusive.")
        side, bound, limit = ("greater", self.least, "min") if too_small else ("less", self.most, "max")
        shown = bound if kafka.is_4_4 else self.limits.format(limit)
        raise ConfigError(f"{name} must be {side} than or equal to {shown}")


def _bounds(consumer: ConsumerConfig) -> Mapping[str, _Bounds]:
    """In the order in which Kafka checks them (GroupConfig.validateValues)."""
    return {
        HEARTBEAT_INTERVAL: _Bounds(
            *consumer.heartbeat_interval_bounds_ms, "group.consumer.{}.heartbeat.interval.ms"
        ),
        SESSION_TIMEOUT: _Bounds(*consumer.session_timeout_bounds_ms, "group.consumer.{}.session.timeout.ms"),
        ASSIGNMENT_INTERVAL: _Bounds(
            *consumer.assignment_interval_bounds_ms, "group.consumer.{}.assignment.interval.ms"
        ),
        "share.heartbeat.interval.ms": _Bounds(5_000, 15_000, "group.share.{}.heartbeat.interval.ms"),
        "share.session.timeout.ms": _Bounds(45_000, 60_000, "group.share.{}.session.timeout.ms"),
        "share.record.lock.duration.ms": _Bounds(15_000, 60_000, "group.share.{}.record.lock.duration.ms"),
        "share.delivery.count.limit": _Bounds(2, 10, "group.share.{}.delivery.count.limit"),
        "share.partition.max.record.locks": _Bounds(100, 4_000, "group.share.{}.partition.max.record.locks"),
        "share.assignment.interval.ms": _Bounds(0, 15_000, "group.share.{}.assignment.interval.ms"),
        "streams.heartbeat.interval.ms": _Bounds(5_000, 15_000, "group.streams.{}.heartbeat.interval.ms"),
        "streams.session.timeout.ms": _Bounds(45_000, 60_000, "group.streams.{}.session.timeout.ms"),
        "streams.num.standby.replicas": _Bounds(None, 2, "group.streams.{}.standby.replicas"),
        "streams.assignment.interval.ms": _Bounds(0, 15_000, "group.streams.{}.assignment.interval.ms"),
        "streams.task.offset.interval.ms": _Bounds(15_000, None, "group.streams.{}.task.offset.interval.ms"),
        "streams.num.warmup.replicas": _Bounds(None, 20, "group.streams.{}.warmup.replicas"),
    }


def broker_value(option: Option, consumer: ConsumerConfig) -> str:
    """The value of an option that a group does not have of its own."""
    own = {
        f"group.{ASSIGNMENT_INTERVAL}": consumer.assignment_interval_ms,
        f"group.{HEARTBEAT_INTERVAL}": consumer.heartbeat_interval_ms,
        f"group.{SESSION_TIMEOUT}": consumer.session_timeout_ms,
    }
    return str(own.get(option.broker or "", option.default))


def check_group(configs: Mapping[str, str], consumer: ConsumerConfig, kafka: Compatibility) -> dict[str, str]:
    """A group's configurations, checked together. Raises ConfigError with Kafka's message."""
    options = group_options(kafka)
    for name in configs:
        if name not in options:
            raise ConfigError(f"Unknown group config name: {name}")
    tags = [tag.strip() for tag in configs.get(_TAGS, "").split(",")]
    if len(set(tags)) < len(tags):
        raise ConfigError(f"{_TAGS} must not contain duplicate tag keys.")
    checked = {name: check(options, "group", name, value) for name, value in configs.items()}
    for name, bounds in _bounds(consumer).items():
        if name in checked:
            bounds.check(name, int(checked[name]), kafka)
    assignor = checked.get(_ASSIGNOR, _ASSIGNORS[0])
    if assignor not in _ASSIGNORS:
        registered = f"Registered assignors are: [{', '.join(_ASSIGNORS)}]."
        raise ConfigError(f"{_ASSIGNOR} '{assignor}' is not a registered task assignor. {registered}")
    for kind in _KINDS:
        _check_session(kind, checked, consumer, kafka)
    if checked.get(_DEAD_LETTERS, "").startswith("__"):
        raise ConfigError(f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'")
    return checked


def _check_session(
    kind: str, checked: Mapping[str, str], consumer: ConsumerConfig, kafka: Compatibility
) -> None:
    """Kafka 4.4.0 compares the two only if the group has one of them."""
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if kafka.is_4_4 and session not in checked and interval not in checked:
        return
    values = [
        int(checked.get(name) or broker_value(_OPTIONS_4_3[name], consumer)) for name in (session, interval)
    ]
    if values[0] <= values[1]:
        raise ConfigError(f"{session} must be greater than {interval}")
