"""Options of streams groups (KIP-1071): the broker's, and those that one group may have of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

#: The name of the assignor that Kafka brings along, and any other that is configured falls back to.
STICKY = "sticky"


RECOVERY_LAG = "streams.acceptable.recovery.lag"
_RACK_AWARE_TAGS = "streams.rack.aware.assignment.tags"
#: Options of one group that are texts. An assignor that the broker does not have is replaced by `STICKY`.
STREAMS_GROUP_TEXTS = (_RACK_AWARE_TAGS, "streams.assignor.name")


class _Bounds(NamedTuple):
    """An option of one group: the field with the broker's value, the smallest and largest values that may be
    set, and the fields that hold a set value further in."""

    field: str
    least: int = 0
    most: int = _INT_MAX
    min_field: str | None = None
    max_field: str | None = None


_OWN = {
    "streams.session.timeout.ms": _Bounds(
        "session_timeout_ms", 1, min_field="min_session_timeout_ms", max_field="max_session_timeout_ms"
    ),
    "streams.heartbeat.interval.ms": _Bounds(
        "heartbeat_interval_ms",
        1,
        min_field="min_heartbeat_interval_ms",
        max_field="max_heartbeat_interval_ms",
    ),
    "streams.assignment.interval.ms": _Bounds(
        "assignment_interval_ms",
        min_field="min_assignment_interval_ms",
        max_field="max_assignment_interval_ms",
    ),
    "streams.initial.rebalance.delay.ms": _Bounds("initial_rebalance_delay_ms"),
    "streams.num.standby.replicas": _Bounds("num_standby_replicas", max_field="max_standby_replicas"),
    "streams.num.warmup.replicas": _Bounds("num_warmup_replicas", max_field="max_warmup_replicas"),
    "streams.task.offset.interval.ms": _Bounds(
        "task_offset_interval_ms", 1, min_field="min_task_offset_interval_ms"
    ),
    RECOVERY_LAG: _Bounds("acceptable_recovery_lag", most=_LONG_MAX),
}
#: The options of one streams group that are numbers, and their smallest and largest values (GroupConfig).
STREAMS_GROUP_OPTIONS: Mapping[str, tuple[int, int]] = {
    name: (bounds.least, bounds.most) for name, bounds in _OWN.items()
}


@dataclass(frozen=True, slots=True)
class StreamsConfig:
    """The options that have an effect on streams groups, under Kafka's names; times are in milliseconds."""

    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5_000
    min_heartbeat_interval_ms: int = 5_000
    max_heartbeat_interval_ms: int = 15_000
    assignment_interval_ms: int = 1_000
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = _INT_MAX
    num_standby_replicas: int = 0
    max_standby_replicas: int = 2
    num_warmup_replicas: int = 2
    max_warmup_replicas: int = 20
    task_offset_interval_ms: int = 60_000
    min_task_offset_interval_ms: int = 15_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> StreamsConfig:
        """From Kafka's options by name, each parsed and checked."""
        values = {name: options[f"group.streams.{name.replace('_', '.')}"] for name in cls.__match_args__}
        return cls(**{**values, "rack_aware_assignment_tags": tuple(values["rack_aware_assignment_tags"])})

    def of_group(self, own: Mapping[str, int | str]) -> StreamsConfig:
        """The options of one group: its own within the broker's bounds, else the broker's."""
        values: dict[str, Any] = {
            bounds.field: self._held(int(own[name]), bounds) for name, bounds in _OWN.items() if name in own
        }
        if _RACK_AWARE_TAGS in own:
            values["rack_aware_assignment_tags"] = split_names(str(own[_RACK_AWARE_TAGS]))
        return replace(self, **values) if values else self

    def _held(self, value: int, bounds: _Bounds) -> int:
        """The value, or the bound that is nearest to it."""
        if bounds.min_field is not None:
            value = max(value, getattr(self, bounds.min_field))
        return value if bounds.max_field is None else min(value, getattr(self, bounds.max_field))

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """The configuration of the assignor, by name: a change counts the group epoch up."""
        configs = (("num.standby.replicas", str(self.num_standby_replicas)),)
        tags = self.rack_aware_assignment_tags
        return (*configs, ("rack.aware.assignment.tags", ",".join(tags))) if tags else configs


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, as Kafka reads a list."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
