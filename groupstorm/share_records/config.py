"""Options of share groups (Kafka: ShareGroupConfig, GroupConfig, ShareGroupConfigProvider)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupstorm.coordinator.config import COMPATIBILITY, Compatibility, parse_int, parse_options
from groupstorm.coordinator.modern.config import ShareConfig
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


_FETCH_MAX_BYTES = "fetch.max.bytes"
_UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"
#: The numbers that a group may have of its own, as far as they are about records.
_NUMBERS = ("share.record.lock.duration.ms", "share.delivery.count.limit", "share.partition.max.record.locks")
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"


@dataclass(frozen=True)
class ShareBrokerConfig:
    """The broker's options. ``has_dead_letters``: share.version is 2."""

    groups: ShareConfig
    fetch_max_bytes: int
    updates_per_snapshot: int
    has_dead_letters: bool
    keeps_defects: bool

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any], *, has_dead_letters: bool = True) -> ShareBrokerConfig:
        """The options by Kafka's names. `InputError`: Kafka would refuse a value."""
        parsed = parse_options(options)
        return cls(
            ShareConfig.from_options(parsed),
            parse_int(_FETCH_MAX_BYTES, options.get(_FETCH_MAX_BYTES, 57_671_680), 1_024),
            parse_int(_UPDATES_PER_SNAPSHOT, options.get(_UPDATES_PER_SNAPSHOT, 500), 0),
            has_dead_letters,
            Compatibility(parsed[COMPATIBILITY]).is_to_the_letter,
        )

    def of_group(self, own: Mapping[str, Any]) -> GroupOptions:
        """A group's options; its own numbers are moved into the broker's bounds. Raises `InputError`."""
        numbers = {name: parse_int(name, own[name], 1) for name in _NUMBERS if own.get(name) is not None}
        group = self.groups.of_group(numbers)
        topic = own.get(_DEAD_LETTERS)
        reset, reset_ms = _read_reset(str(own.get("share.auto.offset.reset") or "latest"))
        return GroupOptions(
            record_lock_duration_ms=group.record_lock_duration_ms,
            rule=DeliveryRule(group.delivery_count_limit, self.has_dead_letters and bool(topic)),
            partition_max_record_locks=group.partition_max_record_locks,
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
