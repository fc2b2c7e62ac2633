"""Options of consumer groups (KIP-848): the broker's, and those that one group may have of its own.

Kafka: GroupCoordinatorConfig, GroupConfig (dynamic configuration of a GROUP resource).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from groupstorm.coordinator.streams_config import (
    STREAMS_GROUP_OPTIONS,
    STREAMS_GROUP_TEXTS,
    StreamsConfig,
)
from groupstorm.problems import InputError

_INT_MAX = 2**31 - 1


class MigrationPolicy(StrEnum):
    """`group.consumer.migration.policy`: which live groups may change their protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """The options that have an effect on consumer groups, in milliseconds."""

    session_timeout_ms: int = 45_000
    session_timeout_bounds_ms: tuple[int, int] = (45_000, 60_000)
    heartbeat_interval_ms: int = 5_000
    heartbeat_interval_bounds_ms: tuple[int, int] = (5_000, 15_000)
    assignment_interval_ms: int = 1_000
    assignment_interval_bounds_ms: tuple[int, int] = (0, 15_000)
    max_size: int = _INT_MAX
    #: The first one is the default.
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ConsumerConfig:
        """From Kafka's options by name, each parsed and checked."""

        def bounds(what: str) -> tuple[int, int]:
            return options[f"group.consumer.min.{what}"], options[f"group.consumer.max.{what}"]

        return cls(
            session_timeout_ms=options["group.consumer.session.timeout.ms"],
            session_timeout_bounds_ms=bounds("session.timeout.ms"),
            heartbeat_interval_ms=options["group.consumer.heartbeat.interval.ms"],
            heartbeat_interval_bounds_ms=bounds("heartbeat.interval.ms"),
            assignment_interval_ms=options["group.consumer.assignment.interval.ms"],
            assignment_interval_bounds_ms=bounds("assignment.interval.ms"),
            max_size=options["group.consumer.max.size"],
            assignors=tuple(options["group.consumer.assignors"]),
            migration_policy=MigrationPolicy(options["group.consumer.migration.policy"]),
            regex_refresh_interval_ms=options["group.consumer.regex.refresh.interval.ms"],
        )


SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

#: The options of one consumer group and their smallest values (GroupConfig).
GROUP_OPTIONS: Mapping[str, int] = {SESSION_TIMEOUT: 1, HEARTBEAT_INTERVAL: 1, ASSIGNMENT_INTERVAL: 0}


class GroupOptions:
    """The options that single groups have of their own; the broker's options hold for the others.

    A value outside of the broker's bounds counts as the nearest bound (GroupConfig.evaluate).
    """

    def __init__(self, broker: ConsumerConfig, streams: StreamsConfig | None = None) -> None:
        self._broker = broker
        self._streams = streams or StreamsConfig()
        self._own: dict[str, dict[str, int | str]] = {}
        self._bounds = {
            SESSION_TIMEOUT: broker.session_timeout_bounds_ms,
            HEARTBEAT_INTERVAL: broker.heartbeat_interval_bounds_ms,
            ASSIGNMENT_INTERVAL: broker.assignment_interval_bounds_ms,
        }

    def set(self, group: str, options: Mapping[str, int | str]) -> None:
        """Give the group exactly these options of its own; `InputError` names the option that is wrong."""
        for name, value in options.items():
            if name in STREAMS_GROUP_TEXTS and isinstance(value, str):
                continue
            if name not in GROUP_OPTIONS and name not in STREAMS_GROUP_OPTIONS:
                raise InputError(f"{name}: no kind of group has such an option")
            least, most = STREAMS_GROUP_OPTIONS.get(name) or (GROUP_OPTIONS[name], _INT_MAX)
            if isinstance(value, str) or not least <= value <= most:
                raise InputError(f"{name}: {value} is not between {least} and {most}")
        if options:
            self._own[group] = dict(options)
        else:
            self._own.pop(group, None)

    def own(self, group: str) -> Mapping[str, int | str]:
        """The options that were set for this group."""
        return self._own.get(group, {})

    def streams(self, group: str) -> StreamsConfig:
        """The options of a streams group."""
        return self._streams.of_group(self.own(group))

    def _value(self, group: str, name: str, default: int) -> int:
        own = self._own.get(group)
        if own is None or name not in own:
            return default
        least, most = self._bounds[name]
        return min(max(int(own[name]), least), most)

    def session_timeout_ms(self, group: str) -> int:
        return self._value(group, SESSION_TIMEOUT, self._broker.session_timeout_ms)

    def heartbeat_interval_ms(self, group: str) -> int:
        return self._value(group, HEARTBEAT_INTERVAL, self._broker.heartbeat_interval_ms)

    def assignment_interval_ms(self, group: str) -> int:
        return self._value(group, ASSIGNMENT_INTERVAL, self._broker.assignment_interval_ms)
