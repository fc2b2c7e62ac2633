"""Options of share groups (Kafka: ShareGroupConfig, GroupConfig, ShareGroupConfigProvider)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupstorm.coordinator.config import COMPATIBILITY, Compatibility, parse_int
from groupstorm.problems import InputError
from groupstorm.share_records.states import DeliveryRule

_DURATION = re.compile(
    r"by_duration:P(?=.)(?:(?P<d>\d+)D)?(?:T(?=.)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d{0,9})?)S)?)?",
    re.IGNORECASE,
)


class GroupOptions(NamedTuple):
    """The options of one group. ``reset_ms``: the age of the first record with ``by_duration``."""

    record_lock_duration_ms: int
    rule: DeliveryRule
    partition_max_record_locks: int
    is_renew_enabled: bool
    is_committed: bool
    auto_offset_reset: str
    reset_ms: int


class _Bounded(NamedTuple):
    """The broker's default of a group option, the bounds of a group's own value, and those of the default."""

    name: str
    default: int
    least: int
    most: int
    range: tuple[int, int]


_BOUNDED = (
    _Bounded("record.lock.duration.ms", 30_000, 15_000, 60_000, (1_000, 3_600_000)),
    _Bounded("delivery.count.limit", 5, 2, 10, (2, 10)),
    _Bounded("partition.max.record.locks", 2_000, 100, 4_000, (100, 10_000)),
)
_FETCH_MAX_BYTES = "fetch.max.bytes"
_MAX_SESSIONS = "group.share.max.share.sessions"
_UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"


@dataclass(frozen=True)
class ShareConfig:
    """The broker's options. ``has_dead_letters``: share.version is 2."""

    bounds: Mapping[str, tuple[int, int, int]]
    fetch_max_bytes: int = 57_671_680
    max_sessions: int = 2_000
    updates_per_snapshot: int = 500
    has_dead_letters: bool = True
    keeps_defects: bool = False

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any], *, has_dead_letters: bool = True) -> ShareConfig:
        """The options by Kafka's names. `InputError`: Kafka would refuse a value."""

        def number(name: str, default: int, least: int, most: int = 2**31 - 1) -> int:
            return parse_int(name, options.get(name, default), least, most)

        bounds = {}
        for one in _BOUNDED:
            values = (
                number(f"group.share.{one.name}", one.default, *one.range),
                number(f"group.share.min.{one.name}", one.least, 1),
                number(f"group.share.max.{one.name}", one.most, 1),
            )
            bounds[one.name] = values
        return cls(
            bounds,
            number(_FETCH_MAX_BYTES, 57_671_680, 1_024),
            number(_MAX_SESSIONS, 2_000, 1),
            number(_UPDATES_PER_SNAPSHOT, 500, 0),
            has_dead_letters,
            Compatibility(options.get(COMPATIBILITY, Compatibility.REPAIRED_4_4_0)).is_to_the_letter,
        )

    def of_group(self, own: Mapping[str, Any]) -> GroupOptions:
        """A group's options; its own numbers are moved into the broker's bounds. Raises `InputError`."""
        numbers = {}
        for name, (default, least, most) in self.bounds.items():
            value = own.get(f"share.{name}")
            if value is not None:
                value = min(max(parse_int(f"share.{name}", value, 1), least), most)
            numbers[name] = default if value is None else value
        topic = own.get(_DEAD_LETTERS)
        reset, reset_ms = _read_reset(str(own.get("share.auto.offset.reset") or "latest"))
        return GroupOptions(
            record_lock_duration_ms=numbers["record.lock.duration.ms"],
            rule=DeliveryRule(numbers["delivery.count.limit"], self.has_dead_letters and bool(topic)),
            partition_max_record_locks=numbers["partition.max.record.locks"],
            is_renew_enabled=str(own.get("share.renew.acknowledge.enable")).lower() != "false",
            is_committed=own.get("share.isolation.level") == "read_committed",
            auto_offset_reset=reset,
            reset_ms=reset_ms,
        )


def _read_reset(value: str) -> tuple[str, int]:
    """The strategy, and its duration in ms."""
    if value in ("latest", "earliest"):
        return value, 0
    found = _DURATION.fullmatch(value)
    if found is None:
        raise InputError(
            f"share.auto.offset.reset: {value!r} is none of earliest, latest, by_duration:<PnDTnHnMn.nS>"
        )
    days, hours, minutes = (int(found[part] or 0) for part in "dhm")
    seconds = float(found["s"] or 0)
    return "by_duration", int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
