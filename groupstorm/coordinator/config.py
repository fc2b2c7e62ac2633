"""Kafka's options of the group coordinator, by name, with Kafka's defaults and bounds.

Source: CONFIG_DEF of Kafka 4.4.0's GroupCoordinatorConfig and ShareGroupConfig. Options that an emulator has
no use for (threads, buffers, the offsets topic's files) are checked as Kafka checks them, and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from groupstorm.coordinator.modern.config import (
    STICKY,
    ConsumerConfig,
    ShareConfig,
    StreamsConfig,
    split_names,
)
from groupstorm.problems import InputError, did_you_mean

INT_MAX = 2**31 - 1
_INT_MIN = -(2**31)
_LONG_MAX = 2**63 - 1

#: The time for which a new member may be parked in JoinGroup, in ms. Its connection is muted meanwhile, so
#: that the broker would not notice its end (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000

#: Our own option: the release of Kafka whose rules hold, and whether its defects are kept.
COMPATIBILITY = "groupstorm.compatibility"


class Compatibility(StrEnum):
    """The Kafka whose decisions the coordinator makes. docs/coordinator.md names every difference."""

    #: To the letter, with the defects that leave requests without an answer.
    KAFKA_4_3_1 = "4.3.1"
    KAFKA_4_4_0 = "4.4.0"
    #: These defects are repaired: every request is answered.
    REPAIRED = "4.3.1-repaired"
    REPAIRED_4_4_0 = "4.4.0-repaired"

    @property
    def is_to_the_letter(self) -> bool:
        return self in (Compatibility.KAFKA_4_3_1, Compatibility.KAFKA_4_4_0)

    @property
    def is_4_4(self) -> bool:
        """Whether the rules are those of Kafka 4.4.0 where they differ from 4.3.1's."""
        return self in (Compatibility.KAFKA_4_4_0, Compatibility.REPAIRED_4_4_0)


class _Int(NamedTuple):
    default: int
    at_least: int = _INT_MIN
    at_most: int = INT_MAX


class _Choice(NamedTuple):
    default: str
    values: tuple[str, ...]


class _Names(NamedTuple):
    """A list of names, as a list or with commas between them."""

    default: str
    values: tuple[str, ...]


class _Texts(NamedTuple):
    """A list of different texts, which may be empty."""

    default: str


_Option = _Int | _Choice | _Names | _Texts


def _timeouts(kind: str, max_size: _Int) -> dict[str, _Option]:
    """The options that consumer, share and streams groups each have (KIP-848, KIP-932, KIP-1071)."""
    return {
        f"group.{kind}.session.timeout.ms": _Int(45_000, 1),
        f"group.{kind}.min.session.timeout.ms": _Int(45_000, 1),
        f"group.{kind}.max.session.timeout.ms": _Int(60_000, 1),
        f"group.{kind}.heartbeat.interval.ms": _Int(5_000, 1),
        f"group.{kind}.min.heartbeat.interval.ms": _Int(5_000, 1),
        f"group.{kind}.max.heartbeat.interval.ms": _Int(15_000, 1),
        f"group.{kind}.max.size": max_size,
        f"group.{kind}.assignment.interval.ms": _Int(1_000, 0),
        f"group.{kind}.min.assignment.interval.ms": _Int(0, 0),
        f"group.{kind}.max.assignment.interval.ms": _Int(15_000, 0),
    }


OPTIONS: dict[str, _Option] = {
    COMPATIBILITY: _Choice(Compatibility.REPAIRED_4_4_0, tuple(Compatibility)),
    # the classic protocol
    "group.initial.rebalance.delay.ms": _Int(3_000),
    "group.min.session.timeout.ms": _Int(6_000),
    "group.max.session.timeout.ms": _Int(1_800_000),
    "group.max.size": _Int(INT_MAX, 1),
    "offset.metadata.max.bytes": _Int(4_096),
    "offsets.commit.timeout.ms": _Int(5_000, 1),
    "offsets.retention.minutes": _Int(7 * 24 * 60, 1),
    "offsets.retention.check.interval.ms": _Int(600_000, 1, _LONG_MAX),
    # without effect here
    "offsets.load.buffer.size": _Int(5 * 1024 * 1024, 1),
    "offsets.topic.num.partitions": _Int(50, 1),
    "offsets.topic.segment.bytes": _Int(100 * 1024 * 1024, 1),
    "offsets.topic.replication.factor": _Int(3, 1, 2**15 - 1),
    "offsets.topic.compression.codec": _Int(0, 0, 4),
    "group.coordinator.append.linger.ms": _Int(-1, -1),
    "group.coordinator.threads": _Int(4, 1),
    "group.coordinator.background.threads": _Int(2, 1),
    "group.coordinator.cached.buffer.max.bytes": _Int(1024 * 1024 + 12, 512 * 1024),
    "group.coordinator.rebalance.protocols": _Names(
        "classic,consumer,streams", ("classic", "consumer", "share", "streams")
    ),
    # other kinds of groups
    **{
        f"group.{kind}.assignor.offload.enable": _Choice("true", ("true", "false"))
        for kind in ("consumer", "share", "streams")
    },
    "errors.deadletterqueue.auto.create.topics.enable": _Choice("false", ("true", "false")),
    "errors.deadletterqueue.topic.name.prefix": _Texts("dlq."),
    **_timeouts("consumer", _Int(INT_MAX, 1)),
    "group.consumer.assignors": _Names("uniform,range", ("uniform", "range")),
    "group.consumer.migration.policy": _Choice(
        "bidirectional", ("bidirectional", "upgrade", "downgrade", "disabled")
    ),
    "group.consumer.regex.refresh.interval.ms": _Int(600_000, 10_000),
    **_timeouts("share", _Int(200, 1, 1000)),
    "group.share.assignors": _Names("simple", ("simple",)),
    "group.share.initialize.retry.interval.ms": _Int(30_000, 1),
    "group.share.record.lock.duration.ms": _Int(30_000, 1_000, 3_600_000),
    "group.share.min.record.lock.duration.ms": _Int(15_000, 1_000, 30_000),
    "group.share.max.record.lock.duration.ms": _Int(60_000, 30_000, 3_600_000),
    "group.share.delivery.count.limit": _Int(5, 2, 10),
    "group.share.min.delivery.count.limit": _Int(2, 2, 5),
    "group.share.max.delivery.count.limit": _Int(10, 5, 25),
    "group.share.partition.max.record.locks": _Int(2_000, 100, 10_000),
    "group.share.min.partition.max.record.locks": _Int(100, 100, 2_000),
    "group.share.max.partition.max.record.locks": _Int(4_000, 2_000, 10_000),
    "group.share.max.share.sessions": _Int(2_000, 1),
    **_timeouts("streams", _Int(INT_MAX, 1)),
    "group.streams.num.standby.replicas": _Int(0, 0),
    "group.streams.max.standby.replicas": _Int(2, 0),
    "group.streams.initial.rebalance.delay.ms": _Int(3_000, 0),
    "group.streams.num.warmup.replicas": _Int(2, 0),
    "group.streams.max.warmup.replicas": _Int(20, 0),
    "group.streams.task.offset.interval.ms": _Int(60_000, 1),
    "group.streams.min.task.offset.interval.ms": _Int(15_000, 1),
    "group.streams.acceptable.recovery.lag": _Int(10_000, 0, _LONG_MAX),
    "group.streams.rack.aware.assignment.tags": _Texts(""),
    "group.streams.assignors": _Texts(STICKY),
    "group.streams.topology.description.plugin.class": _Texts(""),
}

#: Pairs of which the first must not be greater than the second (GroupCoordinatorConfig's constructor).
_ORDERED: tuple[tuple[str, str], ...] = (
    *(
        pair
        for kind in ("consumer", "share", "streams")
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for pair in (
            (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"),
            (f"group.{kind}.min.{what}", f"group.{kind}.{what}"),
            (f"group.{kind}.{what}", f"group.{kind}.max.{what}"),
        )
    ),
    *(
        pair
        for what in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
        for pair in (
            (f"group.share.min.{what}", f"group.share.{what}"),
            (f"group.share.{what}", f"group.share.max.{what}"),
        )
    ),
    ("group.share.max.size", "group.share.max.share.sessions"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
    ("group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms"),
)


#: The options that are fields of `CoordinatorConfig`, and how many of the field's units are one.
FIELDS: Mapping[str, tuple[str, int]] = {
    "group.initial.rebalance.delay.ms": ("initial_rebalance_delay_ms", 1),
    "group.max.session.timeout.ms": ("max_session_timeout_ms", 1),
    "group.max.size": ("max_size", 1),
    "group.min.session.timeout.ms": ("min_session_timeout_ms", 1),
    "offset.metadata.max.bytes": ("offset_metadata_max_bytes", 1),
    "offsets.commit.timeout.ms": ("commit_timeout_ms", 1),
    "offsets.retention.check.interval.ms": ("offsets_retention_check_interval_ms", 1),
    "offsets.retention.minutes": ("offsets_retention_ms", 60_000),
}


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """The options that have an effect, in ms and bytes; those of the newer protocols by kind of group."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT_MAX
    offset_metadata_max_bytes: int = 4_096
    commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 60 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    compatibility: Compatibility = Compatibility.REPAIRED_4_4_0
    consumer: ConsumerConfig = field(default_factory=ConsumerConfig)
    streams: StreamsConfig = field(default_factory=StreamsConfig)
    share: ShareConfig = field(default_factory=ShareConfig)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> CoordinatorConfig:
        """Kafka's options by name, values as text or typed; `InputError` names the option that is wrong."""
        for name in values:
            if name not in OPTIONS:
                hint = did_you_mean(name, OPTIONS)
                raise InputError(f"{name}: Kafka's group coordinator has no such option{hint}")
        parsed = parse_options(values)
        _check_relations(parsed)
        return cls(
            **{field: parsed[name] * one for name, (field, one) in FIELDS.items()},
            compatibility=Compatibility(parsed[COMPATIBILITY]),
            consumer=ConsumerConfig.from_options(parsed),
            streams=StreamsConfig.from_options(parsed),
            share=ShareConfig.from_options(parsed),
        )


def parse_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the group coordinator by name, with defaults. ``values`` may have others too. Raises
    InputError for a value that an option alone cannot have."""
    parsed = {name: _default(option) for name, option in OPTIONS.items()}
    known = {name: value for name, value in values.items() if name in OPTIONS}
    return parsed | {name: _parse(name, OPTIONS[name], value) for name, value in known.items()}


def bounds_beside(name: str, value: int) -> dict[str, int]:
    """The bounds that have to change with an option: with those of the defaults, a broker that has ``value``
    does not start. Empty if the default bounds hold it."""
    defaults = parse_options({})
    least = {small: value for small, large in _ORDERED if large == name and defaults[small] > value}
    return least | {large: value for small, large in _ORDERED if small == name and value > defaults[large]}


def _default(option: _Option) -> Any:
    if isinstance(option, _Names | _Texts):
        return list(split_names(option.default))
    return option.default


def _parse(name: str, option: _Option, value: Any) -> Any:
    match option:
        case _Int():
            return parse_int(name, value, option.at_least, option.at_most)
        case _Choice():
            text = str(value).strip().lower() if isinstance(value, str | bool) else value
            if text not in option.values:
                raise InputError(f"{name}: {value!r} is not one of {', '.join(option.values)}")
            return text
        case _Names():
            return _parse_names(name, option, value)
        case _Texts():
            return _parse_texts(name, value)


def parse_int(name: str, value: Any, at_least: int = _INT_MIN, at_most: int = INT_MAX) -> int:
    """A whole number, or the text of one, within its bounds; otherwise `InputError`."""
    number = value
    if isinstance(value, str):
        try:
            number = int(value.strip()) if value.strip().lstrip("+-").isdecimal() else None
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"{name}: {value!r} is not a whole number")
    if not at_least <= number <= at_most:
        raise InputError(f"{name}: {number} is not between {at_least} and {at_most}")
    return number


def _parse_names(name: str, option: _Names, value: Any) -> list[str]:
    if isinstance(value, str):
        names = [part.strip() for part in value.split(",")]
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        names = value
    else:
        raise InputError(f"{name}: {value!r} is not a list of names")
    if not names or len(set(names)) < len(names) or any(part not in option.values for part in names):
        allowed = ", ".join(option.values)
        raise InputError(f"{name}: {value!r} is not a list of different names out of {allowed}")
    return names


def _parse_texts(name: str, value: Any) -> list[str]:
    texts = list(split_names(value)) if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name}: {value!r} is not a list of texts")
    if len(set(texts)) < len(texts):
        raise InputError(f"{name}: {value!r} names something twice")
    return texts


def _check_relations(parsed: Mapping[str, Any]) -> None:
    for small, large in _ORDERED:
        if parsed[small] > parsed[large]:
            raise InputError(f"{small}: {parsed[small]} is more than {large}, {parsed[large]}")
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        every_ms, within_ms = parsed[heartbeat], parsed[session]
        if every_ms >= within_ms:
            raise InputError(f"{heartbeat}: {every_ms} is not less than {session}, {within_ms}")
