"""The options of groups of the newer protocols: the broker's, and those that one group may have of its own.

Kafka: GroupCoordinatorConfig, GroupConfig (dynamic configuration of a GROUP resource), KIP-848, KIP-932 and
KIP-1071.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

from groupstorm.problems import InputError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ModernConfig:
    """The options that all kinds have, under Kafka's names; times are in milliseconds."""

    kind: ClassVar[str]
    #: The fields that one group may have of its own, and the least and greatest values that may be set.
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        "session_timeout_ms": (1, INT_MAX),
        "heartbeat_interval_ms": (1, INT_MAX),
        "assignment_interval_ms": (0, INT_MAX),
    }

    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5_000
    min_heartbeat_interval_ms: int = 5_000
    max_heartbeat_interval_ms: int = 15_000
    assignment_interval_ms: int = 1_000
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    max_size: int = INT_MAX

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """From Kafka's options by name, each parsed and checked."""
        return cls(**{field: options[f"group.{_name(cls, field)}"] for field in cls.__match_args__})

    @classmethod
    def own_options(cls) -> dict[str, tuple[int, int]]:
        """The options of one group that are numbers, and their least and greatest values (GroupConfig)."""
        return {_name(cls, field): bounds for field, bounds in cls.own_numbers.items()}

    def of_group(self, own: Mapping[str, int | str]) -> Self:
        """The options of one group: its own, else the broker's. A value beyond the broker's bounds counts as
        the nearest bound (GroupConfig.evaluate)."""
        if not own:
            return self
        set_fields = [field for field in self.own_numbers if _name(type(self), field) in own]
        values: dict[str, Any] = {
            field: self._held(field, int(own[_name(type(self), field)])) for field in set_fields
        }
        return replace(self, **values) if values else self

    def bounds(self, field: str) -> tuple[int | None, int | None]:
        """The least and greatest values that the broker lets one group have; None: no bound."""
        bounded = field.removeprefix("num_")
        return getattr(self, f"min_{bounded}", None), getattr(self, f"max_{bounded}", None)

    def _held(self, field: str, value: int) -> int:
        least, most = self.bounds(field)
        at_least = value if least is None else max(value, least)
        return at_least if most is None else min(at_least, most)


def _name(kind: type[ModernConfig], field: str) -> str:
    return f"{kind.kind}.{field.replace('_', '.')}"


@dataclass(frozen=True, slots=True)
class ShareConfig(ModernConfig):
    """The options that have an effect on share groups: on their memberships, and on their records."""

    kind: ClassVar[str] = "share"
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        **ModernConfig.own_numbers,
        "record_lock_duration_ms": (1_000, INT_MAX),
        "delivery_count_limit": (2, INT_MAX),
        "partition_max_record_locks": (100, INT_MAX),
    }

    max_size: int = 200
    #: Partitions that the persister was asked for are asked for again after this time without an answer.
    initialize_retry_interval_ms: int = 30_000
    record_lock_duration_ms: int = 30_000
    min_record_lock_duration_ms: int = 15_000
    max_record_lock_duration_ms: int = 60_000
    delivery_count_limit: int = 5
    min_delivery_count_limit: int = 2
    max_delivery_count_limit: int = 10
    partition_max_record_locks: int = 2_000
    min_partition_max_record_locks: int = 100
    max_partition_max_record_locks: int = 4_000
    max_share_sessions: int = 2_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        found = super(ShareConfig, cls).from_options(options)
        least_ms = options["offsets.commit.timeout.ms"]
        return replace(found, initialize_retry_interval_ms=max(found.initialize_retry_interval_ms, least_ms))


#: The name of the assignor that Kafka brings along, and any other that is configured falls back to.
STICKY = "sticky"

_RACK_AWARE_TAGS = "streams.rack.aware.assignment.tags"
#: Options of one group that are texts. An assignor that the broker does not have is replaced by `STICKY`.
STREAMS_GROUP_TEXTS = (_RACK_AWARE_TAGS, "streams.assignor.name")


@dataclass(frozen=True, slots=True)
class StreamsConfig(ModernConfig):
    """The options that have an effect on streams groups."""

    kind: ClassVar[str] = "streams"
    own_numbers: ClassVar[Mapping[str, tuple[int, int]]] = {
        **ModernConfig.own_numbers,
        "initial_rebalance_delay_ms": (0, INT_MAX),
        "num_standby_replicas": (0, INT_MAX),
        "num_warmup_replicas": (0, INT_MAX),
        "task_offset_interval_ms": (1, INT_MAX),
        "acceptable_recovery_lag": (0, LONG_MAX),
    }

    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    max_standby_replicas: int = 2
    num_warmup_replicas: int = 2
    max_warmup_replicas: int = 20
    task_offset_interval_ms: int = 60_000
    min_task_offset_interval_ms: int = 15_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        tags = f"group.{_RACK_AWARE_TAGS}"
        return super(StreamsConfig, cls).from_options({**options, tags: tuple(options[tags])})

    def of_group(self, own: Mapping[str, int | str]) -> Self:
        found = super(StreamsConfig, self).of_group(own)
        if _RACK_AWARE_TAGS not in own:
            return found
        return replace(found, rack_aware_assignment_tags=split_names(str(own[_RACK_AWARE_TAGS])))

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """The configuration of the assignor, by name: a change counts the group epoch up."""
        configs = (("num.standby.replicas", str(self.num_standby_replicas)),)
        tags = self.rack_aware_assignment_tags
        return (*configs, ("rack.aware.assignment.tags", ",".join(tags))) if tags else configs


def split_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, as Kafka reads a list."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


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
class ConsumerConfig(ModernConfig):
    """The options that have an effect on consumer groups."""

    kind: ClassVar[str] = "consumer"

    #: The first one is the default.
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        assignors, policy = "group.consumer.assignors", "group.consumer.migration.policy"
        typed = {assignors: tuple(options[assignors]), policy: MigrationPolicy(options[policy])}
        return super(ConsumerConfig, cls).from_options({**options, **typed})


#: The options of one group that are numbers, and their least and greatest values.
GROUP_OPTIONS = {
    **ConsumerConfig.own_options(),
    **StreamsConfig.own_options(),
    **ShareConfig.own_options(),
}


class GroupOptions:
    """The options that single groups have of their own; the broker's options hold for the others."""

    def __init__(
        self, broker: ConsumerConfig, streams: StreamsConfig | None = None, share: ShareConfig | None = None
    ) -> None:
        self._broker = broker
        self._streams = streams or StreamsConfig()
        self._share = share or ShareConfig()
        self._own: dict[str, dict[str, int | str]] = {}

    def set(self, group: str, options: Mapping[str, int | str]) -> None:
        """Give the group exactly these options of its own; `InputError` names the option that is wrong."""
        for name, value in options.items():
            if name in STREAMS_GROUP_TEXTS and isinstance(value, str):
                continue
            if name not in GROUP_OPTIONS:
                raise InputError(f"{name}: no kind of group has such an option")
            least, most = GROUP_OPTIONS[name]
            if isinstance(value, str) or not least <= value <= most:
                raise InputError(f"{name}: {value} is not between {least} and {most}")
        if options:
            self._own[group] = dict(options)
        else:
            self._own.pop(group, None)

    def own(self, group: str) -> Mapping[str, int | str]:
        """The options that were set for this group."""
        return self._own.get(group, {})

    def consumer(self, group: str) -> ConsumerConfig:
        """The options of a consumer group."""
        own = self._own.get(group)
        return self._broker if own is None else self._broker.of_group(own)

    def streams(self, group: str) -> StreamsConfig:
        """The options of a streams group."""
        return self._streams.of_group(self.own(group))

    def share(self, group: str) -> ShareConfig:
        """The options of a share group."""
        return self._share.of_group(self.own(group))

    def modern(self, kind: str, group: str) -> ModernConfig:
        """The options of a group of this kind."""
        of_kind = {"consumer": self.consumer, "share": self.share, "streams": self.streams}
        return of_kind[kind](group)
