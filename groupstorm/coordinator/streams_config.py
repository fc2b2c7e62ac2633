"""Options of streams groups (KIP-1071): the broker's, and those that one group may have of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

#: The name of the assignor that Kafka brings along, and any other that is configured falls back to.
STICKY = "sticky"


@dataclass(frozen=True, slots=True)
class StreamsConfig:
    """The options that have an effect on streams groups, in milliseconds."""

    session_timeout_ms: int = 45_000
    session_timeout_bounds_ms: tuple[int, int] = (45_000, 60_000)
    heartbeat_interval_ms: int = 5_000
    heartbeat_interval_bounds_ms: tuple[int, int] = (5_000, 15_000)
    assignment_interval_ms: int = 1_000
    assignment_interval_bounds_ms: tuple[int, int] = (0, 15_000)
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = _INT_MAX
    standby_replicas: int = 0
    max_standby_replicas: int = 2
    warmup_replicas: int = 2
    max_warmup_replicas: int = 20
    task_offset_interval_ms: int = 60_000
    min_task_offset_interval_ms: int = 15_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_tags: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> StreamsConfig:
        """From Kafka's options by name, each parsed and checked."""

        def option(what: str) -> Any:
            return options[f"group.streams.{what}"]

        def bounds(what: str) -> tuple[int, int]:
            return option(f"min.{what}"), option(f"max.{what}")

        return cls(
            session_timeout_ms=option("session.timeout.ms"),
            session_timeout_bounds_ms=bounds("session.timeout.ms"),
            heartbeat_interval_ms=option("heartbeat.interval.ms"),
            heartbeat_interval_bounds_ms=bounds("heartbeat.interval.ms"),
            assignment_interval_ms=option("assignment.interval.ms"),
            assignment_interval_bounds_ms=bounds("assignment.interval.ms"),
            initial_rebalance_delay_ms=option("initial.rebalance.delay.ms"),
            max_size=option("max.size"),
            standby_replicas=option("num.standby.replicas"),
            max_standby_replicas=option("max.standby.replicas"),
            warmup_replicas=option("num.warmup.replicas"),
            max_warmup_replicas=option("max.warmup.replicas"),
            task_offset_interval_ms=option("task.offset.interval.ms"),
            min_task_offset_interval_ms=option("min.task.offset.interval.ms"),
            acceptable_recovery_lag=option("acceptable.recovery.lag"),
            rack_aware_tags=tuple(option("rack.aware.assignment.tags")),
        )


SESSION_TIMEOUT = "streams.session.timeout.ms"
HEARTBEAT_INTERVAL = "streams.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "streams.assignment.interval.ms"
INITIAL_DELAY = "streams.initial.rebalance.delay.ms"
STANDBY_REPLICAS = "streams.num.standby.replicas"
WARMUP_REPLICAS = "streams.num.warmup.replicas"
TASK_OFFSET_INTERVAL = "streams.task.offset.interval.ms"
RECOVERY_LAG = "streams.acceptable.recovery.lag"

#: The options of one streams group that are numbers, and their smallest and largest values (GroupConfig).
STREAMS_GROUP_OPTIONS: Mapping[str, tuple[int, int]] = {
    SESSION_TIMEOUT: (1, _INT_MAX),
    HEARTBEAT_INTERVAL: (1, _INT_MAX),
    ASSIGNMENT_INTERVAL: (0, _INT_MAX),
    INITIAL_DELAY: (0, _INT_MAX),
    STANDBY_REPLICAS: (0, _INT_MAX),
    WARMUP_REPLICAS: (0, _INT_MAX),
    TASK_OFFSET_INTERVAL: (1, _INT_MAX),
    RECOVERY_LAG: (0, _LONG_MAX),
}

RACK_AWARE_TAGS = "streams.rack.aware.assignment.tags"
ASSIGNOR_NAME = "streams.assignor.name"
#: Those that are texts.
STREAMS_GROUP_TEXTS = (RACK_AWARE_TAGS, ASSIGNOR_NAME)


class StreamsGroupOptions:
    """The options of one streams group: its own within the broker's bounds, else the broker's."""

    def __init__(self, broker: StreamsConfig, own: Mapping[str, int | str]) -> None:
        self._broker = broker
        self._own = own

    def _value(self, name: str, default: int, bounds: tuple[int, int] = (0, _LONG_MAX)) -> int:
        if name not in self._own:
            return default
        return min(max(int(self._own[name]), bounds[0]), bounds[1])

    @property
    def session_timeout_ms(self) -> int:
        broker = self._broker
        return self._value(SESSION_TIMEOUT, broker.session_timeout_ms, broker.session_timeout_bounds_ms)

    @property
    def heartbeat_interval_ms(self) -> int:
        broker = self._broker
        bounds = broker.heartbeat_interval_bounds_ms
        return self._value(HEARTBEAT_INTERVAL, broker.heartbeat_interval_ms, bounds)

    @property
    def assignment_interval_ms(self) -> int:
        broker = self._broker
        bounds = broker.assignment_interval_bounds_ms
        return self._value(ASSIGNMENT_INTERVAL, broker.assignment_interval_ms, bounds)

    @property
    def initial_delay_ms(self) -> int:
        return self._value(INITIAL_DELAY, self._broker.initial_rebalance_delay_ms)

    @property
    def standby_replicas(self) -> int:
        broker = self._broker
        return self._value(STANDBY_REPLICAS, broker.standby_replicas, (0, broker.max_standby_replicas))

    @property
    def warmup_replicas(self) -> int:
        broker = self._broker
        return self._value(WARMUP_REPLICAS, broker.warmup_replicas, (0, broker.max_warmup_replicas))

    @property
    def task_offset_interval_ms(self) -> int:
        broker = self._broker
        bounds = (broker.min_task_offset_interval_ms, _INT_MAX)
        return self._value(TASK_OFFSET_INTERVAL, broker.task_offset_interval_ms, bounds)

    @property
    def acceptable_recovery_lag(self) -> int:
        return self._value(RECOVERY_LAG, self._broker.acceptable_recovery_lag)

    @property
    def rack_aware_tags(self) -> tuple[str, ...]:
        own = self._own.get(RACK_AWARE_TAGS)
        return self._broker.rack_aware_tags if own is None else split_names(str(own))

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """What an assignor is told, by name: a change counts the group epoch up."""
        configs = (("num.standby.replicas", str(self.standby_replicas)),)
        tags = self.rack_aware_tags
        return (*configs, ("rack.aware.assignment.tags", ",".join(tags))) if tags else configs


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, as Kafka reads a list."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
