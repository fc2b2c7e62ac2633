"""Configurations of groups: which values Kafka takes, why it refuses others, and DescribeConfigs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.consumer_openings import at, case
from tests.conformance.raw.consumer_requests import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    alter_configs,
    beat,
    describe_configs,
    enter,
)
from tests.conformance.raw.steps import Again, Case, Steps, ask

_INT_MAX = 2**31 - 1
_SESSION, _INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def _altered(code: Error) -> Mapping[str, Any]:
    return {"responses": [{"error_code": code.name}]}


def _set(name: str, value: str | None) -> tuple[str, int, str | None]:
    return name, SET, value


def _tried(*changes: tuple[str, int, str | None], code: Error | None = None, lasts: bool = False) -> Steps:
    """A change of the group's configurations, without lasting effect unless it ``lasts``."""
    expected = {} if code is None else _altered(code)
    return ask("admin", alter_configs(*changes, only_validate=not lasts), expected)


def _values(name: str, *values: object) -> Steps:
    """Each value by itself, without lasting effect: the answers are compared with Kafka's."""
    return [_tried(_set(name, str(value))) for value in values]


def _bounds(name: str, *values: object) -> Case:
    return case(
        f"config-bounds-{name.replace('.', '-')}",
        f"`{name}` within the broker's bounds, at them and beyond them",
        _values(name, *values),
    )


def _described(*names: str, **values: str) -> Mapping[str, Any]:
    """The answer to DescribeConfigs; ``values``: by name with _ for dots."""
    shown = {name.replace("_", "."): value for name, value in values.items()}
    configs = [{"name": name, "value": shown[name]} if name in shown else {"name": name} for name in names]
    return {"results": [{"error_code": "NONE", "configs": configs}]}


CASES = (
    _bounds(_SESSION, 0, 1, 499, 500, 45_000, 60_000, 60_001, _INT_MAX, -1),
    _bounds(_INTERVAL, 0, 99, 100, 14_999, 15_000, 15_001, _INT_MAX),
    _bounds("consumer.assignment.interval.ms", -1, 0, 1, 15_000, 15_001),
    _bounds("share.session.timeout.ms", 0, 1, 44_999, 45_000, 60_000, 60_001),
    _bounds("share.heartbeat.interval.ms", 0, 1, 4_999, 5_000, 15_000, 15_001),
    _bounds("share.record.lock.duration.ms", 0, 999, 1_000, 14_999, 15_000, 60_000, 60_001),
    _bounds("share.delivery.count.limit", 0, 1, 2, 5, 10, 11, 25, 26),
    _bounds("share.partition.max.record.locks", 0, 99, 100, 2_000, 4_000, 4_001, 10_000, 10_001),
    _bounds("share.assignment.interval.ms", -1, 0, 15_000, 15_001),
    _bounds("streams.session.timeout.ms", 0, 1, 44_999, 45_000, 60_000, 60_001),
    _bounds("streams.heartbeat.interval.ms", 0, 1, 4_999, 5_000, 15_000, 15_001),
    _bounds("streams.num.standby.replicas", -1, 0, 1, 2, 3),
    _bounds("streams.assignment.interval.ms", -1, 0, 15_000, 15_001),
    _bounds("streams.initial.rebalance.delay.ms", -1, 0, 3_000, _INT_MAX),
    case(
        "config-not-a-number",
        "texts that are no numbers, and numbers that are too large",
        _values(
            _SESSION, "", " ", "soon", "1.5", "45000 ", " 45000", "+45000", "0x10", "45_000", 2**31, 10**30
        ),
    ),
    case(
        "config-words",
        "values that are words",
        _values(
            "share.auto.offset.reset", "earliest", "latest", "by_duration:PT1H", "by_duration:x", "none", ""
        ),
        _values("share.isolation.level", "read_committed", "READ_UNCOMMITTED", "serializable", ""),
        _values("share.renew.acknowledge.enable", "true", "FALSE", "yes", ""),
        _values("consumer.assignor.offload.enable", "true", "FALSE", "yes", ""),
        _values("share.assignor.offload.enable", "false", "1"),
        _values("streams.assignor.offload.enable", "false", "1"),
    ),
    case(
        "config-session-above-heartbeat",
        "a session is longer than the interval of its heartbeats, also if only one of the two is set",
        _tried(_set(_SESSION, "1000"), _set(_INTERVAL, "1000"), code=Error.INVALID_CONFIG),
        _tried(_set(_SESSION, "1001"), _set(_INTERVAL, "1000"), code=Error.NONE),
        _tried(_set(_SESSION, "1000"), _set(_INTERVAL, "5000"), code=Error.INVALID_CONFIG),
        _tried(_set(_INTERVAL, "15000")),
        _tried(_set(_INTERVAL, "14999")),
        _tried(_set("share.session.timeout.ms", "45000")),
    ),
    case(
        "config-names-and-operations",
        "unknown names, missing values, and operations that a number does not have",
        ask("admin", alter_configs(_set("session.timeout.ms", "45000")), _altered(Error.INVALID_CONFIG)),
        ask("admin", alter_configs(_set("", "45000")), {}),
        ask("admin", alter_configs(("nobody.knows", DELETE, None)), {}),
        ask("admin", alter_configs(_set(_SESSION, None)), {}),
        ask("admin", alter_configs(_set(_SESSION, None), _set(_INTERVAL, None)), {}),
        ask("admin", alter_configs((_SESSION, APPEND, "45000")), {}),
        ask("admin", alter_configs((_SESSION, SUBTRACT, "45000")), {}),
        ask("admin", alter_configs(("nobody.knows", APPEND, "45000")), {}),
        ask("admin", alter_configs((_SESSION, 7, "45000")), {}),
        ask("admin", alter_configs((_SESSION, -1, "45000")), {}),
        ask("admin", alter_configs(_set(_SESSION, "45000"), _set(_SESSION, "46000")), {}),
        ask("admin", alter_configs(_set(_SESSION, "45000"), name=""), {}),
        ask("admin", alter_configs(), {}),
    ),
    case(
        "config-operations-on-topics",
        "the same operations and values, of a topic",
        *(
            ask("admin", alter_configs(change, name="{topic}", kind=TOPIC, only_validate=True), {})
            for change in (
                ("nobody.knows", DELETE, None),
                ("nobody.knows", SET, "1"),
                ("retention.ms", SET, None),
                ("retention.ms", APPEND, "7"),
                ("retention.ms", 7, "7"),
                ("retention.ms", SET, "soon"),
                ("retention.ms", SET, "-2"),
                ("min.cleanable.dirty.ratio", SET, "1.5"),
                ("preallocate", SET, "maybe"),
                ("cleanup.policy", SET, "burn"),
                ("cleanup.policy", APPEND, "compact"),
                ("compression.type", SET, "rar"),
            )
        ),
    ),
    case(
        "config-wrong-one-of-two",
        "one that is wrong refuses the others of its group",
        _tried(_set(_SESSION, "20000"), _set(_INTERVAL, "50"), code=Error.INVALID_CONFIG, lasts=True),
        ask("admin", describe_configs(_SESSION), _described(_SESSION)),
    ),
    case(
        "config-describe-all",
        "all configurations of a group, with where each value comes from",
        ask("admin", describe_configs(), {}),
        ask("admin", describe_configs(synonyms=False), {}),
        ask("admin", describe_configs("nobody.knows"), {}),
        *(ask("admin", describe_configs(_SESSION, version=version), {}) for version in range(1, 5)),
    ),
    case(
        "config-set-and-delete",
        "a group's own value is shown before the broker's and reaches its members; DELETE takes it back",
        ask("a", enter(), at(2, heartbeat_interval=300)),
        ask("admin", alter_configs(_set(_INTERVAL, "700"), _set(_SESSION, "9000")), _altered(Error.NONE)),
        Again(
            "admin",
            describe_configs(_INTERVAL, _SESSION),
            {"results": [{"configs": [{"value": "700"}, {"value": "9000"}]}]},
        ),
        Again("a", beat(), at(2, heartbeat_interval=700)),
        ask("admin", alter_configs((_INTERVAL, DELETE, None)), _altered(Error.NONE)),
        Again("a", beat(), at(2, heartbeat_interval=300)),
        ask("admin", describe_configs(), {}),
        ask("admin", alter_configs((_SESSION, DELETE, None)), _altered(Error.NONE)),
    ),
)
