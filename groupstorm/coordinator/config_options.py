"""The configurations that resources have: types, bounds, the check of one value with Kafka's message, and
those of groups of the newer protocols.

Source: ConfigDef, GroupConfig.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.modern.config import (
    STICKY,
    ConsumerConfig,
    ModernConfig,
    ShareConfig,
    StreamsConfig,
)

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """As DescribeConfigs names them (DescribeConfigsResponse.ConfigType)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigError(ValueError):
    """A configuration that Kafka refuses (INVALID_CONFIG); the sentence is Kafka's."""


class Option(NamedTuple):
    """One configuration. ``broker``: the broker's setting that is its default.

    ``pattern``: what a text has to match, and Kafka's description of that.
    """

    kind: ConfigType
    default: str
    least: float = 0
    most: float = INT64_MAX
    values: tuple[str, ...] = ()
    broker: str | None = None
    pattern: tuple[re.Pattern[str], str] | None = None


def long(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.LONG, str(default), least, broker=broker)


def integer(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.INT, str(default), least, INT32_MAX, broker=broker)


def flag(default: bool) -> Option:
    return Option(ConfigType.BOOLEAN, str(default).lower())


def check(options: Mapping[str, Option], what: str, name: str, value: str) -> str:
    """The checked value. Raises ConfigError for a name or a value that Kafka refuses."""
    option = options.get(name)
    if option is None:
        raise ConfigError(f"Unknown {what} config name: {name}")
    if option.kind is ConfigType.LIST:
        _check_list(option, name, value.strip())
    else:
        problem = _PROBLEMS[option.kind](option, name, value.strip())
        if problem is not None:
            raise ConfigError(f"Invalid value {value} for configuration {name}: {problem}")
    return value.strip()


def _of_flag(_option: Option, _name: str, value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "Expected value to be either true or false"


def _of_text(option: Option, name: str, value: str) -> str | None:
    if option.pattern is not None:
        pattern, description = option.pattern
        if pattern.fullmatch(value):
            return None
        return f"Invalid value `{value}` for configuration {name}. The value must be {description}"
    if not option.values or value in option.values:
        return None
    return f"String must be one of: {', '.join(option.values)}"


def _check_list(option: Option, name: str, value: str) -> None:
    """Raises ConfigError. An empty list is one (KIP-1161)."""
    parts = [part.strip() for part in value.split(",")] if value else []
    if not all(parts):
        raise ConfigError(f"Configuration '{name}' values must not be empty.")
    for part in parts if option.values else ():
        if part not in option.values:
            problem = f"String must be one of: {', '.join(option.values)}"
            raise ConfigError(f"Invalid value {part} for configuration {name}: {problem}")


_LARGEST = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT32_MAX}


def _of_number(option: Option, _name: str, value: str) -> str | None:
    fraction = r"(\.[0-9]{1,19})?" if option.kind is ConfigType.DOUBLE else ""
    largest = _LARGEST.get(option.kind, INT64_MAX)
    is_number = re.fullmatch(rf"[+-]?[0-9]{{1,19}}{fraction}", value)
    if not is_number or not -largest - 1 <= float(value) <= largest:
        return f"Not a number of type {option.kind.name}"
    if float(value) < option.least:
        return f"Value must be at least {option.least}"
    if float(value) > option.most:
        return f"Value must be no more than {option.most}"
    return None


_PROBLEMS: Mapping[ConfigType, Callable[[Option, str, str], str | None]] = {
    ConfigType.BOOLEAN: _of_flag,
    ConfigType.STRING: _of_text,
    ConfigType.CLASS: _of_text,
    ConfigType.PASSWORD: _of_text,
    ConfigType.INT: _of_number,
    ConfigType.SHORT: _of_number,
    ConfigType.LONG: _of_number,
    ConfigType.DOUBLE: _of_number,
}


#: ShareGroupAutoOffsetResetStrategy; Java's `Duration` without a sign.
_OFFSET_RESET = (
    re.compile(r"earliest|latest|by_duration:(?i:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?)"),
    "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
)


_KINDS: tuple[type[ModernConfig], ...] = (ConsumerConfig, ShareConfig, StreamsConfig)
_TAGS = "streams.rack.aware.assignment.tags"
_ASSIGNOR = "streams.assignor.name"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
#: The task assignors of streams groups.
_ASSIGNORS = (STICKY,)
#: The numbers that take the place of the broker's.
_NUMBERS = {
    name: integer(getattr(kind(), field), least, broker=f"group.{name}")
    for kind in _KINDS
    for field, (name, (least, _)) in zip(kind.own_numbers, kind.own_options().items(), strict=True)
}
#: Options that Kafka 4.4.0 takes and does not describe.
INTERNAL_OPTIONS: Mapping[str, Option] = {
    **{f"{kind.kind}.assignor.offload.enable": flag(default=True) for kind in _KINDS},
    "streams.acceptable.recovery.lag": long(10_000),
    **{one: _NUMBERS[one] for one in ("streams.num.warmup.replicas", "streams.task.offset.interval.ms")},
}
_ISOLATION = ("read_committed", "read_uncommitted")
_OPTIONS_4_3: Mapping[str, Option] = dict(
    sorted(
        {
            **{name: option for name, option in _NUMBERS.items() if name not in INTERNAL_OPTIONS},
            "share.auto.offset.reset": Option(ConfigType.STRING, "latest", pattern=_OFFSET_RESET),
            "share.isolation.level": Option(ConfigType.STRING, "read_uncommitted", values=_ISOLATION),
            "share.renew.acknowledge.enable": flag(default=True),
        }.items()
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
#: The numbers that the broker bounds, in the order in which Kafka checks them (GroupConfig.validateValues).
_BOUNDED = (
    *("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "consumer.assignment.interval.ms"),
    *("share.heartbeat.interval.ms", "share.session.timeout.ms", "share.record.lock.duration.ms"),
    *("share.delivery.count.limit", "share.partition.max.record.locks", "share.assignment.interval.ms"),
    *("streams.heartbeat.interval.ms", "streams.session.timeout.ms", "streams.num.standby.replicas"),
    *("streams.assignment.interval.ms", "streams.task.offset.interval.ms", "streams.num.warmup.replicas"),
)


def group_options(kafka: Compatibility) -> Mapping[str, Option]:
    """The options that a group may have of its own."""
    return _OPTIONS_4_4 if kafka.is_4_4 else _OPTIONS_4_3


def _check_bounds(name: str, value: int, config: CoordinatorConfig) -> None:
    """Raises ConfigError with the words of that release; 4.3.1 names the broker's setting."""
    kafka = config.compatibility
    kind, what = name.split(".", 1)
    least, most = getattr(config, kind).bounds(what.replace(".", "_"))
    too_small = least is not None and value < least
    too_large = most is not None and value > most
    if not (too_small or too_large):
        return
    if kafka.is_4_4 and least is not None and most is not None:
        raise ConfigError(f"{name} must be in the range {least} to {most} inclusive.")
    side, bound, limit = ("greater", least, "min") if too_small else ("less", most, "max")
    shown = bound if kafka.is_4_4 else f"group.{kind}.{limit}.{what.removeprefix('num.')}"
    raise ConfigError(f"{name} must be {side} than or equal to {shown}")


def broker_value(option: Option, config: CoordinatorConfig) -> str:
    """The value of an option that a group does not have of its own."""
    kind, _, what = (option.broker or "").removeprefix("group.").partition(".")
    own = getattr(getattr(config, kind, None), what.replace(".", "_"), None)
    if isinstance(own, tuple):
        return ",".join(own)
    return option.default if own is None else str(own)


def check_group(configs: Mapping[str, str], config: CoordinatorConfig) -> dict[str, str]:
    """A group's configurations, checked together. Raises ConfigError with Kafka's message."""
    options = group_options(config.compatibility)
    for name in configs:
        if name not in options:
            raise ConfigError(f"Unknown group config name: {name}")
    tags = [tag.strip() for tag in configs.get(_TAGS, "").split(",")]
    if len(set(tags)) < len(tags):
        raise ConfigError(f"{_TAGS} must not contain duplicate tag keys.")
    checked = {name: check(options, "group", name, value) for name, value in configs.items()}
    for name in _BOUNDED:
        if name in checked:
            _check_bounds(name, int(checked[name]), config)
    assignor = checked.get(_ASSIGNOR, _ASSIGNORS[0])
    if assignor not in _ASSIGNORS:
        registered = f"Registered assignors are: [{', '.join(_ASSIGNORS)}]."
        raise ConfigError(f"{_ASSIGNOR} '{assignor}' is not a registered task assignor. {registered}")
    for kind in _KINDS:
        _check_session(kind.kind, checked, config)
    if checked.get(_DEAD_LETTERS, "").startswith("__"):
        raise ConfigError(f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'")
    return checked


def _check_session(kind: str, checked: Mapping[str, str], config: CoordinatorConfig) -> None:
    """Kafka 4.4.0 compares the two only if the group has one of them."""
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if config.compatibility.is_4_4 and session not in checked and interval not in checked:
        return
    values = [
        int(checked.get(name) or broker_value(_OPTIONS_4_3[name], config)) for name in (session, interval)
    ]
    if values[0] <= values[1]:
        raise ConfigError(f"{session} must be greater than {interval}")
